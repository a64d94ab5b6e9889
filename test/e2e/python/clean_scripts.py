#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs that import and use popular packages have no leaks, and the report names the imports that keep memory."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import torch_python  # noqa: E402
from pythons import find_all  # noqa: E402

TIMEOUT_S = 240
PROGRAMS_OF = {
    "json": "import json; json.loads(json.dumps({'a': [1, 2.5, None]}))",
    "sqlite3": "import sqlite3; c = sqlite3.connect(':memory:'); c.execute('select 1').fetchall(); c.close()",
    "asyncio": "import asyncio; asyncio.run(asyncio.sleep(0))",
    "decimal": "import decimal; decimal.Decimal(1) / 3",
    "subprocess": "import subprocess, sys; subprocess.run(['true'])",
    "threading": "import threading; t = threading.Thread(target=print); t.start(); t.join()",
    "jinja2": "import jinja2; jinja2.Template('{{ a }}').render(a=1)",
    "markupsafe": "import markupsafe; markupsafe.escape('<a>')",
    "networkx": "import networkx; list(networkx.path_graph(4).edges)",
    "mpmath": "import mpmath; mpmath.sqrt(2)",
    "filelock": "import filelock",
    "fsspec": "import fsspec",
    # numpy caches the blocks of freed arrays below 1 KiB until the process ends: these count as leaks.
    "numpy": "import numpy; numpy.ones(1000).sum()",
    "sympy": "import sympy; sympy.expand((sympy.Symbol('x') + 1) ** 2)",
    "torch": "import torch; torch.randn(10)",
}
LARGE = {"numpy", "torch"}  # their imports keep blocks of the C heap


def is_clean(name, program):
    result, output = record([torch_python(), "-c", program], timeout=TIMEOUT_S)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
    report, text = leaks(output), torsh("leaks", output)
    expect_equal([(entry["bytes"], functions(entry)[:6]) for entry in report["leaks"]], [], "leaks")
    assert "No leaks." in text, text
    packages = {entry["package"] for entry in report["kept_by_imports"]["by"]}
    if name in LARGE:
        assert name in packages, packages
        assert f"Kept by imports: {name} " in text, text
    parts = [report[part]["bytes"] for part in ("bookkeeping", "suppressed", "kept_by_imports", "kept_by_first_uses")]
    expect_equal(sum(parts), report["alive"]["bytes"], "bytes alive at the end")
    assert "bookkeeping" in torsh("leaks", output, "--kept"), "--kept lists nothing"


# CPython returns from main after the first two only, and frees what it has of the command line.
ENDS = {
    "the_last_line": ("", 0),
    "a_line_that_prints": ("print(1)", 0),
    "sys_exit": ("import sys; sys.exit(0)", 0),
    "sys_exit_with_a_status": ("import sys; sys.exit(3)", 3),
    "an_exception": ("raise ValueError", 1),
}


def has_no_leaks_by_its_end(python):
    for name, (program, status) in ENDS.items():
        result, output = record([python.path, "-c", program], scratch(name))
        expect_equal(result.returncode, status, f"status of {name}")
        found = [(entry["bytes"], functions(entry)[:6]) for entry in leaks(output, "--limit", "0")["leaks"]]
        expect_equal(found, [], f"leaks of {name}")
        assert torsh("report", output).startswith("No leaks"), torsh("report", output)
        torsh("check", output, "--max-leak", "0")


for _python in find_all():
    add_case(f"no_end_of_a_script_is_a_leak_with_{_python.name}", has_no_leaks_by_its_end, _python)

for _name, _program in PROGRAMS_OF.items():
    def _clean(name=_name, program=_program):
        is_clean(name, program)

    _clean.needs = ["torch"]
    add_case(f"using_{_name}_is_no_leak", _clean)

main()
