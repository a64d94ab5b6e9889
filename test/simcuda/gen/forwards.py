#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""forwards.py FORWARD_DEF OUT: the functions of the runtime that are one of the driver's, from
their table; those in the headers, which wrappers.py lists."""

import pathlib
import re
import sys

# No parameters, hence no struct.
BARE = {"cudaDeviceSynchronize", "cudaProfilerStart", "cudaProfilerStop"}

CONDITIONS = {"FORWARD": "", "FORWARD_OF_12": " && CUDART_VERSION < 13000", "FORWARD_OF_13": " && CUDART_VERSION >= 13000"}


def main():
    table, out = map(pathlib.Path, sys.argv[1:])
    rows = re.findall(r"^(\w+)\((\w+),\s*(\w+),\s*(\(.*?\))\)$", table.read_text(), flags=re.M | re.S)
    lines = ["// SPDX-License-Identifier: Apache-2.0 OR MIT", "/* Written by gen/forwards.py. */",
             "#include \"test/simcuda/runtime/runtime.h\""]
    for row, function, driver, arguments in rows:
        parameter = "void" if function in BARE else f"const {function}_p *p"
        lines += ["", f"#if defined(HAS_{function}){CONDITIONS[row]}", f"cudaError_t do_{function}({parameter})", "{",
                  "\tCUresult result = rt_begin();", "",
                  f"\treturn (cudaError_t)(result ? result : rt_driver.{driver}{' '.join(arguments.split())});", "}", "#endif"]
    out.write_text("\n".join(lines) + "\n")


main()
