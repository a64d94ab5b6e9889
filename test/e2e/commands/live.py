#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Running sessions: snapshots, stop and start, and list. The targets obey commands."""

import pathlib
import re
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import CHILD, FIRST, OBEYS, RESIZED, SECOND, THIRD, Target, kept, session_of, snapshot  # noqa: E402
from schema import expect_fits  # noqa: E402

N_BLOCKS, FREED = 10, 4


@case
def a_snapshot_has_what_was_there_and_nothing_else():
    with Target() as target:
        target.send("aabf")
        path = snapshot(target.pid)
        expect_equal(kept(path), {"keep_first": (16, 16 * FIRST), "keep_second": (10, 10 * SECOND)}, "live blocks")
        report = leaks(path)
        expect_equal([process["end"] for process in report["processes"]], ["running"], "processes")
        expect_equal(report["recording"]["snapshot_of"], str(recordings(target.output)[0]), "path of the recording")
        expect_fits("leaks", report)
        check_counts(report["events"])
        # Each later one is as exact, whatever the recording's own checkpoints have by then.
        for n in range(3, 8):
            target.send("b")
            expect_equal(kept(snapshot(target.pid))["keep_second"][0], N_BLOCKS * (n - 1), "live blocks of keep_second")
        target.end()
    expect_equal(kept(target.output), {"keep_first": (16, 16 * FIRST), "keep_second": (60, 60 * SECOND)}, "leaks at the end")
    assert leaks(target.output)["recording"]["snapshot_of"] is None


@case
def a_snapshot_has_the_peak_so_far():
    with Target() as target:
        target.send("aaaaaff")
        before = peak(snapshot(target.pid))
        target.send("bbbbbbbbb")
        after = peak(snapshot(target.pid))
        target.end()
    held = {size: total([e for e in report["holders"] if name in functions(e)], "blocks")
            for report, size, name in ((before, "before", "keep_first"), (after, "after", "keep_second"))}
    expect_equal(held, {"before": 50, "after": 90}, "blocks at the peaks")
    assert before["peak_bytes"] < after["peak_bytes"], (before["peak_bytes"], after["peak_bytes"])
    expect_equal(total(before["holders"]), before["peak_bytes"], "sum of the holders")


@case
def snapshots_do_not_disturb_threads_at_full_speed():
    with Target() as target:
        target.send("am")
        produced = 0
        for _ in range(3 if IS_QUICK else 10):
            path = snapshot(target.pid)
            report, overview = leaks(path), read_report("report", path)
            check_counts(report["events"])
            assert report["events"]["produced"] >= produced
            produced = report["events"]["produced"]
            heap = overview["heap"]
            expect_equal(heap["allocations"] - heap["frees"], report["leaked_blocks"] + report["bookkeeping"]["blocks"]
                         + report["suppressed"]["blocks"], "allocations less frees are the live blocks")
            expect_equal(kept(path)["keep_first"], (10, 10 * FIRST), "blocks from before")
        target.send("M")
        target.end()
    report = leaks(target.output)
    check_counts(report["events"])
    expect_equal(kept(target.output), {"keep_first": (10, 10 * FIRST)}, "leaks at the end")


@case
def a_snapshot_of_a_tree_has_processes_that_ended():
    with Target() as target:
        target.send("axe")
        report = leaks(snapshot(target.pid))
        expect_equal(sorted(process["end"] for process in report["processes"]), ["exec", "exit 0", "exit 0", "running"],
                     "ends")
        expect_equal(kept(snapshot(target.pid))["keep_in_child"], (20, 20 * CHILD), "blocks of the children")
        together = peak(snapshot(target.pid))
        expect_equal(total(together["holders"]), together["peak_bytes"], "the session's peak")
        target.end()


@case
def a_full_recording_gives_snapshots_without_events():
    with Target(TORSH_PROFILER_RECORD="full") as target:
        target.send("ab")
        path = snapshot(target.pid)
        expect_equal(kept(path)["keep_first"], (10, 10 * FIRST), "live blocks")
        assert not [line for line in torsh("dump", path).splitlines() if '"event"' in line]
        target.end()


@case
def names_are_in_a_snapshot():
    program = scratch("program") / "obeys"
    shutil.copy(OBEYS, program)
    with Target([program]) as target:
        target.send("ab")
        path = snapshot(target.pid)
        target.end()
    program.unlink()
    expect_equal(kept(path), {"keep_first": (10, 10 * FIRST), "keep_second": (10, 10 * SECOND)}, "live blocks")


PYTHON_TARGET = """
import sys
kept = []
def keep():
    kept.append(bytearray(1234567))
while sys.stdin.buffer.raw.read(1):
    keep()
    sys.stdout.write(".")
    sys.stdout.flush()
"""


@case
def a_python_program_is_seen_by_its_lines():
    script = scratch("script") / "program.py"
    script.write_text(PYTHON_TARGET)
    with Target([sys.executable, "-I", script]) as target:
        target.send("123")
        report = leaks(snapshot(target.pid), "--stacks", "python")
        found = [entry for entry in report["leaks"] if "keep" in functions(entry)]
        expect_equal((total(found, "blocks"), total(found)), (3, 3 * 1234568), "blocks and bytes of keep")
        expect_equal({entry["stack"][0]["line"] for entry in found}, {5}, "line")
        target.send("4")
        lines = torsh("top", "--once", "--interval", "10", str(target.pid)).splitlines()
        line = next(line for line in lines if "keep  " in line)
        assert re.match(r"\s*4.71 MiB\s+4\s.*program.py:5$", line), line
        target.end()


# ---- stop and start --------------------------------------------------------------------------------------------------

@case
def blocks_of_a_pause_are_in_no_report():
    with Target() as target:
        target.send("ab")
        torsh("pause", target.pid)
        # Freed and resized in the pause: recorded blocks stay recorded.
        target.send("cafr")
        report = leaks(snapshot(target.pid))
        expect_equal(report["recording"]["pauses"][0]["until_ns"], None, "end of the pause")
        torsh("resume", target.pid)
        target.send("cb")
        target.end()
    # Of a: ten from before, four of them freed; the last of all, resized in the pause, was one of the pause's.
    expect_equal(kept(target.output), {"keep_first": (6, 6 * FIRST), "keep_second": (20, 20 * SECOND),
                                       "keep_third": (10, 10 * THIRD)}, "leaks")
    report = leaks(target.output)
    pause, = report["recording"]["pauses"]
    assert 0 < pause["from_ns"] < pause["until_ns"], pause
    expect_fits("leaks", report)
    check_counts(report["events"])
    text = torsh("leaks", target.output)
    assert re.search(r"note: recording was paused .* after the start, for ", text), text
    assert b"recording was paused" in run([TORSH, "check", target.output, "--max-leak", "1G"]).stderr


@case
def a_block_that_is_resized_in_a_pause_stays_its_stacks():
    with Target() as target:
        target.send("a")
        torsh("pause", target.pid)
        target.send("r")
        torsh("resume", target.pid)
        target.end()
    expect_equal(kept(target.output), {"keep_first": (10, 9 * FIRST + RESIZED)}, "leaks")


@case
def frees_of_blocks_from_a_pause_are_counted_apart():
    with Target() as target:
        target.send("a")
        torsh("pause", target.pid)
        target.send("b")
        torsh("resume", target.pid)
        target.send("gs")
        target.end()
    events = leaks(target.output)["events"]
    expect_equal((events["unknown_frees"], events["implicit_frees"]), (0, 0), "faults")
    # Four frees and one realloc of blocks from the pause.
    expect_equal(events["pause_frees"], FREED + 1, "frees of blocks from the pause")
    found = [e for e in leaks(target.output)["leaks"] if "resize_last" in functions(e)]
    expect_equal((total(found, "blocks"), total(found)), (1, RESIZED), "the one that was resized afterwards")


@case
def children_that_begin_in_a_pause_are_paused():
    with Target() as target:
        target.send("xe")
        torsh("pause", target.pid)
        target.send("xxee")
        torsh("resume", target.pid)
        target.send("xe")
        target.end()
    expect_equal(kept(target.output), {"keep_in_child": (40, 40 * CHILD)}, "leaks")


@case
def threads_at_full_speed_come_through_pauses():
    with Target() as target:
        target.send("am")
        for _ in range(3 if IS_QUICK else 10):
            torsh("pause", target.pid)
            torsh("resume", target.pid)
        target.send("bM")
        target.end()
    report = leaks(target.output)
    check_counts(report["events"])
    expect_equal(report["events"]["unknown_frees"], 0, "unknown frees")
    expect_equal(report["events"]["implicit_frees"], 0, "implicit frees")
    expect_equal(kept(target.output), {"keep_first": (10, 10 * FIRST), "keep_second": (10, 10 * SECOND)}, "leaks")
    expect_equal(entries_through(report["leaks"], "churn"), [], "leaks of the threads")
    expect_equal(len(report["recording"]["pauses"]), 3 if IS_QUICK else 10, "pauses")


@case
def hooks_send_no_new_blocks_in_a_pause():
    with Target() as target:
        # A process that answers has sent its hello.
        target.send("a")
        torsh("pause", target.pid)
        target.send("a")
        before = session_of(target.pid)["processes"][0]["produced"]
        target.send("bbbbcccc")
        after = session_of(target.pid)["processes"][0]["produced"]
        expect_equal(after - before, 0, "events of 80 allocations")
        target.end()


@case
@waits
def pausing_twice_is_reported():
    with Target() as target:
        target.send("a")
        assert torsh("resume", target.pid).startswith("was not paused")
        assert torsh("pause", target.pid).startswith("paused")
        assert torsh("pause", target.pid).startswith("was paused before")
        expect_equal(session_of(target.pid)["paused"], True, "paused")
        assert "(paused)" in torsh("list")
        assert torsh("resume", target.pid).startswith("resumed")
        expect_equal(session_of(target.pid)["paused"], False, "paused")
        target.end()
    expect_equal(len(leaks(target.output)["recording"]["pauses"]), 1, "pauses")


@case
def stop_pauses_what_can_not_be_armed_and_start_resumes():
    with Target() as target:
        target.send("a")
        assert torsh("stop", target.pid).startswith("paused")
        assert torsh("start", target.pid).startswith("resumed")
        target.end()
    listed = re.findall(r"(?m)^  torsh (\w+) ", torsh("--help"))
    expect_equal({"pause", "resume", "stop", "start", "finish"} & set(listed), {"pause", "resume", "stop"}, "of these, in --help")


# ---- list and top ----------------------------------------------------------------------------------------------------

@case
@waits
def list_shows_sessions_and_only_those_that_live():
    with Target() as one, Target(output=scratch("other")) as other:
        one.send("a")
        other.send("ab")
        listed = json.loads(torsh("list", "--json"))
        expect_fits("list", listed)
        for target in (one, other):
            session = session_of(target.pid)
            expect_equal(session["recording"], str(recordings(target.output)[0]), "recording")
            expect_equal(os.path.realpath(f"/proc/{session['writer_pid']}/exe"), str(BUILD / "torsh-writer"), "writer")
            expect_equal(len(session["processes"]), 1, "processes")
            # The writer's pid names the session as well.
            torsh("snapshot", session["writer_pid"], "-o", scratch("by-writer") / "x.torsh")
            line, = [line for line in torsh("list").splitlines() if str(recordings(target.output)[0]) in line]
            expect_equal(line.split()[:3], [str(session["writer_pid"]), str(target.pid), "obeys"], "line")
        live = session_of(other.pid)["processes"][0]
        assert live["live_bytes"] >= 10 * (FIRST + SECOND) and live["live_blocks"] >= 20, live
        other.end()
        wait_until(lambda: not session_of(other.pid), "the session to end, however often it is requested")
        assert session_of(one.pid)
        one.end()


@case
def a_directory_without_a_writer_is_passed_over():
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"torsh-{os.getuid()}-1-", dir="/tmp"))
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stale:
            stale.bind(str(folder / "socket"))
        result = run([TORSH, "list"])
        expect_equal(result.returncode, 0, "status of torsh list")
        # Other tests' writers may cause messages.
        assert folder.name.encode() not in result.stdout + result.stderr, result
    finally:
        shutil.rmtree(folder)


main()
