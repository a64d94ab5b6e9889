# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The programs that users open exports with. A script that imports this needs them."""

import json
import subprocess

from environments import environment_python
from harness import ROOT, all_need, clean_environment

TIMEOUT_S = 120
# Statistics that speak of no fault.
HARMLESS = {"parse_trace_duration_ns", "guess_trace_type_duration_ns", "json_display_time_unit", "clock_sync_cache_miss"}


def consumers_python():
    return environment_python("consumers")


def run_python(code, *arguments):
    """Runs a program in there that prints JSON in its last line."""
    result = subprocess.run([consumers_python(), "-W", "ignore", "-c", code, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=clean_environment(), timeout=TIMEOUT_S)
    assert result.returncode == 0, result.stderr.decode(errors="replace")[-3000:]
    return json.loads(result.stdout.decode().strip().splitlines()[-1])


def ask_trace_processor(path, *queries):
    """Rows of queries to Perfetto's trace processor, which has to find nothing wrong with the trace."""
    statistics = "select name, value from stats where value > 0"
    result = subprocess.run([consumers_python(), ROOT / "test/lib/readers/trace_processor.py", path, statistics, *queries],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(), timeout=TIMEOUT_S)
    assert result.returncode == 0, result.stderr.decode(errors="replace")[-3000:]
    rows = json.loads(result.stdout)
    faults = [row for row in rows[0] if row["name"] not in HARMLESS]
    assert not faults, f"the trace processor finds fault with {path}: {faults}"
    return rows[1:]


_HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
trace = TraceAnalysis(trace_dir=sys.argv[1]).t
texts, found = trace.symbol_table.get_sym_table(), {}
for rank in trace.get_ranks():
    frame = trace.get_trace(rank)
    kinds, names = (frame[column].map(lambda i: texts[i]) for column in ("cat", "name"))
    counts = (names[kinds == sys.argv[2]] if sys.argv[2] else names).value_counts()
    found[rank] = {name: int(n) for name, n in counts.items()}
print(json.dumps(found))
"""


def ask_hta(folder, category=""):
    """How often each name (of a category) is in the trace of each rank in a folder, as HolisticTraceAnalysis reads it."""
    return {int(rank): counts for rank, counts in run_python(_HTA, folder, category).items()}


_HTA_FIGURES = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=1 << 30)
found = {"temporal": analysis.get_temporal_breakdown(visualize=False), "types": types, "kernels": kernels,
         "overlap": analysis.get_comm_comp_overlap(visualize=False),
         "idle": analysis.get_idle_time_breakdown(ranks=analysis.t.get_ranks(), visualize=False)[0]}
print(json.dumps({name: json.loads(frame.to_json(orient="records")) for name, frame in found.items()}))
"""


def ask_hta_for_figures(folder):
    """The tables of HolisticTraceAnalysis on the traces in a folder, each a list of rows."""
    return run_python(_HTA_FIGURES, folder)


all_need("consumers")
