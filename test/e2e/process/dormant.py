#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
TORSH_PROFILER_ENABLED=dormant: a process of which nothing is recorded until it is armed, by `torsh start` or by itself, and
which is the same as without the agent before.
"""

import collections
import os
import pathlib
import pwd
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from annotations import build, itt_flags  # noqa: E402
from environments import torch_python  # noqa: E402
from live_targets import Target, session_of, sessions  # noqa: E402
from schema import expect_fits  # noqa: E402
from simcuda import DRIVER, of_kind, record_simulated  # noqa: E402
from timeline import events, timeline  # noqa: E402

PROGRAM = PROGRAMS / "dormant"
N, LEAKED, LEAK_BYTES = 100, 10, 1234
MOST_BYTES = 256 << 10
DORMANT = {"TORSH_PROFILER_ENABLED": "dormant"}


def sleeping(**variables):
    """A dormant program, in a directory for temporary files of its own."""
    temporary = scratch("temporary")
    return Target([PROGRAM], TMPDIR=temporary, XDG_RUNTIME_DIR="", **DORMANT, **variables), temporary


def pages(temporary):
    return sorted(path.name for path in temporary.iterdir())


def children_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def recorded_files(output):
    return recordings(output) if output.exists() else []


def start(pid, says="started"):
    text = torsh("start", pid)
    assert text.startswith(f"{says}: process {pid} "), text


def leaked(output):
    """(blocks, bytes) of the leaks of all processes, by leak, and all others."""
    found = leaks(output)["leaks"]
    ours = entries_through(found, "leak")
    return (total(ours, "blocks"), total(ours)), [functions(entry) for entry in found if entry not in ours]


@case
def nothing_is_recorded_before():
    target, temporary = sleeping()
    with target:
        target.send("alm")
        [name] = pages(temporary)
        assert name.startswith(f"torsh-dormant-{os.geteuid()}-") and name.endswith(f"-{target.pid}"), name
        status = (temporary / name).stat()
        expect_equal((status.st_mode & 0o777, status.st_size), (0o600, 4096), "access and size of its page")
        expect_equal((session_of(target.pid), children_of(target.pid), recorded_files(target.output)), (None, [], []),
                     "session, children and recordings")
        target.end()
    expect_equal((pages(temporary), recorded_files(target.output)), ([], []), "files after its end")


def listed(pid):
    """Of torsh list: (program, armed) of a dormant process, or None."""
    report = json.loads(torsh("list", "--json"))
    expect_fits("list", report)
    return next(((one["program"], one["armed"]) for one in report["dormant"] if one["pid"] == pid), None)


@case
def it_is_listed_until_it_is_recorded():
    target, _ = sleeping()
    with target:
        target.send("n")
        expect_equal(listed(target.pid), ("dormant", False), "before")
        assert f"dormant: dormant ({target.pid}), not recorded" in torsh("list"), torsh("list")
        start(target.pid, "armed")
        expect_equal(listed(target.pid), ("dormant", True), "when it sleeps in read")
        target.send("n")
        wait_until(lambda: session_of(target.pid), "its session")
        expect_equal(listed(target.pid), None, "when it is recorded")
        target.end()
    expect_equal(listed(target.pid), None, "after its end")


def descriptors(pid):
    """Of a process, and how many lines of its maps are shared memory."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    return sorted(os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()), sum("memfd" in line for line in maps)


@case
def fifty_pauses_leave_nothing_more():
    # A small ring: pages of it are resident once events were written to them.
    target, _ = sleeping(TORSH_PROFILER_RING="64k")
    with target:
        start_while_it_calls(target)
        after = []
        for turn in range(50):
            expect_equal(torsh("pause", target.pid).split(":")[0], "paused", "pause")
            target.send("maf")
            expect_equal(torsh("resume", target.pid).split(":")[0], "resumed", "resume")
            target.send("maf")
            if turn in (4, 49):
                after.append((*descriptors(target.pid), resident(target.pid), sum(target.pid in [one["pid"] for one in session["processes"]] for session in sessions())))
        (first, last) = after
        expect_equal((last[:2], last[3]), (first[:2], first[3]), "descriptors, shared memory and sessions")
        assert last[2] < first[2] + (64 << 10), f"{first[2]} bytes after 5 turns, {last[2]} after 50"
        target.end()
    expect_equal(sum(event["event"] == "range_push" for event in timeline(target.output)), 50 * N, "ranges of the turns in which it ran")


@case
def start_records_what_comes_then():
    target, temporary = sleeping()
    with target:
        target.send("alm")
        start_while_it_calls(target)
        target.send("rflmmt")
        target.end()
    expect_equal(leaked(target.output), ((2 * LEAKED, 2 * LEAKED * LEAK_BYTES), []), "leaks")
    [recording] = recordings(target.output)
    marked = [event for event in timeline(target.output) if event["event"] == "range_push"]
    expect_equal(len(marked), 2 * N, "ranges")
    report = read_report("report", target.output)
    assert any("dormant" in note for note in report["notes"]), report["notes"]
    check_counts(report["events"])
    expect_equal(pages(temporary), [], "files after its end")


def start_while_it_calls(target):
    """It sleeps in read: its next call of malloc begins the recording. Its page is there once it has answered."""
    target.send("n")
    start(target.pid, "armed")
    target.send("n")
    wait_until(lambda: session_of(target.pid), "its session")


def writer_of(pid):
    return session_of(pid)["writer_pid"]


def stop(pid):
    """Whether it ends is the kernel's word: its writer is no process any more."""
    writer = writer_of(pid)
    text = torsh("stop", pid)
    assert text.startswith("stopped: "), text
    wait_until(lambda: not pathlib.Path(f"/proc/{writer}").exists(), "the end of its writer")
    return writer


def in_order(output):
    """Its recordings, the first one first."""
    return sorted(recordings(output), key=lambda path: int((re.search(r"\.(\d+)\.torsh$", path.name) or [0, 0])[1]))


@case
def stop_ends_the_writer_and_start_begins_again():
    target, temporary = sleeping()
    rounds, after, writers = 5, [], set()
    with target:
        target.send("alm")
        before = descriptors(target.pid)
        for turn in range(rounds):
            start_while_it_calls(target)
            target.send("t" + turn * "l" + "mt")
            writers.add(stop(target.pid))
            # What it makes now is in no recording; the first call lets it rest.
            target.send("maflmt")
            after.append((*descriptors(target.pid), len(os.listdir(f"/proc/{target.pid}/task")), session_of(target.pid),
                          len(pages(temporary)), listed(target.pid)))
            memory = resident(target.pid)
            if not turn:
                first_memory = memory
        target.end()
    expect_equal(len(writers), rounds, "writers")
    # Where the writer got little of the processor the thread's ring has grown: a large one is mapped twice, too.
    mapped = [maps for _, maps, *_ in after]
    assert max(mapped) <= min(mapped) + 2, mapped
    left = [(row[0], *row[2:]) for row in after]
    expect_equal(left, [left[0]] * rounds, "what each stop leaves")
    # One descriptor of the memory that the next writer gets, above those of programs, stays.
    expect_equal(sorted(after[0][0]), sorted([*before[0], "/memfd:torsh-channel (deleted)"]), "descriptors")
    expect_equal(after[0][2:], (1, None, 1, ("dormant", False)), "threads, session, page and state")
    grown = memory - first_memory
    # Each turn leaks up to 8 times 10 blocks of 1,234 bytes, by itself.
    assert grown <= rounds * 8 * LEAKED * LEAK_BYTES + (64 << 10), f"{grown} bytes more after {rounds} turns"
    made = in_order(target.output)
    expect_equal(len(made), rounds, "recordings")
    for turn, recording in enumerate(made):
        expect_equal(leaked(recording), (((turn + 2) * LEAKED, (turn + 2) * LEAKED * LEAK_BYTES), []), f"leaks of turn {turn}")
        expect_equal(sum(event["event"] == "range_push" for event in timeline(recording)), N, f"ranges of turn {turn}")
        report = read_report("report", recording)
        check_counts(report["events"])
        expect_equal((report["events"]["dropped"], report["events"]["losses"]), (0, []), f"dropped in turn {turn}")
        assert any("torsh stop" in note for note in report["notes"]), report["notes"]
    expect_equal(pages(temporary), [], "files after its end")


@case
def a_process_that_sleeps_is_stopped_and_started():
    target, _ = sleeping()
    with target:
        start_while_it_calls(target)
        target.send("lm")
        stop(target.pid)
        start(target.pid, "armed")
        target.send("nn")
        wait_until(lambda: session_of(target.pid), "its next session")
        target.send("llmm")
        target.end()
    expect_equal([leaked(recording)[0][0] for recording in in_order(target.output)], [LEAKED, 2 * LEAKED], "leaks")


@case
def threads_in_calls_are_stopped_and_started():
    target, _ = sleeping()
    rounds = 5
    with target:
        target.send("b")
        for _ in range(rounds):
            wait_until(lambda: torsh("start", target.pid).startswith("started"), "start")
            wait_until(lambda: (session_of(target.pid) or {}).get("processes"), "its session")
            target.send("lm")
            stop(target.pid)
            target.send("lm")
        target.send("e")
        target.end()
    made = in_order(target.output)
    expect_equal(len(made), rounds, "recordings")
    for recording in made:
        expect_equal(leaked(recording)[0], (LEAKED, LEAKED * LEAK_BYTES), "leaks")
        events = read_report("report", recording)["events"]
        check_counts(events)
        assert events["produced"] > 1000, events


@case
def children_rest_too_and_are_started_for_themselves():
    target, temporary = sleeping()
    with target:
        start_while_it_calls(target)
        target.send("cl")
        stop(target.pid)
        # A fork and an exec of one that rests; the image that is executed is dormant again.
        target.send("acvwyx")
        expect_equal((session_of(target.pid), len(pages(temporary)), listed(target.pid)), (None, 1, ("dormant", False)), "after them")
        start_while_it_calls(target)
        target.send("lcl")
        target.end()
    # Of both processes of each.
    expect_equal([leaked(recording)[0][0] for recording in in_order(target.output)], [2 * LEAKED, 3 * LEAKED], "leaks")
    expect_equal(pages(temporary), [], "files after its end")


@case
def a_child_that_first_calls_after_the_stop_rests():
    target, temporary = sleeping()
    with target:
        start_while_it_calls(target)
        target.send("dl")
        stop(target.pid)
        # The parent's page, and that of the child, which has found that its session is over.
        target.send("ng")
        [child] = children_of(target.pid)
        expect_equal(sorted(name.split("-")[-1] for name in pages(temporary)), sorted([str(target.pid), child]), "pages")
        expect_equal((listed(target.pid), listed(int(child))), (("dormant", False), ("dormant", False)), "both")
        start_while_it_calls(target)
        # By the first of these the child was armed: what begins its recording isn't in that.
        target.send("lgg")
        target.send("q")
        stop(target.pid)
        target.send("nl")
        expect_equal((session_of(target.pid), listed(target.pid)), (None, ("dormant", False)), "after the next stop")
        target.end()
    made = in_order(target.output)
    expect_equal(leaked(made[0]), ((LEAKED, LEAKED * LEAK_BYTES), []), "leaks of the first recording")
    assert all(leaked(recording)[0][0] for recording in made[1:]), "later recordings"
    expect_equal(pages(temporary), [], "files after its end")


@case
def children_that_were_recorded_have_pages_of_their_own():
    target, temporary = sleeping()
    with target:
        start_while_it_calls(target)
        target.send("dg")
        [child] = children_of(target.pid)
        expect_equal(sorted(name.split("-")[-1] for name in pages(temporary)), sorted([str(target.pid), child]), "pages")
        expect_equal([listed(target.pid), listed(int(child))], [None, None], "both are in a session")
        stop(target.pid)
        # The child makes no call, and is armed nevertheless.
        target.send("n")
        assert torsh("start", target.pid).endswith("; 1 of its descendants is armed\n"), "start"
        # The parent sleeps: the child doesn't wait for it, and has a session of its own.
        target.send("nlgg")
        stop(target.pid)
        stop(int(child))
        # Neither begins again by itself.
        target.send("nlgg")
        expect_equal([listed(target.pid), listed(int(child))], [("dormant", False)] * 2, "after the next stop")
        target.send("q")
        target.end()
    expect_equal(pages(temporary), [], "files after its end")


@case
def the_program_arms_itself_after_a_stop():
    target, _ = sleeping()
    with target:
        target.send("sl")
        stop(target.pid)
        target.send("lmsllm")
        target.end()
    expect_equal([leaked(recording)[0][0] for recording in in_order(target.output)], [LEAKED, 2 * LEAKED], "leaks")


@case
def without_a_heap_it_is_stopped_too():
    target, _ = sleeping(TORSH_PROFILER_ACTIVITIES="itt,nvtx")
    with target:
        for _ in range(3):
            start_while_it_calls(target)
            target.send("mm")
            stop(target.pid)
            target.send("nm")
        target.end()
    counts = [collections.Counter(event["event"] for event in timeline(recording)) for recording in in_order(target.output)]
    expect_equal([count["range_push"] for count in counts], [2 * N] * 3, "ranges")


@case
def what_can_not_rest_is_paused():
    for is_dormant in (True, False):
        target = sleeping(TORSH_PROFILER_ACTIVITIES="heap,cpu")[0] if is_dormant else Target([PROGRAM])
        with target:
            if is_dormant:
                start_while_it_calls(target)
            wait_until(lambda: session_of(target.pid), "its session")
            writer = writer_of(target.pid)
            assert torsh("stop", target.pid).startswith("paused: 1 process"), "stop"
            assert pathlib.Path(f"/proc/{writer}").exists(), "its writer is there"
            assert torsh("start", target.pid).startswith("resumed: 1 process"), "start"
            target.end()


@case
def blocks_from_before_that_are_freed_do_no_harm():
    target, _ = sleeping()
    with target:
        target.send("a")
        start_while_it_calls(target)
        target.send("rfl")
        target.end()
    expect_equal(leaked(target.output), ((LEAKED, LEAKED * LEAK_BYTES), []), "leaks")
    unknown = read_report("report", target.output)["events"]["unknown_frees"]
    assert unknown >= N // 2, unknown


@case
def the_program_arms_itself():
    target, _ = sleeping()
    with target:
        target.send("lmslmplmslm")
        target.end()
    expect_equal(leaked(target.output), ((2 * LEAKED, 2 * LEAKED * LEAK_BYTES), []), "leaks")
    marked = [event for event in timeline(target.output) if event["event"] == "range_push"]
    expect_equal(len(marked), 2 * N, "ranges")


@case
def forks_and_execs_have_pages_of_their_own():
    target, temporary = sleeping()
    with target:
        target.send("cvwycxl")
        expect_equal(len(pages(temporary)), 1, "pages")
        start_while_it_calls(target)
        target.send("lcl")
        target.end()
    expect_equal(leaked(target.output), ((3 * LEAKED, 3 * LEAKED * LEAK_BYTES), []), "leaks of it and its child")
    expect_equal(len({row["pid"] for row in read_report("report", target.output)["processes"]}), 2, "processes")
    expect_equal(pages(temporary), [], "files after its end")


@case
def the_processes_below_one_are_armed_with_it():
    target, temporary = sleeping()
    with target:
        # The shell waits for it: armed, it begins with its next call. It may not have come to that yet: then it has begun, and
        # the program below is recorded with it.
        command = ["bash", "-c", f"{shell_words(PROGRAM)}; :"]
        with Target(command, output=scratch("below"), TMPDIR=temporary, XDG_RUNTIME_DIR="", **DORMANT) as shell:
            shell.send("l")
            wait_until(lambda: len(pages(temporary)) == 3, "the pages of three processes")
            [program] = children_of(shell.pid)
            text = torsh("start", shell.pid)
            assert text.endswith("; 1 of its descendants is armed\n"), text
            shell.send("nll")
            shell.end()
            [recording] = [path for path in recordings(shell.output)
                           if int(program) in [row["pid"] for row in read_report("report", path)["processes"]]]
            expect_equal(leaked(recording), ((2 * LEAKED, 2 * LEAKED * LEAK_BYTES), []), "leaks of the program")
        target.send("l")
        expect_equal(recorded_files(target.output), [], "recordings of another process")
        target.end()


@case
def it_is_not_armed_by_others():
    need_root()
    target, temporary = sleeping()
    nobody = pwd.getpwnam("nobody")
    with target:
        target.send("l")
        result = run([TORSH, "start", target.pid], user=nobody.pw_uid, group=nobody.pw_gid)
        expect_equal((result.returncode, b"is being recorded for this user" in result.stderr), (2, True), f"status and stderr {result.stderr}")
        target.send("l")
        target.end()
    expect_equal(recorded_files(target.output), [], "recordings")


def self_of(**variables):
    with Target([PROGRAM], **variables) as target:
        target.process.stdin.write(b"i")
        target.process.stdin.flush()
        line = target.process.stdout.readline().decode()
        expect_equal(target.process.stdout.read(1), b".", "answer")
        target.send("alrf")
        memory = resident(target.pid)
        target.end()
    return line, memory


def resident(pid):
    """Bytes that are its own or shared memory, not of files that are mapped for code."""
    rows = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(re.search(rf"^{name}:\s+(\d+) kB", rows, re.M)[1]) << 10 for name in ("Private_Dirty", "Shared_Dirty"))


@case
def it_is_as_without_the_agent():
    bare, _ = self_of(LD_PRELOAD="")
    temporary = scratch("temporary")
    inert, inert_bytes = self_of(TORSH_PROFILER_ENABLED="0")
    dormant, dormant_bytes = self_of(TMPDIR=temporary, XDG_RUNTIME_DIR="", **DORMANT)
    expect_equal(dormant, bare.replace("there 0", "there 1"), "descriptors, threads, handlers and errno")
    assert dormant_bytes - inert_bytes <= MOST_BYTES, f"{dormant_bytes - inert_bytes} bytes more than inert"
    print(f"note: {dormant_bytes - inert_bytes} bytes more than inert")


def instructions(env):
    """Of 100,000 pairs of malloc and free, by callgrind: what runs with them less what runs without."""
    counts = []
    for letters in (b"", b"n"):
        file = scratch("callgrind") / "out"
        command = [need_command("valgrind"), "--tool=callgrind", f"--callgrind-out-file={file}", PROGRAM]
        result = run(command, env=env, stdin=None, input=letters)
        expect_equal(result.returncode, 0, f"status\n{result.stderr.decode()}\n")
        counts.append(int(re.search(r"Collected : (\d+)", result.stderr.decode())[1]))
    return (counts[1] - counts[0]) / 100000


@case
def a_pair_of_malloc_and_free_takes_a_few_instructions_more():
    temporary = scratch("temporary")
    bare = instructions(clean_environment())
    inert = instructions(agent_environment(scratch(), TORSH_PROFILER_ENABLED="0"))
    dormant = instructions(agent_environment(scratch(), TMPDIR=temporary, XDG_RUNTIME_DIR="", **DORMANT))
    print(f"note: instructions of a pair: bare {bare:.1f}, inert {inert:.1f}, dormant {dormant:.1f}")
    assert dormant <= inert + 0.5, (inert, dormant)
    assert dormant - bare <= 50, (bare, dormant)


@case
def a_process_that_is_killed_leaves_a_page_that_the_next_start_removes():
    target, temporary = sleeping()
    with target:
        target.send("l")
        target.process.kill()
        target.process.wait()
    left = pages(temporary)
    expect_equal(len(left), 1, "pages of the killed process")
    other = Target([PROGRAM], TMPDIR=temporary, XDG_RUNTIME_DIR="", **DORMANT)
    with other:
        other.send("l")
        start_while_it_calls(other)
        other.end()
    expect_equal(pages(temporary), [], "pages")


@case
def a_signal_that_the_user_chose_arms_it_and_pauses():
    target, _ = sleeping(TORSH_PROFILER_SIGNAL="USR2")
    with target:
        target.send("lm")
        for is_paused in (None, True, False):
            # It waits in read, which is restarted: else its loop would end.
            target.process.send_signal(signal.SIGUSR2)
            target.send("n" if is_paused is None else "")
            wait_until(lambda: (session_of(target.pid) or {}).get("paused") is bool(is_paused), "the signal's effect")
            target.send("lm")
        target.end()
    expect_equal(leaked(target.output), ((2 * LEAKED, 2 * LEAKED * LEAK_BYTES), []), "leaks")
    marked = [event for event in timeline(target.output) if event["event"] == "range_push"]
    expect_equal(len(marked), 2 * N, "ranges")


@case
def a_signal_is_taken_only_where_it_is_free():
    free, _ = self_of(LD_PRELOAD="", TORSH_PROFILER_SIGNAL="USR2")
    taken, _ = self_of(TORSH_PROFILER_SIGNAL="USR2", TORSH_PROFILER_ENABLED="1")
    expect_equal([int(re.search(r"handlers (\d+)", line)[1]) for line in (free, taken)], [0, 1], "handlers")
    ignoring = ["bash", "-c", f"trap '' USR2; {shell_words(PROGRAM)}"]
    result, _ = record(ignoring, env={"TORSH_PROFILER_SIGNAL": "USR2", "TORSH_PROFILER_FILTER": "dormant"})
    expect_equal(result.returncode, 0, "status")
    assert b"signal 12 is not taken" in result.stderr, result.stderr


@case
def itts_resume_arms_it():
    say = build("say", ROOT / "test/programs/ranges/itt/say.c", *itt_flags())
    result, output = record([say], env=DORMANT)
    expect_equal((result.returncode, result.stdout, result.stderr), (0, b"heard\n", b""), "status and output")
    marks = [event["name"] for event in timeline(output) if event["event"] == "mark"]
    expect_equal(marks, ["resume"], "marks: the pause before it is not recorded")


OPERATORS = """
import sys, torch, torsh
x = torch.ones(8)
def work(function):
    for i in range(100):
        function(x)
class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2
model = Doubled()
work(torch.relu)
kept = torch.ones(1000)
assert torsh.resume() == ("dormant" in sys.argv)
for i in range(100000):  # the main thread runs what the agent asked it for
    pass
work(torch.sigmoid)
model(x)
del kept
assert torsh.pause()
work(torch.tanh)
"""

KERNELS = f"""
{DRIVER}
need(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"_Z4workPf"))
def work(n, bytes):
    blocks = []
    for i in range(n):
        need(cuda.cuLaunchKernel(function, 8, 1, 1, 32, 1, 1, 0, stream, None, None))
        blocks.append(ctypes.c_uint64())
        need(cuda.cuMemAlloc_v2(ctypes.byref(blocks[-1]), ctypes.c_size_t(bytes)))
    synchronize()
    return blocks
blocks = work(20, 1 << 16)
need(cuda.cuProfilerStart())
blocks += work(30, 1 << 17)
need(cuda.cuProfilerStop())
blocks += work(40, 1 << 18)
need(cuda.cuProfilerStart())
blocks += work(50, 1 << 19)
for block in blocks:
    need(cuda.cuMemFree_v2(block))
synchronize()
"""


@needs("torch")
@case
def operators_are_recorded_from_then_on():
    for is_dormant in (True, False):
        result, output = record([torch_python(), "-c", OPERATORS, *(["dormant"] if is_dormant else [])],
                                env={"PYTHONPATH": str(ROOT / "tools/python"), **(DORMANT if is_dormant else {})})
        expect_equal((result.returncode, result.stderr), (0, b""), "status and stderr")
        found = events(output)
        names = collections.Counter(event["name"] for event in found if event["event"] == "op_begin")
        expect_equal((names["aten::relu"], names["aten::sigmoid"], names["aten::tanh"]),
                     (0 if is_dormant else 100, 100, 0), "operators")
        modules = [event["name"] for event in found if event["event"] == "range_push" and event["source"] == "module"]
        expect_equal(modules, ["Doubled:Doubled"], "modules")
        report = read_report("ops", output, "--limit", "0")
        expect_equal((report["cut_calls"], report["unmatched_ends"]), (0, 0), "calls without ends, ends without calls")


@case
def cudas_profiler_control_arms_it_and_pauses():
    for is_dormant in (True, False):
        output, truth = record_simulated([sys.executable, "-c", KERNELS], env=DORMANT if is_dormant else {})
        found = events(output)
        expect_equal((len(of_kind(truth, "kernel")), of_kind(truth, "violation")), (140, []), "kernels that ran, violations")
        expect_equal(sum(event["event"] == "kernel" for event in found), 80 if is_dormant else 140, "kernels")
        sizes = collections.Counter(event["bytes"] >> 16 for event in found if event["event"] == "device_alloc")
        expect_equal([sizes[1], sizes[2], sizes[4], sizes[8]], [0, 30, 0, 50] if is_dormant else [20, 30, 40, 50], "blocks")
        [mode] = [event["mode"] for event in found if event["event"] == "device_mode"]
        expect_equal(mode, 2, "mode, that with CUPTI")


main()
