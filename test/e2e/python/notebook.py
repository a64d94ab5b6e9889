#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""%%torsh above a cell of a notebook: the report of that cell's window, as text and as HTML."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from environments import environment_python, torch_python  # noqa: E402
from harness import *  # noqa: E402,F403

all_need("pytest")
PROGRAM = """\
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell, found = InteractiveShell.instance(), []
shell.run_line_magic("load_ext", "torsh")
for cell in json.loads(sys.argv[1]):
    with capture_output() as captured:
        result = shell.run_cell(cell)
    shown = captured.outputs
    found.append([repr(result.error_in_exec), [[output.data["text/plain"], output.data.get("text/html")] for output in shown]])
print(json.dumps(found))
"""
KEEP = "%%torsh leaks\ndef keep(n):\n    kept.append(bytearray(n))\nkept = []\nkeep(2_999_999)\nx = bytearray(3_999_999)\ndel x\n"
CELLS = [KEEP, "%%torsh peak\nfor _ in range(3):\n    x = bytearray(1_999_999)\n    del x\n", "%%torsh ops\n1 + 1\n",
         "%%torsh leaks\n1 / 0\n", "%%torsh stacks\n1\n", "kept[0][:3]"]


def run_cells(runner, cells=CELLS, python=None, path=()):
    variables = {"PYTHONPATH": ":".join(map(str, (ROOT / "tools/python", *path))), "PYTHONDONTWRITEBYTECODE": "1", "TORSH": str(TORSH),
                 "IPYTHONDIR": str(scratch("ipython"))}
    result = runner([python or environment_python("pytest"), "-c", PROGRAM, json.dumps(cells)], variables)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()})")
    return json.loads(result.stdout.decode().splitlines()[-1])


@case
def a_cell_is_reported():
    leaks_of, peak_of, ops_of, failed, unknown, plain = run_cells(lambda command, env: record(command, env=env)[0])
    [[text, html]] = leaks_of[1]
    assert text.startswith("The heap rose by 6.6") and "in this cell; 2.86" in text, text
    assert "2.861 MiB  1" in text and "keep" in text and "<td>keep</td>" in html and "<th>stayed</th>" in html, (text, html)
    assert peak_of[1][0][0].startswith("The heap rose by 1.90"), peak_of
    assert ops_of[1][0][0].startswith("0 operators of PyTorch ran"), ops_of
    assert "ZeroDivisionError" in failed[0] and "leaks, peak, ops" in unknown[0], (failed, unknown)
    assert plain[0] == "None", plain


@case
@needs("torch")
def operators_of_a_cell_are_counted():
    """PyTorch's Python, with the packages of the other environment behind its own."""
    places = run([environment_python("pytest"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], os.environ)
    cells = ["import torch\ntorch.ones(2) @ torch.ones(2)\n",
             "%%torsh ops\nfor _ in range(3):\n    torch.mm(torch.ones(4, 4), torch.ones(4, 4))\n", "%%torsh ops\nx = torch.ones(3) + 1\n"]
    found = run_cells(lambda command, env: record(command, env=env)[0], cells, torch_python(), [places.stdout.decode().strip()])
    expect_equal([cell[0] for cell in found], ["None"] * 3, "errors")
    first, second = ({row.split()[-1]: int(row.split()[1]) for row in cell[1][-1][0].splitlines()[2:]} for cell in found[1:])
    expect_equal((first["aten::mm"], first["aten::ones"], "aten::add" in first), (3, 6, False), "calls in the first cell")
    expect_equal((second["aten::add"], second["aten::ones"], "aten::mm" in second), (1, 1, False), "calls in the second cell")
    assert "<td>aten::mm</td>" in found[1][1][-1][1], found[1]


@case
def a_kernel_that_is_not_recorded_is_told_how():
    outputs = run_cells(lambda command, env: run(command, {**clean_environment(), **env}))
    assert "torsh run jupyter lab" in outputs[0][1][0][0], outputs
    expect_equal([cell[0] for cell in outputs[:3]], ["None"] * 3, "errors")


main()
