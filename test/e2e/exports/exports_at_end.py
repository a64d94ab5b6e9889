#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The files of TORSH_PROFILER_OUTPUT=trace.json and _EXPORT_FORMAT exist, and are complete, when
the program has ended."""

import collections
import glob
import gzip
import pathlib
import signal
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

N_RANGES = 5
SAYS = f"""
import torsh
def work(name):
    for _ in range({N_RANGES}):
        with torsh.range(name):
            pass
"""
REQUEST = struct.Struct("<8sIIII")
EXPORTS = 5


def environment(output, **variables):
    return agent_environment(output, PYTHONPATH=str(ROOT / "tools/python"), **variables)


def script(text):
    path = scratch("script") / "train.py"
    path.write_text(SAYS + text)
    return path


def python(path, *arguments):
    return [sys.executable, path, *arguments]


def ranges(trace):
    """How often each range's name is in a Chrome trace."""
    text = gzip.decompress(trace.read_bytes()) if trace.suffix == ".gz" else trace.read_bytes()
    return collections.Counter(event["name"] for event in json.loads(text)["traceEvents"]
                               if event["ph"] == "X" and event["name"].startswith("work"))


def expect_done(result, status=0):
    expect_equal(result.returncode, status, f"status ({result.stderr.decode()})")


def writer_of(recording):
    return next((int(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/cmdline") if is_writer_of(path, recording)), None)


def is_writer_of(path, recording):
    try:
        arguments = pathlib.Path(path).read_bytes().split(b"\0")
    except OSError:
        return False
    return arguments[0] == b"torsh-writer" and str(recording).encode() in arguments


@case
def the_file_is_there_when_the_program_has_ended():
    output, program = scratch(), script("work('work')")
    for name, first in (("trace.json", b"{"), ("trace.json.gz", b"\x1f\x8b"), ("trace.pftrace", b"\n")):
        expect_done(run(python(program), environment(output / name)))
        assert (output / name).read_bytes().startswith(first), (output / name).read_bytes()[:20]
        if "json" in name:
            expect_equal(ranges(output / name), {"work": N_RANGES}, f"ranges in {name}")
        expect_equal(leaks(output / "trace.torsh")["version"], 1, "version of the report on the recording beside it")


@case
def so_are_the_formats_beside_the_recording():
    result, output = record([PROGRAMS / "regions"], env={"TORSH_PROFILER_EXPORT_FORMAT": "chrome,json,speedscope"})
    expect_done(result)
    for ending in (".json", ".events.json", ".speedscope.json"):
        json.loads(recordings(output)[0].with_suffix(ending).read_text())


@case
def the_status_stays():
    trace = scratch() / "trace.json"
    expect_done(run(python(script("work('work'); raise SystemExit(7)")), environment(trace)), 7)
    expect_equal(ranges(trace), {"work": N_RANGES}, "ranges")
    trace.unlink()
    expect_done(run(python(script("import os; work('work'); os._exit(8)")), environment(trace)), 8)
    expect_equal(ranges(trace), {"work": N_RANGES}, "ranges after _exit")


@case
def wrappers_are_not_the_end():
    program = script("work('work')")
    for wrapper in (["env", "A=1"], ["timeout", "60"], ["sh", "-c", '"$0" "$@"'], ["sh", "-c", 'exec "$0" "$@"'],
                    ["sh", "-c", '"$0" "$@"; true']):
        trace = scratch() / "trace.json"
        expect_done(run([*wrapper, *python(program)], environment(trace)))
        expect_equal(ranges(trace), {"work": N_RANGES}, f"ranges below {wrapper}")


def with_workers(method):
    """Spawned workers leave a resource tracker, which lives as long as the process that waits for its exports."""
    trace = scratch() / "trace.json"
    program = script(f"""
import multiprocessing
if __name__ == "__main__":
    work("work here")
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        pool.map(work, ["work there"] * 4)
        pool.close()
        pool.join()
""")
    expect_done(run(python(program), environment(trace)))
    expect_equal(ranges(trace), {"work here": N_RANGES, "work there": 4 * N_RANGES}, "ranges")


for start_method in ("fork", "spawn", "forkserver"):
    add_case(f"workers_by_{start_method}_are_in_it", with_workers, start_method)


@case
def who_outlives_the_first_process_comes_later():
    trace = scratch() / "trace.json"
    program = script("""
import os, sys
work("work first")
if not os.fork():
    sys.stdin.read()
    work("work later")
""")
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "w") as go:
        result = subprocess.run([str(part) for part in python(program)], env=environment(trace), stdin=read_end,
                                stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)
        os.close(read_end)
        expect_equal(result.returncode, 0, "status")
        expect_equal(ranges(trace), {"work first": N_RANGES}, "ranges while the child lives")
        go.write("go")
    wait_until(lambda: ranges(trace) == {"work first": N_RANGES, "work later": N_RANGES}, "the child's ranges")


@case
def a_stopped_writer_is_not_waited_for():
    trace = scratch() / "trace.json"
    program = script("import sys; work('work'); print('.', flush=True); sys.stdin.read()")
    process = subprocess.Popen([str(part) for part in python(program)], env=environment(trace), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    expect_equal(process.stdout.read(1), b".", "answer")
    writer = wait_until(lambda: writer_of(trace.with_suffix(".torsh")), "a writer")
    os.kill(writer, signal.SIGSTOP)
    try:
        process.communicate(timeout=TIMEOUT_S)
        expect_equal(process.returncode, 0, "status")
        assert not trace.exists()
    finally:
        os.kill(writer, signal.SIGCONT)
    wait_until(trace.exists, "the export of a writer that goes on")
    expect_equal(ranges(trace), {"work": N_RANGES}, "ranges")


@case
def a_killed_program_is_exported_too():
    trace = scratch() / "trace.json"
    program = script("import os, signal; work('work'); os.kill(os.getpid(), signal.SIGKILL)")
    expect_done(run(python(program), environment(trace)), -signal.SIGKILL)
    wait_until(trace.exists, "the export")
    expect_equal(ranges(trace), {"work": N_RANGES}, "ranges")


@case
def the_same_name_serves_run_after_run():
    trace, program = scratch() / "trace.json", script("import sys; work('work ' + sys.argv[1])")
    for i in range(5):
        result = run(python(program, str(i)), environment(trace))
        expect_done(result)
        expect_equal(ranges(trace), {f"work {i}": N_RANGES}, f"ranges of run {i}")
        assert b"can't write" not in result.stderr, result.stderr


@case
def what_cannot_be_written_is_reported_and_harms_nobody():
    folder = scratch()
    (folder / "trace.json").mkdir()
    result = run(python(script("work('work')")), environment(folder / "trace.json"))
    expect_done(result)
    assert b"not all that was to be exported" in result.stderr, result.stderr
    result = run(python(script("work('work')")), environment(folder / "trace.json", TORSH_PROFILER_SUMMARY="1"))
    expect_done(result)
    assert b"can't write" in result.stderr and b"was not written" in result.stderr, result.stderr
    expect_equal(leaks(folder / "trace.torsh")["version"], 1, "version of the report on the recording beside it")


@case
def nobody_else_is_kept_waiting():
    trace = scratch() / "trace.json"
    program = script("import sys; work('work'); print('.', flush=True); sys.stdin.read()")
    process = subprocess.Popen([str(part) for part in python(program)], env=environment(trace), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    expect_equal(process.stdout.read(1), b".", "answer")
    writer = wait_until(lambda: writer_of(trace.with_suffix(".torsh")), "a writer")
    arguments = pathlib.Path(f"/proc/{writer}/cmdline").read_bytes().split(b"\0")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(arguments[arguments.index(b"--socket") + 1].decode())
        connection.send(REQUEST.pack(b"torshrq1", 1, EXPORTS, 0, 0))
        expect_equal(connection.recv(100), b"", "answer")
    assert not trace.exists()
    process.communicate(timeout=TIMEOUT_S)
    assert trace.exists()


main()
