#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Faults of the writer do not affect the target, and the report lists what is missing."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
from harness import *  # noqa: E402,F403

# Three events a block, of two bytes at least.
RING_FULL_BLOCKS = (1 << 20) // 6
WRITER = BUILD / "torsh-writer"
STUCK_AFTER_S = 2  # agent/producer/backpressure.c


def holds_file_below(pid, folder):
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if pathlib.Path(os.readlink(fd)).is_relative_to(folder):
                return True
        except OSError:
            pass
    return False


def writer_of(output):
    """Pid of the writer that has a recording below output open, or None."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == str(WRITER) and holds_file_below(entry.name, output):
                return int(entry.name)
        except OSError:
            pass
    return None


def run_beside(strike, n_blocks=2_000_000, how="return", **variables):
    """Starts the target, strikes its writer once there is one, and lets the target come to its end."""
    output, counts = scratch(), committed.Counts(scratch("counts"))
    env = agent_environment(output, **variables)
    with started(committed.command(counts, n_blocks, 1, how), env, stderr=subprocess.PIPE) as process:
        pid = wait_until(lambda: writer_of(output), "a writer")
        wait_until(lambda: counts.kept() > RING_FULL_BLOCKS, "more blocks than a ring holds: the writer is at work")
        strike(pid)
        _, words = process.communicate(timeout=TIMEOUT_S)
    assert counts.all_there(), "the target did not come to its end"
    expect_equal(counts.kept(), n_blocks, "blocks")
    expect_equal(process.returncode, 9, "status of the target")
    return output, counts, words


def expect_reported(output, why):
    """Every report begins with what is missing, none calls itself complete, and a check fails unless that is allowed."""
    for command in ("leaks", "peak", "report", "ops", "regions", "steps", "modules", "kernels", "tensors", "whatif", "rss"):
        first = torsh(command, output).splitlines()[0]
        assert first.startswith("Incomplete: ") and why in first, f"torsh {command} begins with {first!r}"
        expect_equal(read_report(command, output)["recording"]["complete"], False, f"{command}: complete")
    assert "BROKEN Incomplete: " in torsh("check", output, "--max-leak", "1T", expect=1)
    assert "BROKEN Incomplete: " not in run([TORSH, "check", output, "--max-leak", "1T", "--allow-loss"]).stdout.decode()


@case
def target_goes_on_when_the_writer_is_killed():
    output, counts, words = run_beside(lambda pid: os.kill(pid, signal.SIGKILL))
    assert b"the writer was killed" in words, f"stderr: {words!r}"
    events = leaks(output)["events"]
    expect_equal(events["produced"], events["delivered"] + events["dropped"], "produced")
    expect_reported(output, "the writer was killed")
    blocks, _ = committed.reported(output)
    assert blocks <= counts.kept()


@case
@waits
def a_stopped_writer_goes_on_where_it_was():
    # It is continued only after the target ended: the target may not wait for it without end.
    stopped = []

    def stop(pid):
        os.kill(pid, signal.SIGSTOP)
        stopped.append(pid)

    try:
        output, counts, _ = run_beside(stop, n_blocks=1_000_000)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    blocks, _ = committed.reported(output)
    events = leaks(output)["events"]
    expect_equal(events["produced"], events["delivered"] + events["dropped"], "produced")
    assert events["dropped"] > 0, "the ring was never full: the test shows nothing"
    expect_reported(output, "found their ring full")
    # What is missing is counted: each lost block is a dropped event.
    assert counts.kept() - blocks <= events["dropped"], f"{counts.kept() - blocks} blocks lost, {events} printed"


def states(pid):
    """One letter for each thread of a process, as ps has them."""
    return {(task / "stat").read_text().rsplit(")", 1)[1].split()[0] for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}


def waits_for_room(pid):
    """A thread that has nothing else to wait for while it allocates."""
    return states(pid) == {"S"}


def run_until_it_waits(act, n_blocks=400_000):
    """With the writer stopped, calls act(target) when the target's ring is full; nothing is lost."""
    output, counts = scratch(), committed.Counts(scratch("counts"))
    with started(committed.command(counts, n_blocks, 1), agent_environment(output)) as process:
        writer = wait_until(lambda: writer_of(output), "a writer")
        wait_until(lambda: counts.kept() > RING_FULL_BLOCKS, "more blocks than a ring holds: the writer is at work")
        os.kill(writer, signal.SIGSTOP)
        try:
            wait_until(lambda: waits_for_room(process.pid), "a full ring")
            act(process.pid)
        finally:
            os.kill(writer, signal.SIGCONT)
        process.wait(timeout=TIMEOUT_S)
    events = leaks(output)["events"]
    expect_equal(events["dropped"], 0, f"dropped, of {events}")
    committed.expect_all_reported(output, counts)


@case
@waits
def what_was_frozen_together_goes_on_without_loss():
    def freeze(target):
        # As `docker pause` does, and a batch system that suspends jobs.
        os.kill(target, signal.SIGSTOP)
        wait_until(lambda: states(target) == {"T"}, "the target to stop")
        thaw_at = time.monotonic() + 2 * STUCK_AFTER_S
        wait_until(lambda: time.monotonic() > thaw_at, "the time after which a writer counts as stuck")
        os.kill(target, signal.SIGCONT)

    run_until_it_waits(freeze)


@case
def readers_of_the_targets_stderr_do_not_wait_for_the_writer():
    # Where no summary is wanted the writer has no need of it; `$(program 2>&1)` ends when the program does.
    output, counts = scratch(), committed.Counts(scratch("counts"))
    env = agent_environment(output)
    with started(committed.command(counts, 100, 1, "wait"), env, stderr=subprocess.PIPE) as process:
        pid = wait_until(lambda: writer_of(output), "a writer")
        os.kill(pid, signal.SIGSTOP)
        try:
            process.kill()
            expect_equal(process.communicate(timeout=TIMEOUT_S)[1], b"", "stderr")
        finally:
            os.kill(pid, signal.SIGCONT)


def summary_environment(output):
    return agent_environment(output, TORSH_PROFILER_SUMMARY=1)


@case
def a_pipeline_ends_when_the_program_does():
    # The writer is stopped before it can end: a reader of the program's stderr must not wait for it.
    output, counts = scratch(), committed.Counts(scratch("counts"))
    with started(committed.command(counts, 100, 1, "wait"), summary_environment(output), stderr=subprocess.PIPE) as process:
        pid = wait_until(lambda: writer_of(output), "a writer")
        held = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        assert not any(name.startswith("pipe:") for name in held), f"the writer holds {held}"
        os.kill(pid, signal.SIGSTOP)
        try:
            process.kill()
            expect_equal(process.communicate(timeout=TIMEOUT_S)[1], b"", "stderr")
        finally:
            os.kill(pid, signal.SIGCONT)


@case
def the_summary_is_there_when_the_program_has_ended():
    for how in ("return", "_exit", "quick_exit"):
        output, counts = scratch(), committed.Counts(scratch("counts"))
        with started(committed.command(counts, 1000, 1, how), summary_environment(output), stderr=subprocess.PIPE) as process:
            words = process.communicate(timeout=TIMEOUT_S)[1].decode()
        assert "torsh: committed (pid " in words and "1,000 blocks alive at the end" in words and str(output) in words, words
        expect_equal(words.count("torsh leaks"), 1, f"summaries in {words}")


@case
@waits
def an_exit_does_not_wait_for_a_stopped_writer():
    output, counts = scratch(), committed.Counts(scratch("counts"))
    env = summary_environment(output)
    env["TORSH_PROFILER_EXPORT_FORMAT"] = "folded"
    gate = ["sh", "-c", f"{shell_words(*committed.command(counts, 10))}; read line"]
    process = subprocess.Popen(gate, env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = wait_until(lambda: writer_of(output), "a writer")
    wait_until(counts.all_there, "all blocks")
    os.kill(pid, signal.SIGSTOP)
    try:
        process.communicate(b"go\n", timeout=30)
    finally:
        os.kill(pid, signal.SIGCONT)
    expect_equal(process.returncode, 0, "status of the target")


@case
def the_writer_is_nobodys_child():
    script = "import os, subprocess; subprocess.run(['true'])\ntry: os.wait()\nexcept ChildProcessError: print('none')"
    result, output = record([sys.executable, "-c", script])
    expect_equal(result.stdout, b"none\n", "children that the target sees")
    assert recordings(output)


@case
def the_writer_ends_after_its_targets():
    output, counts = scratch(), committed.Counts(scratch("counts"))
    with started(committed.command(counts, 10, 1, "wait"), agent_environment(output)) as process:
        pid = wait_until(lambda: writer_of(output), "a writer")
        wait_until(counts.all_there, "all blocks")
        process.kill()
        process.wait()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the writer")
    committed.expect_all_reported(output, counts)


@case
def signals_of_the_terminal_do_not_end_the_writer():
    output, counts = scratch(), committed.Counts(scratch("counts"))
    with started(committed.command(counts, 1000, 1, "wait"), agent_environment(output), start_new_session=True) as process:
        wait_until(counts.all_there, "all blocks")
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
    expect_equal(process.returncode, -signal.SIGINT, "status of the target")
    committed.expect_all_reported(output, counts)


@case
def signals_to_a_whole_job_do_not_end_the_writer():
    # As systemd, a batch system, timeout and Ctrl-C send them, and what they send before; to threads' own as well.
    kept = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT,
            signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS}

    def send_all(writer):
        for number in signal.valid_signals() - kept:
            os.kill(writer, number)

    output, counts, _ = run_beside(send_all)
    committed.expect_all_reported(output, counts)
    assert leaks(output)["recording"]["complete"], "the recording isn't complete"


@case
@waits
def the_writer_can_be_ended():
    output, counts = scratch(), committed.Counts(scratch("counts"))
    with started(committed.command(counts, 1000, 1, "wait"), agent_environment(output)) as process:
        pid = wait_until(lambda: writer_of(output), "a writer")
        wait_until(counts.all_there, "all blocks")
        assert torsh("end", process.pid).startswith("ended: 1 process")
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the writer")
        expect_equal(process.poll(), None, "status of the target, which runs on")
    committed.expect_all_reported(output, counts)
    assert not leaks(output)["recording"]["complete"], "the recording is printed to be complete"


def runs_with(pid):
    return {"policy": os.sched_getscheduler(pid), "nice": os.getpriority(os.PRIO_PROCESS, pid), "cpus": os.sched_getaffinity(pid),
            "oom_score_adj": int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text())}


@case
def the_writer_keeps_nothing_of_the_targets_priority():
    need_root()
    one_cpu = str(min(os.sched_getaffinity(0)))
    # The agent comes with the program only: a process before it would start the writer with what it has itself.
    output, counts = scratch(), committed.Counts(scratch("counts"))
    command = [need_command("nice"), "-n", -5 - os.getpriority(os.PRIO_PROCESS, 0), need_command("taskset"), "-c", one_cpu,
               need_command("chrt"), "-f", "1", "env", *(f"{name}={value}" for name, value in agent_environment(output).items())]
    command += committed.command(counts, 10, 1, "wait")
    with started(command, clean_environment()):
        wait_until(counts.all_there, "all blocks")
        pid = wait_until(lambda: writer_of(output), "a writer")
        wanted = {"policy": os.SCHED_BATCH, "nice": 0, "cpus": os.sched_getaffinity(0), "oom_score_adj": 1000}
        # It takes them while the program runs already.
        wait_until(lambda: runs_with(pid) == wanted, f"a writer that runs with {wanted}")


def own_bytes(pid):
    """What a process has of memory that no file backs, as the kernel sums it up."""
    return 1024 * sum(int(line.split()[1]) for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines()
                      if line.startswith("Anonymous:"))


def writer_with_blocks(n_blocks):
    """The writer's own bytes when it has folded so many live blocks, and the report's value."""
    output, counts = scratch(), committed.Counts(scratch("counts"))
    with started(committed.command(counts, n_blocks, 1, "wait"), agent_environment(output)) as process:
        wait_until(counts.all_there, "all blocks")
        writer = wait_until(lambda: writer_of(output), "a writer")
        # The answer comes when all is folded that was there before.
        torsh("snapshot", process.pid, "-o", scratch("now") / "now.torsh")
        n_bytes = own_bytes(writer)
        process.kill()
    wait_until(lambda: not os.path.exists(f"/proc/{writer}"), "the end of the writer")
    return n_bytes, read_report("report", output)["writer"], torsh("report", output, "--verbose")


@case
def reports_show_what_the_writer_takes():
    # With the fewer ones, too, all else that a busy writer has is there.
    # So many that a huge page more or less at the end of a table is no tenth.
    n_few, n_many = 200_000, 2_000_000
    few, _, _ = writer_with_blocks(n_few)
    many, printed, text = writer_with_blocks(n_many)
    each = (many - few) / (n_many - n_few)
    # Of the moment with the most memory, which may be a little before the last block.
    assert n_many * 0.95 <= printed["live_blocks"] < n_many + 1000, printed
    assert abs(printed["resident_bytes"] - many) < many / 6, f"{many} bytes in smaps, {printed}"
    assert abs(printed["bytes_per_block"] - each) < each / 10, f"{each} bytes a block by smaps, {printed}"
    assert printed["bytes_per_block"] < 47, printed
    assert f"({printed['bytes_per_block']:.1f} bytes each)" in text, text


# What limits a group: a file of version 1, and files of version 2 with their contents. By hand with
# FAULT_GROUP_FORM (test/cgroup2/run does it in a machine with a version 2 controller): "parent" has
# the limit on a group around the program's; with "together" the kernel kills all of a group or
# nothing.
GROUP_FORMS = {
    "max": ("memory.limit_in_bytes", {"memory.max": "{}"}),
    "parent": ("memory.limit_in_bytes", {"memory.max": "{}"}),
    "high": (None, {"memory.high": "{}"}),
    "together": (None, {"memory.max": "{}", "memory.oom.group": "1"}),
}
GROUP_FORM = os.environ.get("FAULT_GROUP_FORM", "max")


def make_group(base, files, limit_bytes):
    """A fresh cgroup below base with that limit; None: none can be made there."""
    group = pathlib.Path(base) / f"torsh-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        return None
    try:
        for name, text in files.items():
            (group / name).write_text(text.format(limit_bytes))
        return group
    except OSError:
        group.rmdir()
        return None


def memory_group(limit_bytes):
    """A fresh cgroup with that limit on memory, of either version: its folder, and that of the one a program enters."""
    need_root()
    first, second = GROUP_FORMS[GROUP_FORM]
    group = (first and make_group("/sys/fs/cgroup/memory", {first: "{}"}, limit_bytes)) or \
        make_group("/sys/fs/cgroup", second, limit_bytes)
    if not group:
        raise Skip("no memory cgroup can be made here")
    inner = group / "inner" if GROUP_FORM == "parent" else group
    inner.mkdir(exist_ok=True)
    return group, inner


def n_killed(group):
    """How many processes of the group, or of those in it, the kernel has killed for want of memory."""
    if (group / "memory.events").exists():
        files = [group / "memory.events"]  # version 2 counts those of the groups in it, too
    else:
        files = group.rglob("memory.oom_control")
    lines = [line.split() for path in files for line in path.read_text().splitlines() if line.startswith("oom_kill ")]
    if not lines:
        raise Skip("this kernel doesn't count whom it kills")
    return sum(int(count) for _, count in lines)


def group_size(n_blocks, n_mib):
    """How many blocks in how large a group, if not given by hand."""
    return int(os.environ.get("FAULT_GROUP_BLOCKS", n_blocks)), int(os.environ.get("FAULT_GROUP_MIB", n_mib))


def is_removed(group):
    """Removes the group; not while something runs in it, which a list of its processes may have left out already."""
    with contextlib.suppress(OSError):
        group.rmdir()
        return True
    return False


def run_in_group(limit_bytes, n_blocks):
    """Bare and with the agent, in a cgroup that the bare program fits: the result and how many the kernel killed there."""
    group, inner = memory_group(limit_bytes)
    enter = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', inner]
    try:
        bare = run([*enter, *committed.command(committed.Counts(scratch("bare")), n_blocks)])
        expect_equal(bare.returncode, 9, "status of the bare program")
        output, counts = scratch(), committed.Counts(scratch("counts"))
        # The agent, and with it the writer, begins behind the shell that enters the group.
        variables = [f"{name}={value}" for name, value in agent_environment(output).items()]
        result = run([*enter, "env", *variables, *committed.command(counts, n_blocks)])
        expect_equal((result.returncode, counts.kept()), (9, n_blocks), f"status and blocks ({result.stderr!r})")
        wait_until(lambda: not (inner / "cgroup.procs").read_text(), "the end of what runs there")
        return output, counts, n_killed(group)
    finally:
        for folder in dict.fromkeys((inner, group)):
            wait_until(lambda: is_removed(folder), "the end of what runs there")


def blocks_by_stack(report):
    """Leaks of keep_block, and those of small blocks without stacks."""
    cut = ["stacks of small blocks were left out, as memory was short"]
    return entries_through(report["leaks"], "keep_block"), \
        [entry for entry in report["leaks"] if [frame.get("cut") for frame in entry["stack"]] == cut]


@case
@waits
def where_a_cgroup_has_no_memory_left_the_writer_ends():
    # The bare program fits; with the writer's memory, which counts too, it is too much, whatever that does without.
    n_blocks, n_mib = group_size(3_500_000, 255)
    output, counts, n = run_in_group(n_mib << 20, n_blocks)
    expect_equal(n, 0, "processes that the kernel killed")
    expect_reported(output, "the writer ended ")
    first = torsh("leaks", output).splitlines()[0]
    assert "control group" in first and f"of {n_mib} MiB" in first and "nothing is known of what came later" in first, first
    kept, without_stacks = blocks_by_stack(leaks(output))
    blocks = total(kept + without_stacks, "blocks")
    assert 0 < blocks < counts.kept(), f"{blocks} blocks"


@case
@waits
def where_a_cgroup_gets_short_of_memory_stacks_of_small_blocks_are_left_out():
    # With all stacks it would be too much, without those of small blocks it isn't. By hand also with
    # FAULT_GROUP_BLOCKS=7000000 FAULT_GROUP_MIB=600.
    n_blocks, n_mib = group_size(3_500_000, 365)
    output, counts, n = run_in_group(n_mib << 20, n_blocks)
    expect_equal(n, 0, "processes that the kernel killed")
    expect_reported(output, "blocks of up to 1 KiB whose stacks were left out, as memory was short")
    report = leaks(output)
    expect_equal((report["events"]["dropped"], report["recording"]["reasons"]), (0, []), "events lost, and reasons")
    kept, without_stacks = blocks_by_stack(report)
    expect_equal(len(without_stacks), 1, "rows of blocks without stacks")
    # With those of the C library, a few, that are alive, too, and small.
    n_others = report["alive"]["blocks"] - counts.kept()
    assert 0 <= n_others < 100, report["alive"]
    found = kept + without_stacks
    assert counts.kept() <= total(found, "blocks") <= counts.kept() + n_others, f"{total(found, 'blocks')} blocks"
    assert 0 <= total(found) - counts.kept() * committed.KEPT_BYTES <= 1024 * n_others, f"{total(found)} bytes"


def expect_whole_in_group(limit_bytes, n_blocks):
    output, counts, n = run_in_group(limit_bytes, n_blocks)
    expect_equal(n, 0, "processes that the kernel killed")
    committed.expect_all_reported(output, counts)
    assert leaks(output)["recording"]["complete"], torsh("leaks", output).splitlines()[0]


add_case("where_a_cgroup_has_enough_memory_left_nothing_is_missing", expect_whole_in_group, 400 << 20, 1_000_000)
# The program itself takes 8 MiB.
add_case("a_cgroup_with_64_mib_of_headroom_is_enough", expect_whole_in_group, 72 << 20, 100_000)


def install_beside(make_writer):
    """A copy of the agent, beside which make_writer(path) puts a writer: returns the agent's path."""
    folder = scratch("installed")
    shutil.copy(AGENT, folder)
    make_writer(folder / WRITER.name)
    (folder / WRITER.name).chmod(0o755)
    return preloadable(folder) / AGENT.name


def copy_of_false(path):
    shutil.copy(need_command("false"), path)


def writer_without_a_library(path):
    """The writer, linked to a library that is not there."""
    whole = WRITER.read_bytes()
    broken = whole.replace(b"libzstd.so.1\0", b"libzstd.so.?\0")
    assert broken != whole, "the writer isn't linked with libzstd.so.1"
    path.write_bytes(broken)


def text_file(path):
    path.write_text("neither a program nor a script")


def expect_no_recording_is_reported(output, words):
    assert b"torsh: nothing is recorded: " in words, f"stderr: {words!r}"
    expect_equal([path.stat().st_size for path in recordings(output)], [0], "sizes of the recordings")
    more = {"check": ["--max-leak", "1"], "export": ["--format", "folded"]}
    for command in ("leaks", "peak", "report", "dump", "export", "check"):
        result = run([TORSH, command, output, *more.get(command, [])])
        expect_equal(result.returncode, 2, f"status of torsh {command}")
        assert b"could not start" in result.stderr, f"torsh {command}: {result.stderr!r}"


def fail_to_start(make_writer, n_threads):
    output, counts, sockets = scratch(), committed.Counts(scratch("counts")), scratch("s")
    env = agent_environment(output, LD_PRELOAD=install_beside(make_writer), TMPDIR=sockets, XDG_RUNTIME_DIR="")
    # More than the ring holds: the target must not wait for a writer that is gone.
    result = run(committed.command(counts, 400_000, n_threads), env)
    expect_equal(result.returncode, 9, "status of the target")
    expect_equal(counts.kept(), 400_000 * n_threads, "blocks")
    expect_no_recording_is_reported(output, result.stderr)
    expect_equal(list(sockets.iterdir()), [], "what is left where the socket was")


for broken_writer in (copy_of_false, writer_without_a_library, text_file):
    add_case(f"{broken_writer.__name__}_in_place_of_the_writer", fail_to_start, broken_writer, 1)
add_case("no_thread_waits_for_a_writer_that_never_was", fail_to_start, copy_of_false, 4)


def process_with_arguments(name, part):
    """Pid of the process called name that has part among its arguments, or None."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name and \
                    str(part).encode() in (entry / "cmdline").read_bytes():
                return int(entry.name)
        except OSError:
            pass
    return None


def is_stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


@case
def a_writer_killed_before_it_is_ready_is_missed():
    def stopped_writer(path):
        path.write_text("#!/bin/sh\nkill -STOP $$\n")

    output = scratch()
    env = agent_environment(output, LD_PRELOAD=install_beside(stopped_writer))
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        pid = wait_until(lambda: process_with_arguments(WRITER.name, output), "the writer")
        wait_until(lambda: is_stopped(pid), "the writer to stop")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not process_with_arguments(WRITER.name, output), "the end of the writer")
        _, words = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    expect_equal(process.returncode, 0, "status of the target")
    expect_no_recording_is_reported(output, words)


@case
def a_file_in_the_place_of_stderr_is_left_alone():
    output, own = scratch(), scratch("own") / "file"
    env = agent_environment(output, LD_PRELOAD=install_beside(copy_of_false))
    script = "import os, sys; os.close(2); assert os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT) == 2"
    result = run([sys.executable, "-c", script, own], env)
    expect_equal(result.returncode, 0, f"status (stderr: {result.stderr!r})")
    expect_equal(own.read_bytes(), b"", "the target's file")


main()
