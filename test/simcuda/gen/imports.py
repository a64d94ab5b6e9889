#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
imports.py PYTHON >torch_imports.txt: what the libraries of PyTorch's CUDA build import from CUDA's, one line for each.
"""

import collections
import pathlib
import re
import subprocess
import sys

# Symbols without a version have their owner in their name.
UNVERSIONED = [(r"nccl[A-Z]", "libnccl.so.2"), (r"cu[A-Z](?!parse|File|Solver|FFT)", "libcuda.so.1")]
VERSIONED = ("libcudart.so", "libcupti.so", "libcublas.so", "libcublasLt.so", "libcudnn.so", "libcufft.so", "libcusolver.so",
             "libcusparse.so", "libnvrtc.so")


def imports_of(library):
    listed = subprocess.run(["nm", "-D", "--undefined-only", library], stdout=subprocess.PIPE, text=True, check=True)
    return [line.split()[-1] for line in listed.stdout.splitlines()]


def owner_of(symbol):
    name, _, version = symbol.partition("@")
    if version:
        return re.sub(r"\.\d+$", "", version) if version.startswith(VERSIONED) else None
    return next((owner for pattern, owner in UNVERSIONED if re.match(pattern, name)), None)


def main():
    found = subprocess.run([sys.argv[1], "-c", "import importlib.util as u; print(u.find_spec('torch').origin)"],
                           stdout=subprocess.PIPE, text=True, check=True)
    names = collections.defaultdict(set)
    for library in sorted((pathlib.Path(found.stdout.strip()).parent / "lib").glob("*.so")):
        for symbol in imports_of(library):
            if owner_of(symbol):
                names[owner_of(symbol)].add(symbol.partition("@")[0])
    print("# SPDX-License-Identifier: Apache-2.0 OR MIT")
    for owner in sorted(names):
        print(f"{owner}: {' '.join(sorted(names[owner]))}")


main()
