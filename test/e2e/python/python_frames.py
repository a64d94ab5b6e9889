#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Python frames in stacks, against the interpreter's own frames at the same moment: every function,
file and line, on every CPython of this machine."""

import ast
import gzip
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
import pythons  # noqa: E402


def python_frames(entry):
    return tuple((frame["function"], frame["file"], frame["line"]) for frame in entry["stack"]
                 if frame.get("language") == "python")


def record_frames(python, **env):
    modules = python.build(pythons.SOURCES / "probe.c")
    packages = python.install("greenlet")
    truth = scratch("truth") / "frames.json"
    path = [modules, packages] if packages else [modules]
    result, output = record([python.path, pythons.SOURCES / "frames.py", truth],
                            env={"PYTHONPATH": ":".join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1", **env})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    printed = json.loads(truth.read_text())
    return output, {size: tuple(tuple(frame) for frame in frames) for size, frames in printed["frames"]}, printed["greenlets"]


def by_stack(blocks):
    """Blocks and bytes of each stack: all sizes differ, so the sums identify the blocks."""
    sums = {}
    for frames, n, size in blocks:
        blocks, n_bytes = sums.get(frames, (0, 0))
        sums[frames] = (blocks + n, n_bytes + size)
    return sums


def is_of(module):
    """The test for entries with a block that an extension module allocated itself."""
    return lambda entry: f"/{module}." in entry["stack"][0]["module"]


def expect_frames(report, is_wanted, truth):
    """Blocks and bytes of the stacks of Python are those that the truth, {size: frames}, makes."""
    found = by_stack((python_frames(entry), entry["blocks"], entry["bytes"])
                     for entry in report["leaks"] if is_wanted(entry))
    expected = by_stack((frames, 1, size) for size, frames in truth.items())
    wrong = [frames for frames in {**expected, **found} if found.get(frames) != expected.get(frames)]
    if wrong:
        raise AssertionError(f"{len(wrong)} of {len(expected)} stacks differ, first:\n" + "\n".join(
            f"  found {found.get(frames)}, expected {expected.get(frames)} of {frames[:8]}" for frames in wrong[:4]))
    return len(expected)


def is_leak_of_probe(entry):
    return is_of("probe")(entry) and functions(entry)[0].startswith("leak")


def check_frames(python):
    output, truth, has_greenlets = record_frames(python)
    report = leaks(output, "--depth", "0", "--no-lines")
    check_counts(report["events"])
    n_stacks = expect_frames(report, is_leak_of_probe, truth)
    print(f"{python.path} {python.version}: {len(truth)} blocks of {n_stacks} stacks" +
          ("" if has_greenlets else ", without greenlets"))


def record_ending(python, truth, n_daemons):
    """CPython itself crashes sometimes when daemon threads run at its end: 3.10 in one of 120 runs
    without the agent. So one crash proves nothing, five in a row do."""
    for _ in range(5 if n_daemons else 1):
        truth.unlink(missing_ok=True)
        result, output = record([python.path, pythons.SOURCES / "ending.py", truth, n_daemons], scratch("ending"),
                                env={"PYTHONPATH": str(python.build(pythons.SOURCES / "probe.c")),
                                     "PYTHONDONTWRITEBYTECODE": "1"})
        if result.returncode != -signal.SIGSEGV:
            break
    return result, output


def check_ending(python, n_daemons, n_leaks):
    truth = scratch("truth") / "frames"
    result, output = record_ending(python, truth, n_daemons)
    expect_equal((result.returncode, result.stderr), (0, b""), "status and what was printed")
    printed = dict(ast.literal_eval(line) for line in truth.read_text().splitlines())
    expect_equal(len(printed), n_leaks, "what wrote something down at the end")
    report = leaks(output, "--depth", "0", "--no-lines")
    check_counts(report["events"])
    expect_frames(report, is_leak_of_probe, {size: tuple(frames) for size, frames in printed.items()})


@case
def lines_are_right_around_functions_of_cython():
    cython = need_command("cython3")
    python = next((each for each in pythons.find_all() if each.path.is_relative_to("/usr/bin")), None)
    if not python:
        raise Skip("there is no interpreter beside Debian's cython3")
    source = scratch("cython") / "between.c"
    made = run([cython, "-3", "-o", source, pythons.SOURCES / "between.pyx"])
    expect_equal(made.returncode, 0, f"status of cython3 ({made.stderr.decode()})")
    truth = scratch("truth") / "frames.json"
    result, output = record([python.path, pythons.SOURCES / "around_cython.py", truth],
                            env={"PYTHONPATH": str(python.build(source)), "PYTHONDONTWRITEBYTECODE": "1"})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    printed = {size: tuple(map(tuple, frames)) for size, frames in json.loads(truth.read_text())}
    report = leaks(output, "--depth", "0", "--no-default-suppressions")
    expect_frames(report, is_of("between"), printed)
    # Functions of Cython stand between the lines as what they are.
    deepest = max((entry for entry in report["leaks"] if is_of("between")(entry)), key=lambda entry: len(entry["stack"]))
    kinds = [frame.get("language") or ("cython" if "/between." in (frame["module"] or "") else "native")
             for frame in deepest["stack"]]
    changes = [kind for kind, before in zip(kinds, [None, *kinds]) if kind != before and kind != "native"]
    assert changes[:5] == ["cython", "python", "cython", "python", "cython"], changes


def a_python():
    found = pythons.find_all()
    if not found:
        raise Skip("there is no CPython on this machine")
    return found[len(found) // 2]


def record_leaks(**env):
    python = a_python()
    result, output = record([python.path, LEAKY], env={"PYTHONPATH": str(python.build(pythons.SOURCES / "probe.c")),
                                                       "PYTHONDONTWRITEBYTECODE": "1", **env})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    return output


LEAKY = pythons.SOURCES / "leaky.py"
# By the mark of its line: blocks, bytes of each, and the functions from there outwards.
PLANTED = {
    "bytearray": (10, 30000 + 1, ["keep_bytearrays", "<module>"]),
    "ctypes": (1, 31000, ["forget_block", "<module>"]),
    "extension": (1, 40000, ["leak_in_extension.<locals>.<lambda>", "leak_in_extension", "<module>"]),
}


@case
def leaks_are_at_their_line_of_python():
    report = leaks(record_leaks(), "--stacks", "python")
    lines = LEAKY.read_text().splitlines()
    for mark, (blocks, size, functions_outwards) in PLANTED.items():
        line = next(i for i, text in enumerate(lines, 1) if text.endswith(f"# line: {mark}"))
        entries = [entry for entry in report["leaks"] if entry["stack"] and entry["stack"][0]["line"] == line
                   and entry["bytes"] == blocks * size]
        expect_equal([entry["blocks"] for entry in entries], [blocks], f"blocks of {mark} in line {line}")
        names = [name.rsplit(".", 1)[-1] for name in functions(entries[0])]
        expect_equal(names, [name.rsplit(".", 1)[-1] for name in functions_outwards], f"stack of {mark}")
        assert all(frame["language"] == "python" for frame in entries[0]["stack"]), entries[0]
    assert not any(entry["bytes"] // 32001 == entry["blocks"] and entry["bytes"] % 32001 == 0
                   for entry in report["leaks"]), "give_back leaks"


@case
def views_choose_frames():
    output = record_leaks()
    everything = {view: leaks(output, "--stacks", view, "--depth", "0") for view in ("merged", "python", "native")}
    expect_equal(leaks(output, "--depth", "0")["leaks"], everything["merged"]["leaks"], "the default")
    for report in everything.values():
        expect_equal(total(report["leaks"]), everything["merged"]["leaked_bytes"], "bytes of all leaks")
    size = PLANTED["extension"][1]
    merged, native = (next(functions(entry) for entry in everything[view]["leaks"]
                           if entry["bytes"] == size and functions(entry)[0] == "leak") for view in ("merged", "native"))
    # The extension's functions stay among the lines of Python; the interpreter's own are gone from there on.
    assert merged.index("leak") < merged.index("call") < merged.index("<module>"), merged
    assert not any(name.startswith(("_PyEval_", "Py_RunMain", "PyObject_Call")) for name in merged[merged.index("call"):])
    # Those in between have no names where the interpreter's loop is made of local functions, and is stripped.
    assert "call" in native and native.index("call") + 1 < native.index("PyEval_EvalCode"), native
    assert not any(frame.get("language") for entry in everything["native"]["leaks"] for frame in entry["stack"])


@case
def exports_show_lines_of_python():
    output = record_leaks()
    folded = torsh("export", output, "--format", "folded")
    assert re.search(r"leak_in_extension \(\S*leaky.py:\d+\);call \(\S*probe.c:\d+\);", folded), folded[:2000]
    path = scratch("exported") / "heap.json"
    torsh("export", output, "--format", "speedscope", "-o", path)
    frames = json.loads(path.read_text())["shared"]["frames"]
    assert {(frame["name"], frame.get("file"), frame.get("line")) for frame in frames} & {
        ("forget_block", str(LEAKY), n) for n in range(1, 40)}, frames[:10]
    torsh("export", output, "--format", "pprof", "-o", path)
    data = gzip.decompress(path.read_bytes())
    assert b"forget_block" in data and str(LEAKY).encode() in data


@case
def rules_match_functions_and_files_of_python():
    output = record_leaks()
    # Without the rules that are there anyway: a block goes to one rule.
    before = leaks(output, "--no-default-suppressions")
    rules = scratch("rules") / "rules"
    for pattern, mark in (("forget_block", "ctypes"), ("leaky.py", None)):
        rules.write_text(f"leak:{pattern}\n")
        after = leaks(output, "--no-default-suppressions", "--suppress", rules)
        gone = before["leaked_bytes"] - after["leaked_bytes"]
        least = sum(n * size for n, size, _ in PLANTED.values()) if mark is None else PLANTED[mark][1]
        assert gone >= least, f"{pattern}: {gone} bytes less, expected {least} at least"
        expect_equal(gone, next(rule["bytes"] for rule in after["suppressed"]["by"] if rule["rule"] == pattern),
                     f"suppressed by {pattern}")


@case
def what_the_interpreter_keeps_is_suppressed_and_counted():
    for python in pythons.find_all():
        result, output = record([python.path, "-S", "-c", "pass"], scratch(python.name))
        expect_equal(result.returncode, 0, "status")
        report, whole = leaks(output), leaks(output, "--no-default-suppressions")
        expect_equal(whole["suppressed"]["bytes"], 0, "suppressed without rules")
        parts = [report[part]["bytes"] for part in ("suppressed", "kept_by_imports", "kept_by_first_uses")]
        expect_equal(report["leaked_bytes"] + sum(parts), whole["leaked_bytes"], "bytes in all")
        assert report["leaked_bytes"] < 20000, f"{python.version}: {report['leaks'][:3]}"
        assert all(rule["built_in"] and rule["stacks"] for rule in report["suppressed"]["by"]), report["suppressed"]


@case
def leaks_of_the_program_are_not_what_the_interpreter_keeps():
    output = record_leaks()
    for size in (31000, 40000):
        assert any(entry["bytes"] == size for entry in leaks(output)["leaks"]), size


OBJECTS = pythons.SOURCES / "objects.py"


def check_objects(python):
    truth = scratch("truth") / "sizes.json"
    result, output = record([python.path, OBJECTS, truth], env={"TORSH_PROFILER_PYTHON_ALLOCATORS": "1"})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    lines = OBJECTS.read_text().splitlines()
    report = leaks(output, "--stacks", "python", "--no-default-suppressions")
    check_counts(report["events"])
    everything = leaks(output, "--depth", "0", "--no-default-suppressions")["leaks"]
    for mark, expected in json.loads(truth.read_text()).items():
        line = next(i for i, text in enumerate(lines, 1) if text.endswith(f"# line: {mark}"))
        # The list that keeps them grows in the same line: by few blocks, none of them of an object's size.
        entries = [entry for entry in everything if entry["stack"]
                   and any(frame.get("line") == line and frame["file"] == str(OBJECTS) for frame in entry["stack"][:12])
                   and any("ytes" in (name or "") for name in functions(entry))]
        expect_equal([total(entries, "blocks"), total(entries)], expected, f"blocks and bytes of {mark}")


for objects_python in pythons.find_all():
    if objects_python.has_symbols:
        add_case(f"objects_of_{objects_python.name}", check_objects, objects_python)


ARENAS = pythons.SOURCES / "arenas.py"


def check_arenas(python):
    result, output = record([python.path, "-S", ARENAS])
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-1000:]})")
    lines = ARENAS.read_text().splitlines()
    grown, mapped = (next(i for i, text in enumerate(lines, 1) if text.endswith(f"# line: {mark}"))
                     for mark in ("arenas", "mapped"))
    for view in ("merged", "python"):
        holders = peak(output, "--stacks", view)["mappings"]["holders"]
        by_line = {}
        for holder in holders:
            frames = [frame for frame in holder["stack"] if frame.get("language") == "python"]
            line = frames[0]["line"] if frames else None
            n, size = by_line.get((line, holder["what"]), (0, 0))
            by_line[line, holder["what"]] = n + holder["pieces"], size + holder["bytes"]
        # The list is made in one line and its number in the one before: 64 bytes of a list with its item at least.
        arenas = [by_line.get((line, "CPython arena"), (0, 0)) for line in (grown - 1, grown)]
        n, size = map(sum, zip(*arenas))
        assert size >= 64 * 200_000, f"{view}: {by_line}"
        expect_equal(size, n * ((1 << 20) if python.minor >= 10 else 256 << 10), f"{view}: bytes of arenas")
        expect_equal(by_line[mapped, "shared memory"], (1, 16 << 20), f"{view}: what the program mapped itself")
        assert all(line != grown or what for line, what in by_line), f"{view}: {by_line}"
    assert "CPython arena:" in torsh("peak", output), "the text doesn't name arenas"


for arenas_python in pythons.find_all():
    if arenas_python.has_symbols and not arenas_python.is_free_threaded:
        add_case(f"arenas_of_{arenas_python.name}", check_arenas, arenas_python)


@case
def without_the_activity_there_are_native_frames_only():
    report = leaks(record_leaks(TORSH_PROFILER_ACTIVITIES="heap"), "--depth", "0")
    assert not any(frame.get("language") for entry in report["leaks"] for frame in entry["stack"])


def not_here(version):
    raise Skip(f"there is no CPython {version} on this machine: not checked")


for found_python in pythons.find_all():
    add_case(f"frames_of_{found_python.name}", check_frames, found_python)
    add_case(f"ending_of_{found_python.name}", check_ending, found_python, 0, 7)
    add_case(f"ending_of_{found_python.name}_with_threads", check_ending, found_python, 3, 4)
for missing_version in pythons.versions_not_here():
    add_case("frames_of_python_" + missing_version.replace(".", "_"), not_here, missing_version)

main()
