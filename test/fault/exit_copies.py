#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The copy that a process makes of itself at its exit: it changes nothing that the program or its parent can see, ends by
itself, and what is read from it is what the process itself has. Where no copy can be made the process waits instead.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import *  # noqa: E402,F403

PROGRAM = PROGRAMS / "copied"

# What runs when its modules are taken down, after CPython began to end: there is a copy then.
SCRIPT = """
import sys
def make_last():
    import json, os, signal, time
    from io import open # builtins lose theirs
    arguments, own, signals = sys.argv, open("/proc/self/cmdline").read(), []
    signal.signal(signal.SIGCHLD, lambda number, frame: signals.append(number))
    def copies():
        for folder in (f"/proc/{name}/" for name in os.listdir("/proc") if name.isdigit()):
            try:
                # Other tests have copies, too.
                if open(folder + "comm").read() == "torsh-copy\\n" and open(folder + "cmdline").read() == own:
                    yield folder
            except OSError:
                pass
    def look_at_copy():
        # It has its name once it has run, and is the last to get a core.
        end = time.monotonic() + 20
        while not (found := list(copies())) and time.monotonic() < end:
            time.sleep(0.001)
        for folder in found:
            of = dict(line.split(":\\t", 1) for line in open(folder + "status").read().splitlines())
            pid = int(of["Pid"])
            print(json.dumps({"pid": pid, "parent": int(of["PPid"]), "blocked": of["SigBlk"], "session": os.getsid(pid),
                              "descriptors": os.listdir(folder + "fd"), "score": int(open(folder + "oom_score_adj").read())}))
            if arguments[2] == "kill":
                os.kill(pid, signal.SIGKILL)
        if arguments[2] == "writer":
            for name in os.listdir("/proc"):
                if name.isdigit():
                    command = open(f"/proc/{name}/cmdline").read().split("\\0")
                    if command[0] == "torsh-writer" and arguments[3] in command:
                        os.kill(int(name), signal.SIGKILL)
    def look():
        seen = {"children": [open(f"/proc/self/task/{name}/children").read() for name in os.listdir("/proc/self/task")]}
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            seen["waits"] = "for none"
        seen["mask"] = [int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
        seen["descriptors"] = sorted(int(one) for one in os.listdir("/proc/self/fd") if int(one) < 512)
        seen["signals"] = signals
        print(json.dumps(seen))
        if len(arguments) > 2:
            look_at_copy()
        sys.stdout.flush()
    class Last:
        def __del__(self):
            look()
    return Last()
kept = [{"n": i} for i in range(int(sys.argv[1]))]
last = make_last()
"""


def verdicts_of(output):
    """The last row of verdicts of the recording's largest process."""
    rows = [json.loads(line)["verdicts"] for line in torsh("dump", output).splitlines() if line.startswith('{"verdicts"')]
    # Later pieces replace earlier ones: a checkpoint has what was judged until then.
    last = {row["process"]: row for row in rows if not row.get("reason") and row.get("bytes")}
    return max(last.values(), key=lambda row: row["read_bytes"])


def lost_sizes(output):
    report = json.loads(torsh("leaks", output, "--json"))
    return {leak["bytes"] for leak in report["leaks"] if leak["class"] == "lost"}


def judged(*arguments, **options):
    """(the run, its last verdicts, what was lost) of the program with these arguments."""
    bare = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
    run, output = record([PROGRAM, *arguments], **options)
    expect_equal((run.returncode, run.stdout), (3, bare.stdout), "status and output")
    return verdicts_of(output), lost_sizes(output)


@case
def a_large_process_is_read_from_its_copy():
    verdicts, lost = judged("large")
    expect_equal((verdicts["copies"], lost), (1, {7777}), "copies, and what is lost")


@case
def a_small_process_is_read_itself():
    verdicts, lost = judged("small")
    expect_equal((verdicts["copies"], lost), (0, {7777}), "copies, and what is lost")


@case
def memory_that_a_fork_lacks_keeps_blocks():
    verdicts, lost = judged("large", "unforked")
    expect_equal((verdicts["copies"], lost), (0, {7777}), "copies, and what is lost")


@case
def who_takes_orphans_gets_none():
    verdicts, lost = judged("large", "reaper")
    expect_equal((verdicts["copies"], lost), (0, {7777}), "copies, and what is lost")


@case
def threads_that_allocate_are_stopped_for_the_copy():
    verdicts, lost = judged("large", "threads")
    expect_equal((verdicts["copies"], verdicts["threads"], 7777 in lost), (1, 9, True), "copies, threads, and whether it is lost")


@case
def handlers_of_signals_do_not_end_the_wait():
    for size, copies in (("large", 1), ("small", 0)):
        verdicts, lost = judged(size, "timers")
        expect_equal((verdicts["copies"], lost), (copies, {7777}), f"copies, and what is lost, of a {size} process")


@case
def handlers_wait_beside_other_threads():
    """Signals come until the end: those that come before the copy are put off until the memory was read in place."""
    for size in "large", "small":
        for _ in range(5):
            verdicts, lost = judged(size, "threads", "timers")
            expect_equal((verdicts["threads"], 7777 in lost), (9, True), f"threads of a {size} process, and whether it is lost")


def signalled_while_stopped(number, options=0):
    """What waitpid has of a process that gets a signal once its other threads are stopped at its exit."""
    environment = agent_environment(scratch() / "out.torsh", TORSH_PROFILER_SUMMARY="0")
    with subprocess.Popen([PROGRAM, "large", "threads"], env=environment, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: re.search(r"\nTracerPid:\t[^0]|\nState:\tZ", open(f"/proc/{process.pid}/status").read()),
                   "its threads are stopped, or it ended")
        os.kill(process.pid, number)  # Popen's own way reaps it if it has ended
        seen = []
        wait_until(lambda: seen.append(os.waitpid(process.pid, os.WNOHANG | options)) or seen[-1][0], f"its parent sees {number.name}")
        status = seen[-1][1]
        if os.WIFSTOPPED(status):
            os.kill(process.pid, signal.SIGCONT)
            status = os.waitpid(process.pid, 0)[1]
        process.returncode = os.waitstatus_to_exitcode(status)
        return seen[-1][1], process.returncode


@case
@waits
def who_is_ended_while_it_is_looked_at_ends_at_once():
    for number in (signal.SIGKILL, signal.SIGTERM) * 4:
        # It may have been about to end.
        _, status = signalled_while_stopped(number)
        assert status in (-number, 3), (number, status)


@case
@waits
def who_is_stopped_while_it_is_looked_at_stops_and_goes_on():
    stops = 0
    for _ in range(20):
        seen, status = signalled_while_stopped(signal.SIGSTOP, os.WUNTRACED)
        expect_equal(status, 3, "status in the end")
        stops += os.WIFSTOPPED(seen)
        if stops == 3:
            return
    raise Skip(f"its parent saw {stops} stops: the threads are not stopped here, or it ends before")


@case
def without_another_process_it_waits():
    need_root()
    folder = scratch("everyones")
    folder.chmod(0o777)
    verdicts, lost = judged("large", "limited", output=folder / "out.torsh")
    expect_equal((verdicts["copies"], lost), (0, {7777}), "copies, and what is lost")


@case
def the_program_sees_no_copy():
    command = [sys.executable, "-c", SCRIPT, "300000"]
    bare = subprocess.run(command, stdout=subprocess.PIPE, timeout=TIMEOUT_S, check=True)
    run, output = record(command)
    expect_equal((run.returncode, json.loads(run.stdout)), (0, json.loads(bare.stdout)), "what it sees while it ends")
    expect_equal(verdicts_of(output)["copies"], 2, "copies")


@case
def requests_in_the_exit_have_moments_of_their_own():
    for _ in range(3):
        output = scratch() / "out.torsh"
        with started([sys.executable, "-c", SCRIPT, "300000"], agent_environment(output)) as process:
            wait_until(output.exists, "the recording")
            n_asked = 0
            while process.poll() is None:
                run([TORSH, "leaks", "--now", str(process.pid)])
                n_asked += 1
        assert n_asked, "nothing was requested"
        expect_equal(process.returncode, 0, "status")
        report = json.loads(torsh("leaks", output, "--json"))
        verdicts = verdicts_of(output)
        expect_equal((report["reachability"]["judged"], verdicts["has_begin"], verdicts["copies"]), (True, True, 2),
                     f"what was judged at the exit, beside {n_asked} requests")


def is_there(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@case
def a_copy_has_nothing_and_ends():
    run, output = record([sys.executable, "-c", SCRIPT, "1000000", "look", str(os.getpid())])
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    expect_equal((run.returncode, len(lines)), (0, 2), f"status, and lines with the copy's ({run.stdout})")
    copy = lines[1]
    expect_equal((copy["descriptors"], copy["session"], copy["score"]), ([], copy["pid"], 1000), "descriptors, session, score")
    # All but SIGKILL and SIGSTOP, which nobody can block.
    expect_equal(int(copy["blocked"], 16) | 1 << signal.SIGKILL - 1 | 1 << signal.SIGSTOP - 1, (1 << 64) - 1, "blocked signals")
    expect_equal(verdicts_of(output)["copies"], 2, "copies")
    wait_until(lambda: not is_there(copy["pid"]), "the end of the copy, as the recording is complete")


@case
@waits
def without_a_writer_a_copy_ends():
    output = scratch() / "out.torsh"
    run, output = record([sys.executable, "-c", SCRIPT, "1000000", "writer", str(output)], output=output)
    copy = json.loads(run.stdout.splitlines()[1])
    expect_equal(run.returncode, 0, "status")
    wait_until(lambda: not is_there(copy["pid"]), "the end of the copy, whose writer is dead")


@case
def a_killed_copy_is_no_image():
    run, output = record([sys.executable, "-c", SCRIPT, "1000000", "kill", str(os.getpid())])
    expect_equal((run.returncode, len(run.stdout.splitlines())), (0, 2), f"status, and lines with the copy's ({run.stdout})")
    report = json.loads(torsh("leaks", output, "--json"))
    verdicts = verdicts_of(output)
    # What was read before its end was not all: the moment counts as not judged, and the last one is whole.
    expect_equal((report["reachability"]["judged"], verdicts["copies"], verdicts["has_begin"]), (True, 1, False), "what was judged")


@case
def the_output_ends_with_the_process():
    # Who reads the program's output to its end does not wait for the copy, which is there for longer.
    pipe = subprocess.Popen([sys.executable, "-c", SCRIPT, "1000000", "look", str(os.getpid())], stdout=subprocess.PIPE,
                            env=agent_environment(scratch() / "out.torsh"))
    text = pipe.stdout.read()
    copy = json.loads(text.splitlines()[1])
    assert copy["parent"] != pipe.pid, copy
    expect_equal(pipe.wait(TIMEOUT_S), 0, "status")


main()
