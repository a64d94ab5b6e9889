#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh.to_parquet: DuckDB and polars answer twelve questions of users about its tables as the reports and the program itself do;
and DuckDB opens an export as SQLite.
"""

import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from exported import SYNTHETIC, exported, made  # noqa: E402

ENGINES = ("duckdb", "polars")
WRITE = "import json, sys, torsh; print(json.dumps(torsh.to_parquet(sys.argv[1], sys.argv[2], **json.loads(sys.argv[3]))))"
JOB = ROOT / "test/python/ranks/ranks_job.py"
WORLD, STEPS, LATE = 2, 20, 1


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT / "tools/python"), "TORSH": str(TORSH)}


def written(recording, folder, **options):
    """The number of rows by table."""
    result = run([environment_python("tables"), "-c", WRITE, recording, folder, json.dumps(options)], environment(), timeout=120)
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}")
    return json.loads(result.stdout)


def answers(folder):
    """What both engines answer, which has to be the same, by question: rows."""
    found = []
    for engine in ENGINES:
        result = run([environment_python("tables"), ROOT / "test/lib/readers/table_queries.py", engine, folder], timeout=120)
        expect_equal(result.returncode, 0, f"status of {engine}\n{result.stderr.decode()[-2000:]}")
        found.append(json.loads(result.stdout))
    expect_equal(found[0], found[1], "answers of DuckDB and polars")
    return found[0]


def by_key(rows, n=1):
    return {row[0] if n == 1 else tuple(row[:n]): list(row[n:]) for row in rows}


@case
@needs("tables")
def spans_memory_and_findings_are_those_of_the_reports():
    recording, numbers = made(ranks=2)
    folder = scratch("tables")
    counts = written(recording, folder)
    found = answers(folder)
    expect_equal(counts["spans"], 2 * (numbers["operators"] + numbers["modules"] + numbers["steps"]), "spans")
    ops = read_report("ops", recording, "--limit", "0")["ops"]
    expect_equal(by_key(found["operators"]), {op["name"]: [op["calls"], op["cpu_ns"], op["self_cpu_ns"], op["self_allocated_bytes"]]
                                              for op in ops}, "operators")
    modules = [row for row in read_report("regions", recording, "--limit", "0")["regions"] if row["source"] == "module"]
    expect_equal(by_key(found["modules"]), {row["name"]: [row["calls"], row["total_ns"]] for row in modules}, "modules")
    ranks = read_report("ranks", recording)["ranks"]
    expect_equal(by_key(found["tensor_peak_of_rank"]), {rank["rank"]: [rank["tensor_peak_bytes"]] for rank in ranks}, "tensors' peaks")
    expect_equal(by_key(found["heap_peak_of_rank"]), {rank["rank"]: [rank["heap_peak_bytes"]] for rank in ranks}, "heaps' peaks")
    rank_of = {rank["pid"]: rank["rank"] for rank in ranks}
    steps = read_report("steps", recording, "--limit", "0")["steps"]
    expect_equal(by_key(found["steps"], 2), {(rank_of[step["pid"]], step["index"]): [step["duration_ns"]] for step in steps}, "steps")
    most = by_key(found["most_self_time_of_step"], 2)
    expect_equal(len(most), 2 * numbers["steps"], "steps with a slowest operator")
    for step in (0, 7, numbers["steps"] - 1):
        for rank in (0, 1):
            of_step = read_report("ops", recording, "--rank", str(rank), "--steps", str(step), "--limit", "0")["ops"]
            slowest = max(of_step, key=lambda op: op["self_cpu_ns"])
            expect_equal(most[rank, step], [slowest["self_cpu_ns"], slowest["name"]], f"slowest operator of step {step} of rank {rank}")
    expected = {}
    for finding in read_report("report", recording, "--limit", "0")["inefficiencies"]:
        row = expected.setdefault((rank_of.get(finding["where"]["pid"]), finding["rule"]), [0, 0])
        row[:] = [row[0] + 1, max(row[1], finding["share_pct"])]
    expect_equal(by_key(found["findings"], 2), expected, "findings")
    assert expected, "no finding"


@case
@needs("tables")
def kernels_are_those_of_the_report():
    recording, folder = scratch("recording") / "kernels.torsh", scratch("tables")
    run([SYNTHETIC, recording, "1000", "0", "10"], check=True)
    written(recording, folder)
    found, kernels = answers(folder), read_report("kernels", recording, "--limit", "0")["kernels"]
    expect_equal(by_key(found["kernels"]), {kernel["name"]: [kernel["calls"], kernel["total_ns"], kernel["min_ns"]] for kernel in kernels},
                 "kernels")
    operators = {}
    for kernel in kernels:
        for op in kernel["ops"]:
            row = operators.setdefault(op["name"], [0, 0])
            row[:] = [row[0] + op["calls"], row[1] + op["total_ns"]]
    expect_equal(by_key(found["kernels_of_operator"]), operators, "operators of kernels")


def trained():
    """A training of ranks over gloo, one of them late; its recording, and by rank when its backward passes began."""
    def make(folder):
        python = environment_python("torch")
        env = {"TORSH_PROFILER_WITH_STACK": "0", "TORSH_PROFILER_ACTIVITIES": "torch,python"}
        result, output = record([python, "-W", "ignore", JOB, folder, str(WORLD), str(STEPS), "sleep", str(LATE)], folder / "out", env=env,
                                timeout=600)
        expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-2000:]}\n")
        return str(output), [json.loads((folder / f"{rank}.json").read_text()) for rank in range(WORLD)]
    return once("parquet-training", make)


@case
@needs("tables", "torch")
def the_rank_that_is_last_is_the_programs():
    recording, began = trained()
    folder = scratch("tables")
    counts = written(recording, folder)
    found, report = answers(folder), read_report("ranks", recording)
    assert counts["collectives"], "no collectives"
    # The program's own clock: the only all-reduces of a step end its backward pass. The first step is left out.
    last = [max(range(WORLD), key=moments.__getitem__) for moments in list(zip(*began))[1:]]
    answer = by_key(found["last_of_all_reduces"])
    assert max(answer, key=answer.get) == max(set(last), key=last.count) == LATE, (answer, last)
    expected = {}
    for row in report["collectives"]:
        one = expected.setdefault(row["name"], [0, 0])
        one[:] = [one[0] + row["calls"], one[1] + row["bytes"]]
    expect_equal({name: row[:2] for name, row in by_key(found["collectives"]).items()}, expected, "calls and bytes")
    for rank in report["ranks"]:
        exposed, whole = by_key(found["exposed_of_rank"])[rank["rank"]]
        # Of those without a work the report takes the operator's end.
        assert abs(whole - rank["communication_ns"]) <= 0.01 * rank["communication_ns"], (whole, rank)
        # The report also takes time of Python's collector for computation.
        assert abs(exposed - rank["exposed_ns"]) <= 0.05 * rank["communication_ns"], (exposed, rank)


@case
@needs("tables")
def a_run_is_replaced_and_others_stay():
    recording, numbers = made(ranks=2)
    folder, other = scratch("tables"), scratch("other")
    shutil.copy(recording, other / "first run.torsh")
    shutil.copy(recording, other / "second.torsh")
    both = written(other, folder)
    files = sorted(path.relative_to(folder) for path in folder.rglob("*.parquet"))
    assert any("run=first%20run" in str(path) for path in files), files[:3]
    one = written(other / "second.torsh", folder, batch_rows=7)
    expect_equal({name: 2 * n for name, n in one.items()}, both, "rows of one run, in small batches")
    expect_equal(sorted(path.relative_to(folder) for path in folder.rglob("*.parquet")), files, "files")
    expect_equal(by_key(answers(folder)["operators"])["aten::relu"][0], 2 * sum(op["calls"] for op in read_report("ops", recording)["ops"]
                                                                                if op["name"] == "aten::relu"), "calls in both runs")


PEAK = """
import resource, sys, torsh
torsh.to_parquet(sys.argv[1], sys.argv[2], batch_rows=2000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@case
@needs("tables")
def memory_does_not_grow_with_the_recording():
    """Ten times the operators take no more than what SQLite sorts at once."""
    peaks = []
    for operators in (10_000, 100_000):
        recording = scratch("recording") / "training.torsh"
        run([SYNTHETIC, recording, str(operators), "0"], check=True)
        result = run([environment_python("tables"), "-c", PEAK, recording, scratch("tables")], environment(), timeout=120)
        expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-1500:]}")
        peaks.append(int(result.stdout) / 1024)
    assert peaks[1] < peaks[0] + 40, f"{peaks} MiB"


@case
@needs("tables")
def the_columns_are_those_of_the_document():
    """Each column that is written is in TABLES.md."""
    text = (ROOT / "tools/python/torsh/TABLES.md").read_text()
    code = "import json; from torsh._tables import SCHEMAS; print(json.dumps(SCHEMAS))"
    for table, columns in json.loads(run([sys.executable, "-c", code], environment()).stdout).items():
        section = text.partition(f"## {table}")[2].partition("\n## ")[0]
        missing = [column for column in columns if f"`{column}`" not in section]
        expect_equal(missing, [], f"columns of {table} without a word")


@case
def without_pyarrow_there_is_a_sentence():
    code = "import sys; sys.modules['pyarrow'] = None; import torsh; torsh.to_parquet('x', 'y')"
    result = run([sys.executable, "-c", code], environment())
    said = result.stderr.decode().strip().splitlines()[-1]
    assert said.startswith("ImportError: torsh.to_parquet needs pyarrow") and said.endswith("pip install 'torsh[parquet]'"), said


@case
@needs("tables")
def what_is_no_recording_gets_a_sentence():
    folder = scratch("empty")
    for path, words in ((folder, "has no files *.torsh"), (folder / "missing.torsh", "missing.torsh")):
        result = run([environment_python("tables"), "-c", WRITE, path, folder / "out", "{}"], environment())
        assert result.returncode == 1 and words in result.stderr.decode().splitlines()[-1], result.stderr.decode()[-500:]


DUCKDB_SQLITE = """
import duckdb, json, pathlib, sys
import duckdb_extension_sqlite_scanner as extension
database = duckdb.connect(config={"allow_unsigned_extensions": True})
found = sorted(pathlib.Path(extension.__file__).parent.rglob("sqlite_scanner.duckdb_extension"))
database.execute(f"load '{found[0]}'")
database.execute(f"attach '{sys.argv[1]}' as recording (type sqlite, read_only)")
rows = database.execute('''select l.text, count(*), sum(o.end_ns - o.start_ns)::bigint from recording.ops o
    join recording.labels l on l.process = o.process and l.id = o.name group by 1''').fetchall()
print(json.dumps(rows))
"""


@case
@needs("tables")
def duckdb_opens_the_export_as_sqlite():
    recording, _ = made(ranks=2)
    database = exported(recording, "t.sqlite", "--format", "sqlite")
    result = run([environment_python("tables"), "-c", DUCKDB_SQLITE, database])
    expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()[-1500:]}")
    ops = read_report("ops", recording, "--limit", "0")["ops"]
    expect_equal(by_key(json.loads(result.stdout)), {op["name"]: [op["calls"], op["cpu_ns"]] for op in ops}, "operators")


main()
