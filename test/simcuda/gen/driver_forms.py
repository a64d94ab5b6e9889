#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The driver's functions by the plain names of cuda.h, each form with the version of CUDA that brought it: what
cuGetProcAddress goes by. cuMemAdvise is cuMemAdvise since 8000 and cuMemAdvise_v2 since 12020.

driver_forms.py DRIVER_CALLS_DEF OUT FOLDER...: those that the runtime calls, as CALL(name, version), where the headers in
the folders have them.
"""

import pathlib
import re
import sys


def read_header(folders, name):
    found = next((folder / name for folder in folders if (folder / name).exists()), None)
    if not found:
        raise SystemExit(f"there is no {name} in {' '.join(map(str, folders))}")
    return found.read_text(errors="replace")


def aliases_of(cuda_h):
    """What cuda.h makes of a plain name: {"cuMemAlloc": "cuMemAlloc_v2"}."""
    found = re.findall(r"^\s*#define\s+(cu[A-Z]\w+)\s+(?:__CUDA_API_PT[SD][ZS]\()?(cu[A-Z]\w+)\)?\s*$", cuda_h, flags=re.M)
    return {name: symbol for name, symbol in found if name != symbol}


def forms_of(typedefs, symbols):
    """[(name, version, symbol)] in their order, by the headers' pointer types; symbols: those that there are."""
    versions = {}
    # A form that is only per thread is no newer one.
    for name, version in re.findall(r"\(CUDAAPI \*PFN_(\w+?)_v(\d+)\)", typedefs):
        versions.setdefault(name, set()).add(int(version))
    rows = []
    for name in sorted(versions):
        known = [symbol for symbol in (name, *(f"{name}_v{n}" for n in range(2, 10))) if symbol in symbols]
        rows += [(name, version, symbol) for version, symbol in zip(sorted(versions[name]), known)]
    return rows


def renamed_forms(aliases, symbols):
    """What a plain name means by another name since 12.0: cuGraphInstantiate is cuGraphInstantiateWithFlags."""
    return [(name, 12000, symbol) for name, symbol in aliases.items()
            if symbol in symbols and not symbol.startswith(f"{name}_") and not symbol.endswith(("_ptsz", "_ptds"))]


def driver_forms(folders):
    typedefs = read_header(folders, "cudaTypedefs.h") + read_header(folders, "cudaProfilerTypedefs.h")
    symbols = set(re.findall(r"CUPTI_DRIVER_TRACE_CBID_(cu\w+)", read_header(folders, "cupti_driver_cbid.h")))
    return forms_of(typedefs, symbols) + renamed_forms(aliases_of(read_header(folders, "cuda.h")), symbols)


def main():
    table, out, *folders = map(pathlib.Path, sys.argv[1:])
    cuda_h = read_header(folders, "cuda.h")
    aliases = aliases_of(cuda_h)
    versions = {(name, symbol): version for name, version, symbol in driver_forms(folders)}
    lines = ["// SPDX-License-Identifier: Apache-2.0 OR MIT", "/* Written by gen/driver_forms.py. */"]
    for name in re.findall(r"^CALL\((\w+)\)", table.read_text(), flags=re.M):
        symbol = aliases.get(name, name)
        # cuProfilerStart and its twin are in a header that not every package of CUDA's has.
        version = versions.get((name, symbol))
        if version and (name.startswith("cuProfiler") or re.search(rf"\b{name}\(", cuda_h)):
            lines.append(f"CALL({name}, {version})")
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
