#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
torsh mcp, asked by the official client over standard input and output: each tool answers what the command prints, and what would
leave the folder, write, or never end is refused.
"""

import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from exported import made  # noqa: E402

CLIENT = ROOT / "test/python/assistant/client.py"
ANSWER_BYTES = 256 << 10
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def ask(folder, *calls):
    """What the server of a folder answers, and that it leaves the folder as it was."""
    python = environment_python("assistant")
    environment = {**clean_environment(), "PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}"}
    before, asked = files(folder), scratch("asked") / "calls.json"
    asked.write_text(json.dumps(calls))
    with open(asked) as stdin:
        result = run([python, CLIENT, TORSH, folder], environment, stdin=stdin, timeout=240)
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-2000:]})")
    expect_equal(files(folder), before, "what is in the folder")
    return json.loads(result.stdout)


def files(folder):
    return sorted((str(path), path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*"))


def runs():
    """A folder with two recordings, before/ and after/."""
    folder = scratch("runs")
    recorded, _ = made(ranks=1, operators=60)
    _, heap = record([PROGRAMS / "entries"])
    for name, output in (("before", recorded), ("after", heap)):
        (folder / name).mkdir()
        for file in [output] if output.is_file() else output.glob("*.torsh"):
            shutil.copy(file, folder / name)
    return folder


def printed(folder, name, *words):
    """The JSON of a command, with the paths that the server has."""
    return json.loads(torsh(name, "--json", *(folder / word if word in ("before", "after") else word for word in words)))


@case
@needs("assistant")
def each_tool_answers_what_the_command_prints():
    folder = runs()
    asked = [["report", {"recording": "before", "limit": 5}], ["leaks", {"recording": "after"}], ["peak", {"recording": "after", "limit": 3}],
             ["ops", {"recording": "before", "group": "shape"}], ["diff", {"before": "before", "after": "after", "limit": 4}]]
    expected = [printed(folder, "report", "before", "--limit", 5), printed(folder, "leaks", "after", "--limit", 20),
                printed(folder, "peak", "after", "--limit", 3), printed(folder, "ops", "before", "--limit", 20, "--group", "shape"),
                printed(folder, "diff", "--limit", 4, "before", "after")]
    answer = ask(folder, *asked)
    expect_equal(answer["tools"], dict.fromkeys(("report", "leaks", "peak", "ops", "diff", "sql"), True), "the tools, which only read")
    for (name, _), (is_error, text), whole in zip(asked, answer["calls"], expected):
        assert not is_error, text
        expect_equal(json.loads(text), whole, f"the answer of {name}")


@case
@needs("assistant")
def queries_have_the_rows_of_the_exported_database():
    folder, file = runs(), scratch("database") / "a.sqlite"
    torsh("export", folder / "before", "--format", "sqlite", "-o", file)
    query = "SELECT name_text, count(*) AS n, sum(end_ns - start_ns) FROM op_calls GROUP BY name_text ORDER BY n DESC, name_text"
    with contextlib.closing(sqlite3.connect(file)) as database:
        rows = [list(row) for row in database.execute(query)]
    assert len(rows) > 2, rows
    calls = ask(folder, ["sql", {"recording": "before", "query": query}], ["sql", {"recording": "before", "query": query, "limit": 2}])["calls"]
    whole, cut = (json.loads(text) for _, text in calls)
    expect_equal((whole["columns"], whole["rows"], whole["is_cut"]), (["name_text", "n", "sum(end_ns - start_ns)"], rows, False), "all rows")
    expect_equal((cut["rows"], cut["is_cut"]), (rows[:2], True), "the first rows")


@case
@needs("assistant")
def what_leads_out_of_the_folder_is_refused():
    folder, outside = runs(), scratch("outside")
    recording = next((folder / "after").glob("*.torsh"))
    shutil.copy(recording, outside / "secret.torsh")
    (folder / "link").symlink_to(outside)
    (folder / "mixed").mkdir()
    (folder / "mixed/inner.torsh").symlink_to(outside / "secret.torsh")
    (folder / "text.txt").write_text("no recording")
    hostile = ("../outside", "before/../../outside", str(outside), "link", "link/secret.torsh", "mixed", "mixed/inner.torsh", "/etc/passwd",
               "text.txt", "none", "after\0", "--help", "..", "")
    asked = [["leaks", {"recording": name}] for name in hostile] + [["diff", {"before": "before", "after": "link"}],
                                                                   ["sql", {"recording": "link", "query": "SELECT 1"}]]
    for (name, arguments), (is_error, text) in zip(asked, ask(folder, *asked)["calls"]):
        assert is_error and "blocks" not in text, (name, arguments, text)
        assert "refused" in text or "no recording" in text or "not there" in text, (name, arguments, text)


@case
@waits
@needs("assistant")
def queries_that_write_or_never_end_are_refused():
    folder, other = runs(), scratch("other") / "written.sqlite"
    hostile = (f"ATTACH '{other}' AS other", "PRAGMA journal_mode = DELETE", "PRAGMA table_info(op_calls)", "SELECT load_extension('x')",
               "DELETE FROM op_calls", "UPDATE op_calls SET start_ns = 0", "CREATE TABLE t (x)", "CREATE TEMP TABLE t (x)", "DROP TABLE op_calls",
               f"VACUUM INTO '{other}'", "SELECT 1; SELECT 2", "BEGIN", "SELECT writefile('x', 'y')", "no query",
               "SELECT randomblob(1000000000)", "SELECT hex(zeroblob(400000000))", ENDLESS, "SELECT 1" + " " * 20000,
               "SELECT * FROM pragma_database_list")
    answers = ask(folder, *(["sql", {"recording": "before", "query": query}] for query in hostile))["calls"]
    for query, (is_error, text) in zip(hostile, answers):
        assert is_error, (query[:60], text[:200])
    assert "longer than" in answers[hostile.index(ENDLESS)][1], answers[hostile.index(ENDLESS)]
    assert not other.exists(), "a file was written"


@case
@needs("assistant")
def answers_are_bounded():
    folder = runs()
    wide = "SELECT " + ", ".join(f"'{'x' * 90}'" for _ in range(100)) + " FROM op_calls LIMIT 60"
    calls = ask(folder, ["leaks", {"recording": "after", "limit": 100000}], ["leaks", {"recording": "after", "limit": 0}],
                ["sql", {"recording": "before", "query": "SELECT 1", "limit": 5000}], ["ops", {"recording": "before", "group": "--help"}],
                ["sql", {"recording": "before", "query": wide, "limit": 1000}], ["leaks", {"recording": "after", "limit": 1}])["calls"]
    expect_equal([is_error for is_error, _ in calls], [True, True, True, True, True, False], f"errors of {[text[:80] for _, text in calls]}")
    assert f"{ANSWER_BYTES} bytes" in calls[4][1], calls[4]


@case
@needs("assistant")
def prompts_and_the_plug_in_are_there():
    answer = ask(runs())
    where = pathlib.Path(torsh("mcp", "--where").strip())
    for name in ("propose", "implement"):
        text = (where / f"prompts/{name}.md").read_text()
        expect_equal(answer["prompts"][name], text.partition("\n")[2].strip(), f"the prompt {name}")
    plugin = json.loads((where / "plugin/.claude-plugin/plugin.json").read_text())
    expect_equal(plugin["mcpServers"]["torsh"], {"command": "torsh", "args": ["mcp", "."]}, "what the plug-in starts")
    assert "torsh run" in (where / "plugin/commands/optimize.md").read_text()


@case
def without_the_package_there_is_a_sentence():
    bare = scratch("bare")
    (bare / "python3").symlink_to(sys.executable)
    (bare / "mcp").mkdir()
    (bare / "mcp/__init__.py").write_text("raise ImportError('not there')\n")
    environment = {**clean_environment(), "PATH": str(bare), "PYTHONPATH": str(bare)}
    result = run([TORSH, "mcp", bare], environment)
    expect_equal((result.returncode, result.stdout), (2, b""), f"status and output ({result.stderr.decode()})")
    assert "-m pip install 'mcp>=2'" in result.stderr.decode(), result.stderr.decode()


@case
@needs("assistant")
def a_folder_that_is_not_there_is_an_error():
    python = environment_python("assistant")
    environment = {**clean_environment(), "PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}"}
    result = run([TORSH, "mcp", scratch("runs") / "none"], environment)
    expect_equal(result.returncode, 2, f"status ({result.stderr.decode()})")
    assert "is no folder" in result.stderr.decode(), result.stderr.decode()


main()
