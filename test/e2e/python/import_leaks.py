#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
A leak is reported wherever it is planted: below imports of installed packages, in imports that are repeated, in packages
that run their program while they are imported. What one import keeps is counted for it, to the byte.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from pythons import MALLOC, keeper, record_program  # noqa: E402

BLOCKS, SIZE = 200, 5000
KEPT = 37, 37 * 1237  # by test/python/imports/keeper.c

# lose() allocates what nothing points to; the line that calls malloc is in the file that calls it by "lose".
LOOP = MALLOC + f"""
def step():
    malloc({SIZE})
class Net:
    pass
class Loss:
    pass
for i in range({BLOCKS}):
    step()
"""
ONE = MALLOC + f"""
class Net:
    pass
malloc({SIZE})
"""
FUNCTION = MALLOC + f"""
def lose(n={BLOCKS}):
    for i in range(n):
        malloc({SIZE})
"""
AGAIN = f"""
import importlib, sys
for i in range({BLOCKS}):
    import pkg
    del sys.modules["pkg"]
"""

"""
Programs: the files of the user and those that are installed, what runs, and the file that holds the line to blame. Each
loses BLOCKS blocks of SIZE bytes.
"""
PROGRAMS = {
    "launcher_imports_the_users_module": ({"run.py": "import train", "train.py": LOOP}, {}, ["run.py"], "train.py"),
    "module_of_an_installed_package_is_run": ({}, {"pkg/__init__.py": "", "pkg/__main__.py": LOOP}, ["-m", "pkg"],
                                              "pkg/__main__.py"),
    "module_that_is_run_imports_the_loop": ({}, {"pkg/__init__.py": "", "pkg/__main__.py": "from pkg import loop",
                                                 "pkg/loop.py": LOOP}, ["-m", "pkg"], "pkg/loop.py"),
    "console_script_calls_an_installed_main": (
        {"bin/train": "import sys\nfrom train import lose\nsys.exit(lose())"}, {"train/__init__.py": FUNCTION},
        ["bin/train"], "bin/train"),
    "console_script_of_a_package_that_runs_when_imported": (
        {"bin/train": "import train"}, {"train/__init__.py": "from train import loop", "train/loop.py": LOOP},
        ["bin/train"], "bin/train"),
    "installed_loader_imports_the_users_plugins": (
        {"run.py": "import loader\nloader.load('plugin')", "plugin.py": LOOP},
        {"loader.py": "import importlib\ndef load(name):\n    importlib.import_module(name)"}, ["run.py"], "plugin.py"),
    "loader_imports_the_users_plugins_when_imported": (
        {"run.py": "import loader", "plugin.py": LOOP}, {"loader.py": "import plugin"}, ["run.py"], "plugin.py"),
    "path_is_run": ({"run.py": "import runpy\nrunpy.run_path('train.py')", "train.py": LOOP}, {}, ["run.py"], "train.py"),
    "path_is_run_by_a_package_when_imported": (
        {"run.py": "import pkg", "train.py": LOOP}, {"pkg.py": "import runpy\nrunpy.run_path('train.py')"}, ["run.py"],
        "train.py"),
    "cell_of_a_notebook": (
        {"run.py": "import kernel"},
        {"kernel.py": f"exec(compile({LOOP!r}, '<ipython-input-1>', 'exec'), {{}})"}, ["run.py"], "<ipython-input-1>"),
    "cell_with_a_name_of_its_own": (
        {"run.py": "import kernel"},
        {"kernel.py": f"exec(compile({LOOP!r}, '<cell 1>', 'exec'), {{}})"}, ["run.py"], "run.py"),
    "installed_function_called_by_the_users_module": (
        {"run.py": "import train", "train.py": "import pkg\npkg.lose()"}, {"pkg.py": FUNCTION}, ["run.py"], "train.py"),
    "reload": ({"run.py": f"import importlib, pkg\nfor i in range({BLOCKS - 1}):\n    importlib.reload(pkg)"},
               {"pkg.py": ONE}, ["run.py"], "run.py", BLOCKS - 1),
    "import_again": ({"run.py": AGAIN}, {"pkg.py": ONE}, ["run.py"], "run.py"),
    "import_again_below_a_package": ({"run.py": AGAIN.replace("pkg", "outer").replace(
        'del sys.modules["outer"]', 'del sys.modules["outer"], sys.modules["pkg"]')},
        {"outer.py": "import pkg", "pkg.py": ONE}, ["run.py"], "run.py"),
    "import_again_by_a_package": ({"run.py": "import loop"}, {"loop.py": AGAIN, "pkg.py": ONE}, ["run.py"], "run.py"),
    "import_module_again_in_a_step": (
        {"run.py": f"import importlib, sys\ndef step():\n    importlib.import_module('pkg').lose(1)\n"
                   f"    del sys.modules['pkg']\nfor i in range({BLOCKS}):\n    step()"}, {"pkg.py": FUNCTION}, ["run.py"],
        "run.py"),
    "lazy_import_in_a_step": (
        {"run.py": f"def step():\n    from pkg import train\n    train()\nfor i in range({BLOCKS}):\n    step()"},
        {"pkg.py": "def train():\n    from other import lose\n    lose(1)", "other.py": FUNCTION}, ["run.py"], "run.py"),
    "spec_is_executed_again": (
        {"run.py": f"from importlib import util\nspec = util.find_spec('pkg')\nfor i in range({BLOCKS}):\n"
                   f"    spec.loader.exec_module(util.module_from_spec(spec))"}, {"pkg.py": ONE}, ["run.py"], "run.py"),
    "thread_imports": (
        {"run.py": "import threading\ndef run():\n    import pkg\nt = threading.Thread(target=run)\nt.start()\nt.join()"},
        {"pkg.py": LOOP}, ["run.py"], "run.py"),
    "threads_import_again": (
        {"run.py": "import sys, threading\ndef run():\n    import pkg\n    del sys.modules['pkg']\n"
                   f"for i in range({BLOCKS}):\n    t = threading.Thread(target=run)\n    t.start()\n    t.join()"},
        {"pkg.py": ONE}, ["run.py"], "run.py"),
    "import_a_few_times_again": (
        {"run.py": AGAIN.replace(f"range({BLOCKS})", "range(5)")}, {"pkg.py": ONE}, ["run.py"], "run.py", 5),
    "few_large_blocks": (
        {"run.py": "import pkg"}, {"pkg.py": LOOP.replace(f"range({BLOCKS})", "range(20)").replace(
            f"malloc({SIZE})", f"malloc({50 * SIZE})")}, ["run.py"], "run.py", 20, 50 * SIZE),
    "few_blocks_all_the_time": (
        {"run.py": "import pkg"}, {"pkg.py": "import time" + LOOP.replace(f"range({BLOCKS})", "range(20)").replace(
            "    step()", "    step()\n    time.sleep(0.02)")}, ["run.py"], "run.py", 20),
    "users_back_end_imported_by_a_frameworks_init": (
        {"run.py": "import torch", "backend.py": LOOP}, {"torch/__init__.py": "import backend"}, ["run.py"], "backend.py"),
}


def is_reported(own, installed, command, blamed, n_blocks=BLOCKS, size=SIZE):
    output = record_program(own, installed, command)
    planted = [entry for entry in leaks(output)["leaks"] if entry["bytes"] == entry["blocks"] * size]
    expect_equal((total(planted), total(planted, "blocks")), (n_blocks * size, n_blocks), "planted bytes and blocks reported")
    rows = [line for line in torsh("leaks", output).splitlines() if f"{blamed}:" in line]
    assert any(f" {n_blocks} " in row for row in rows), f"no row of {blamed}:\n{torsh('leaks', output)}"


for _name, _row in PROGRAMS.items():
    add_case(f"planted_{_name}", is_reported, *_row)


def kept_by(report, package):
    """Blocks and bytes; some are taken by built-in rules too."""
    found = [entry for entry in report["kept_by_imports"]["by"] if entry["package"] == package]
    return tuple(sum(entry[field] + entry[f"suppressed_{field}"] for entry in found) for field in ("blocks", "bytes"))


@case
def what_an_extension_module_keeps_is_counted_exactly():
    report = leaks(record_program({"run.py": "import keeper"}, {}, ["run.py"], keeper()))
    expect_equal(kept_by(report, "keeper"), KEPT, "kept by the import")
    expect_equal(report["leaked_bytes"], 0, "leaked bytes")


@case
def what_a_package_keeps_is_counted_exactly():
    found = []
    for n in (0, 41):
        lines = "\n".join(f"keeper.keep(1, {1000 + i})" for i in range(n))
        output = record_program({"run.py": "import pkg"}, {"pkg/__init__.py": "import keeper\nfrom pkg import inner",
                                                           "pkg/inner.py": "import keeper\n" + lines}, ["run.py"], keeper())
        report = leaks(output)
        expect_equal(report["leaked_bytes"], 0, "leaked bytes")
        found.append(kept_by(report, "pkg"))
    expect_equal(tuple(b - a for a, b in zip(*found)), (41, sum(range(1000, 1041))), "what the package keeps more")


@case
def what_the_import_system_keeps_for_a_packages_line_is_the_packages():
    """
    As below `python -m torch.distributed.run`: of an import nothing is left but the parent's names, which became more,
    while no line of a user is on the stack.
    """
    names = [f"m{i}" for i in range(60)]
    files = {f"pkg/{name}.py": "" for name in names}
    files["pkg/__init__.py"] = ""
    files["pkg/__main__.py"] = "import ctypes, pkg\nctypes.pythonapi.Py_IncRef(ctypes.py_object(vars(pkg)))\n" + "\n".join(
        f"import pkg.{name}" for name in names)
    output = record_program({}, files, ["-m", "pkg"])
    report = leaks(output)
    expect_equal([(entry["bytes"], functions(entry)[:6]) for entry in report["leaks"]], [], "leaks")
    blocks, size = kept_by(report, "pkg")
    assert blocks >= 1 and size > 60 * 16, report["kept_by_imports"]


@case
def modules_that_one_line_imports_are_not_one_that_is_imported_again():
    """A file is read for each of them, and a line of one runs twice."""
    names = [f"m{i}" for i in range(10)]
    files = {f"pkg/{name}.py": "" for name in names} | {
        "pkg/__init__.py": "", "pkg/m3.py": "import keeper\nfor i in range(2):\n    keeper.keep(1, 5000)\n"}
    output = record_program({"run.py": f"from pkg import {', '.join(names)}"}, files, ["run.py"], keeper())
    expect_equal([(entry["bytes"], functions(entry)[:6]) for entry in leaks(output)["leaks"]], [], "leaks")


@case
def planted_extension_module_initialised_again():
    n = BLOCKS // 2
    program = f"import sys\nfor i in range({n}):\n    import keeper\n    del sys.modules['keeper']"
    report = leaks(record_program({"run.py": program}, {}, ["run.py"], keeper()))
    expect_equal(kept_by(report, "keeper"), (0, 0), "kept by the import")
    expect_equal(total(entries_through(report["leaks"], "initialise")), n * KEPT[1], "leaked bytes")


@case
def planted_by_the_users_extension_module_when_imported():
    folder = keeper()
    report = leaks(record_program({"run.py": f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport keeper"}, {},
                                  ["run.py"]))
    expect_equal(kept_by(report, "keeper"), (0, 0), "kept by the import")
    expect_equal(total(entries_through(report["leaks"], "initialise")), KEPT[1], "leaked bytes")


main()
