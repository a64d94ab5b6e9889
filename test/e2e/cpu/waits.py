#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What threads waited for, against the clock of a program that waits in every way and knows for what."""

import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403

all_wait()

KINDS = re.findall(r'^WAIT_KIND\(\w+, (\w+),', (ROOT / "agent/wire/wait_kinds.def").read_text(), re.M)
WAIT_NS = 5_000_000
MIN_NS = 50_000
# What the program times: the others are of its helpers, and ends of threads that it awaits.
BY_MAIN = 0


def waits_of(output, process=1):
    """The waits of a process, as events, and its threads in the report."""
    rows = rows_of(output)
    pid = next((row["process"]["pid"] for row in rows
                if isinstance(row.get("process"), dict) and row["process"]["process"] == process), None)
    return ([row for row in rows if row.get("event") == "thread_wait" and row["process"] == process],
            [row for row in off(output)["threads"] if row["pid"] == pid])


def off(output, *options):
    return read_report("cpu", output, "--off", *options)


def shorter(threads, kind):
    return sum(row["shorter_count"] for thread in threads for row in thread["kinds"] if row["kind"] == kind)


def record_waits():
    """The program's own lines, those about short calls apart, and what was recorded."""
    result, output = record([PROGRAMS / "waits"], env={"TORSH_PROFILER_ACTIVITIES": "waits"})
    expect_equal(result.returncode, 0, f"status ({result.stderr.decode()[-500:]})")
    lines = [line.split() for line in result.stdout.decode().splitlines()]
    truth = [(kind, int(object), int(ns)) for kind, object, ns in lines if kind != "short"]
    short = {kind: int(n) for name, kind, n in lines if name == "short"}
    return truth, short, *waits_of(output)


@case
def each_wait_is_recorded_with_what_it_was_for():
    truth, _, waits, _ = record_waits()
    own = iter([row for row in waits if row["thread"] == BY_MAIN])
    assert len(truth) == 25, truth
    for kind, object, ns in truth:
        # Joins of helpers may take long enough to be recorded: these come in between.
        found = next((row for row in own if (KINDS[row["kind"]], row["object"]) == (kind, object) and
                      row["duration_ns"] <= ns and row["duration_ns"] * 2 >= min(ns, WAIT_NS)), None)
        assert found, f"{kind} {object} {ns} was not recorded after those before: {waits}"
        assert found["stack"] and found["begin_ns"] + found["duration_ns"] <= found["at_ns"] + 1_000_000, found
    assert all(row["duration_ns"] >= MIN_NS for row in waits), waits


@case
def short_calls_are_counted():
    _, short, waits, threads = record_waits()
    expect_equal(set(short), {"send", "receive", "semaphore"}, "kinds")
    for kind, n in short.items():
        # One that was interrupted long enough is a wait.
        long = sum(KINDS[row["kind"]] == kind and row["thread"] == BY_MAIN for row in waits)
        found = shorter(threads, kind)
        assert n <= found + long <= n + 12, f"{kind}: {found} counted, {long} waits, {n} by the program"
    assert all(0 <= row["shorter_ns"] <= row["shorter_count"] * MIN_NS for row in threads), threads
    # A free mutex is no call that waits.
    expect_equal(shorter(threads, "mutex"), 0, "free mutexes")


@case
def a_wait_without_an_end_is_recorded_at_the_programs():
    _, _, waits, _ = record_waits()
    [last] = [row for row in waits if row["tid"]]
    expect_equal((KINDS[last["kind"]], last["stack"], waits[-1]), ("signal", 0, last), "the wait")
    assert last["duration_ns"] > 20 * WAIT_NS, last


def rows_of(output):
    return [json.loads(line) for line in torsh("dump", output).splitlines()]


def expect_wakers(arguments, process):
    """
    The program's waits, with who ended them when. Its clock and the recording's begin at different times: woken_ns counts
    from a begin that lies between the program's stamp before the call and the one after it less the wait.
    """
    command = [PROGRAMS / "wakes", *arguments]
    bare = run(command, env=clean_environment())
    result, output = record(command, env={"TORSH_PROFILER_ACTIVITIES": "waits"})
    lines = [line.split() for line in result.stdout.decode().splitlines()]
    expect_equal((result.returncode, [line[:2] for line in lines]),
                 (bare.returncode, [line.split()[:2] for line in bare.stdout.decode().splitlines()]), "status and waits")
    rows = rows_of(output)
    waits = [row for row in rows if row.get("event") == "thread_wait" and row["process"] == process]
    tids = [row["threads"]["tid"] for row in rows if row.get("threads", {}).get("process") == process][-1]
    known = collections.Counter()
    for name, kind, *numbers in lines:
        object, tid, begin, end, waker, before, after = map(int, numbers)
        found = [row for row in waits if (KINDS[row["kind"]], row["object"], tids[row["thread"]]) == (kind, object, tid) and
                 row["duration_ns"] <= end - begin]
        assert len(found) >= 1, f"{name} was not recorded: {waits}"
        # A waiter that waits for the same more than once does so in the order of its lines.
        row = found[0]
        waits.remove(row)
        expect_equal(tids[row["waker"] - 1] if row["waker"] else 0, waker, f"who ended {name}")
        if waker:
            earliest = before - (end - row["duration_ns"]) - 256
            assert earliest <= row["woken_ns"] <= min(after - begin, row["duration_ns"]), (name, earliest, row, after - begin)
            known[kind, tid, waker] += 1
    expect_equal(known.total(), 19, "waits that a thread ended")
    # Helpers wait for each other, too.
    known.update((KINDS[row["kind"]], tids[row["thread"]], tids[row["waker"] - 1]) for row in waits if row["waker"])
    shown = [row for row in off(output)["wakers"] if row["pid"] in pids_of(rows, process)]
    expect_equal({(row["kind"], row["tid"], row["waker_tid"]): row["count"] for row in shown if row["waker_tid"]}, dict(known), "wakers")
    text = torsh("cpu", output, "--off", "--limit", "0")
    assert "ended by" in text and all(str(waker) in text for _, _, waker in known), text


def pids_of(rows, process):
    return {row["process"]["pid"] for row in rows if isinstance(row.get("process"), dict) and row["process"]["process"] == process}


@case
def who_ended_a_wait_is_recorded():
    expect_wakers([], 1)


@case
def who_ended_a_wait_in_a_forked_child_is_recorded():
    expect_wakers(["fork"], 2)


@case
def of_two_that_arrive_at_once_the_last_is_recorded_or_none():
    result, output = record([PROGRAMS / "wakes", "race"], env={"TORSH_PROFILER_ACTIVITIES": "waits"})
    last = [int(line) for line in result.stdout.split()]
    rows = rows_of(output)
    tids = [row["threads"]["tid"] for row in rows if row.get("threads", {}).get("process") == 1][-1]
    waits = [row for row in rows if row.get("event") == "thread_wait" and KINDS[row["kind"]] == "barrier" and row["thread"] == BY_MAIN]
    # The main thread waits in each round, for longer than a wait needs.
    assert len(last) == 200 and 0 not in last, last
    expect_equal(len(waits), len(last), "waits of the main thread")
    known = {i: tids[row["waker"] - 1] for i, row in enumerate(waits) if row["waker"]}
    print(f"note: {len(known)} of {len(waits)} waits have their waker")
    expect_equal(known, {i: last[i] for i in known}, "who came last")


@case
def what_no_thread_ended_has_no_waker():
    _, _, waits, _ = record_waits()
    with_waker = {KINDS[row["kind"]] for row in waits if row["waker"]}
    assert with_waker <= {"mutex", "rwlock", "condition", "semaphore", "barrier", "read", "poll"}, with_waker
    # Of the program's two waits for each of these the second one's time was over.
    for kind in ("condition", "semaphore"):
        timed = [row for row in waits if KINDS[row["kind"]] == kind and row["thread"] == BY_MAIN and row["duration_ns"] >= WAIT_NS]
        assert timed and not timed[-1]["waker"], (kind, timed)


@case
def without_the_activity_nothing_is_in_the_way():
    expected = "read {0}\nnanosleep {0}\npthread_mutex_lock {0}\npthread_mutex_unlock {0}\nsem_post {0}\ngetpid 0\n"
    for activities, is_bound in (("waits", 1), ("heap,python,torch", 0), (None, 0)):
        env = {"TORSH_PROFILER_ACTIVITIES": activities} if activities else {}
        result, output = record([PROGRAMS / "waits", "bound"], env=env)
        expect_equal((result.returncode, result.stdout.decode()), (0, expected.format(is_bound)), f"{activities}")
    result, output = record([PROGRAMS / "waits"], env={"TORSH_PROFILER_ACTIVITIES": "heap"})
    expect_equal(waits_of(output), ([], []), "without the activity")
    assert "were not recorded" in off(output)["reason"], off(output)


@case
def condition_variables_of_an_old_version_are_left_alone():
    result, output = record([PROGRAMS / "waits", "old"], env={"TORSH_PROFILER_ACTIVITIES": "waits"})
    expect_equal((result.returncode, result.stderr), (0, b""), "status and messages")
    if result.stdout:
        raise Skip(result.stdout.decode())
    _, threads = waits_of(output)
    expect_equal(shorter(threads, "condition"), 1, "calls of today's version")


@case
def a_program_without_waits_is_silent():
    _, output = record([PROGRAMS / "nested", "steps", "3"], env={"TORSH_PROFILER_ACTIVITIES": "waits"})
    waits, threads = waits_of(output)
    expect_equal((waits, threads), ([], []), "waits, and threads that made such calls")
    report = off(output)
    expect_equal((report["reason"], report["waits"], report["kinds"]), (None, [], []), "the report")


if __name__ == "__main__":
    main()
