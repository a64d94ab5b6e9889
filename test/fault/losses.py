#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""If events cannot be recorded, the report has them all, or its first line reports that some are
missing: never "No leaks"."""

import collections
import ctypes
import pathlib
import resource
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import committed  # noqa: E402
import timeline  # noqa: E402
from harness import *  # noqa: E402,F403

N_BLOCKS = 4003

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
BPF_LOAD_WORD, BPF_JUMP_EQUAL, BPF_RETURN = 0x20, 0x15, 0x06
SECCOMP_ALLOW, SECCOMP_ERRNO = 0x7FFF0000, 0x00050000
EPERM = 1
MREMAP = {"x86_64": 25, "aarch64": 216}


def refuse(number):
    """From here on this process's calls of that number fail with EPERM; those of what it executes, too."""
    rows = ((BPF_LOAD_WORD, 0, 0, 0), (BPF_JUMP_EQUAL, 0, 1, number), (BPF_RETURN, 0, 0, SECCOMP_ERRNO | EPERM),
            (BPF_RETURN, 0, 0, SECCOMP_ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))):
        words = [ctypes.c_ulong(word) for word in (*arguments, 0, 0, 0, 0)][:5]
        if libc.prctl(*words):
            os._exit(77)


def expect_all_or_reported(output, counts):
    """The first line of an incomplete report is a warning; a report without leaks is complete."""
    text, report = torsh("leaks", output), leaks(output)
    events = report["events"]
    expect_equal(events["produced"], events["delivered"] + events["dropped"], "produced")
    expect_equal(sum(loss["count"] for loss in events["losses"] if loss["of_events"]), events["dropped"], "sum of the causes")
    if committed.reported(output)[0] == counts.kept():
        assert not text.startswith("Incomplete"), text
        return
    assert text.startswith("Incomplete: "), f"{N_BLOCKS} blocks, and the report begins:\n{text[:300]}"
    assert "No leaks" not in text, text
    assert not report["recording"]["complete"] and events["dropped"], report["recording"]
    torsh("check", output, "--max-leak", "1T", expect=1)


def machine():
    return os.uname().machine


@case
def mremap_is_refused():
    counts = committed.Counts(scratch("counts"))
    bare = run(committed.command(committed.Counts(scratch("bare")), 1), preexec_fn=lambda: refuse(MREMAP[machine()]))
    if bare.returncode == 77:
        raise Skip("may not install a filter of system calls here")
    result, output = record(committed.command(counts, N_BLOCKS), preexec_fn=lambda: refuse(MREMAP[machine()]))
    expect_equal((result.returncode, counts.kept()), (9, N_BLOCKS), f"status and blocks ({result.stderr!r})")
    expect_all_or_reported(output, counts)


@case
def under_valgrind():
    counts = committed.Counts(scratch("counts"))
    valgrind = need_command("valgrind")
    result, output = record([valgrind, "-q", "--tool=none", *committed.command(counts, N_BLOCKS)])
    expect_equal((result.returncode, counts.kept()), (9, N_BLOCKS), f"status and blocks ({result.stderr!r})")
    expect_all_or_reported(output, counts)


FORKS_WITHOUT_ROOM = """
import os, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
pid = os.fork()
if not pid:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
"""


@case
def a_forked_child_without_room_is_in_its_parents_report():
    result, output = record([sys.executable, "-c", FORKS_WITHOUT_ROOM])
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    report = leaks(output)
    expect_equal([(loss["cause"], loss["count"]) for loss in report["events"]["losses"]], [("children_lost", 1)], "losses")
    assert torsh("leaks", output).startswith("Incomplete: 1 fork with a child that could not be recorded"), torsh("leaks", output)[:200]
    assert not report["recording"]["complete"]


N_NAMES = 300_000


@case
def three_hundred_thousand_names_are_kept_apart():
    result, output = record([PROGRAMS / "crowd", "names", N_NAMES])
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    report = read_report("regions", output, "--limit", "0")
    expect_equal((report["events"]["losses"], report["recording"]["complete"]), ([], True), "losses")
    names = {region["name"] for region in report["regions"]}
    expect_equal(names, {f"range number {i}" for i in range(N_NAMES)}, "names of ranges")


LONGEST_NAME = 16384


@case
def long_names_are_kept_apart_and_cut_ones_counted():
    for n_bytes, n_names, n_cut in ((3000, 2, 0), (LONGEST_NAME, 2, 0), (LONGEST_NAME + 1, 1, 2)):
        result, output = record([PROGRAMS / "crowd", "long", n_bytes])
        expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
        report = read_report("regions", output, "--limit", "0")
        losses = {loss["cause"]: loss["count"] for loss in report["events"]["losses"]}
        expect_equal((losses, report["recording"]["complete"]), ({"names_cut": n_cut} if n_cut else {}, not n_cut),
                     f"losses with names of {n_bytes} bytes")
        expect_equal(sorted(len(region["name"]) for region in report["regions"]), [min(n_bytes, LONGEST_NAME)] * n_names,
                     "lengths of the names")


STACK_BITS = int(os.environ.get("FAULT_STACK_BITS", 20))


@case
def a_million_stacks_are_all_there():
    # More than the live blocks of one chunk.
    result, output = record([PROGRAMS / "crowd", "stacks", STACK_BITS])
    expect_equal((result.returncode, result.stdout), (0, b"%d\n" % (1 << STACK_BITS)), f"status and blocks ({result.stderr!r})")
    report = read_report("leaks", output, "--limit", "1", "--depth", "2")
    expect_equal((report["events"]["losses"], report["recording"]["complete"]), ([], True), "losses")
    expect_equal(report["alive"]["blocks"] >= 1 << STACK_BITS, True, f"{report['alive']} alive")


# The channel's tables have room for some thousand entries where files may be no larger than this.
SMALL_FILES = 2 << 20
FILLS_TABLES = """
import array, bz2, ctypes, decimal, hashlib, json, lzma, math, pickle, select, socket, sqlite3, ssl, struct, unicodedata, zlib
import xml.etree.ElementTree as tree
held = []
exec(compile("held.append(bytearray(5000))\\n" * 10000, "many lines", "exec"))
for i in range(3000):
    exec(f"def function_{i}(): return bytearray(5000)\\nheld.append(function_{i}())")
hashlib.sha256(b"a" * 5000), zlib.compress(bytes(5000)), bz2.compress(bytes(5000)), lzma.compress(bytes(5000))
sqlite3.connect(":memory:").execute("select 1").fetchall(), ssl.create_default_context(), tree.fromstring("<a/>")
decimal.Decimal(3).sqrt(), pickle.dumps(held[0]), json.dumps([1.5]), socket.socket().close()
"""


@case
def every_full_table_is_reported():
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_FILES, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    result, output = record([sys.executable, "-c", FILLS_TABLES], preexec_fn=limit)
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    report, text = leaks(output), torsh("leaks", output)
    causes = {loss["cause"] for loss in report["events"]["losses"]}
    assert {"names_lost", "addresses_lost", "modules_lost"} <= causes, causes
    assert text.startswith("Incomplete: ") and not report["recording"]["complete"], text[:300]
    # Blocks are counted all the same.
    assert report["leaked_bytes"] is not None and report["events"]["dropped"] == 0, report["events"]
    torsh("check", output, "--max-leak", "1T", expect=1)
    torsh("check", output, "--max-leak", "1T", "--allow-loss")


def expect_lost(report, text, cause):
    """Nothing else was lost, and the first line reports it."""
    causes = {loss["cause"]: loss["count"] for loss in report["events"]["losses"]}
    expect_equal(set(causes), {cause}, "what was lost")
    assert text.startswith("Incomplete: ") and not report["recording"]["complete"], text[:300]
    return causes[cause]


N_LIBRARIES = 60  # a note of some 100 bytes each, of 4,096 in all
OPENS_APART = """
import ctypes, os, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path, mode=os.RTLD_DEEPBIND)
"""


@case
def notes_that_find_no_room_are_counted():
    folder = scratch("libraries")
    paths = [folder / f"lib{i}.so" for i in range(N_LIBRARIES)]
    for path in paths:
        shutil.copy(PROGRAMS / "libtwin_small.so", path)
    result, output = record([sys.executable, "-c", OPENS_APART, *paths])
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    report = leaks(output)
    n_lost = expect_lost(report, torsh("leaks", output), "notes_lost")
    expect_equal(sum(str(folder) in note for note in report["notes"]) + n_lost, N_LIBRARIES, "notes, and those that were lost")


PROGRAMS_TEXT = 1 << 20  # bytes for the paths and arguments of all programs that a process starts and that can't be followed
STARTS_MANY = """
import os, sys
for _ in range(int(sys.argv[1])):
    os.waitpid(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
"""


@case
def programs_that_find_no_room_for_their_names_are_counted():
    folder = scratch("programs" + "/long" * 50)
    source, program = folder / "nothing.c", folder / "nothing"
    source.write_text("int main(void) { return 0; }")
    if run(["gcc", "-static", "-o", program, source]).returncode:
        raise Skip("static programs can't be linked here")
    n_bytes = 2 * len(str(program)) + len("\0\0\0")  # its path, and its name as an argument
    n_programs = PROGRAMS_TEXT // n_bytes + 50
    result, output = record([sys.executable, "-c", STARTS_MANY, n_programs, program])
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    report = wait_until(lambda: (found := leaks(output)) and not found["recording"]["being_written"] and found, "the end")
    n_lost = expect_lost(report, torsh("leaks", output), "names_lost")
    rows = [process for process in report["processes"] if not process["followed"]]
    expect_equal(len(rows), n_programs, "programs, with a name or without")
    expect_equal(sum(row["program"] is None for row in rows), n_lost, "programs without a name")
    assert all(row["reason"].startswith("it is statically linked") for row in rows), rows[-1]


def nested(way, n, **variables):
    """What it printed, and the recording."""
    library = variables.pop("library", None)
    output = scratch()
    environment = agent_environment(output, **variables)
    if library:
        environment["LD_PRELOAD"] += f":{library}"
    result = run([PROGRAMS / "nested", way, n], environment)
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    return result.stdout.decode(), output


INTERRUPTS_MOST = 16  # handlers that interrupt each other in wrappers of a thread


@case
def handlers_that_interrupt_too_many_handlers_are_counted():
    for n_deeper in (0, 1, 40):
        n = 1 + INTERRUPTS_MOST + n_deeper
        shown, output = nested("interrupts", n, library=PROGRAMS / "libnest.so")
        expect_equal(int(shown), n, "pages that were unmapped")
        report = leaks(output)
        expect_equal(report["counters"]["interrupts"], INTERRUPTS_MOST, "events of handlers")
        expect_equal(report["events"]["dropped"], n_deeper, "events dropped")
        if n_deeper:
            expect_equal(expect_lost(report, torsh("leaks", output), "interrupts_lost"), n_deeper, "handlers without a stream")
        else:
            expect_equal(report["recording"]["complete"], True, "complete")


DOMAINS_MOST = 15  # depths are exact while ranges of all of them are open


@case
def ranges_of_any_number_of_domains_are_there():
    n = 3 * DOMAINS_MOST
    shown, output = nested("domains", n)
    together, one_by_one, afterwards = ([int(word) for word in line.split()] for line in shown.splitlines())
    expect_equal(together[:DOMAINS_MOST] + together[n:n + DOMAINS_MOST], [0] * 2 * DOMAINS_MOST, "depths of the first ones")
    expect_equal(one_by_one, [0, 1, 1, 0] * n, "depths of those that come one by one")
    expect_equal(afterwards, [0, 0, 0, 0], "depths of two that are open at once, when many others were")
    report = read_report("regions", output, "--limit", "0")
    expect_equal((report["events"]["losses"], report["recording"]["complete"]), ([], True), "losses")
    calls = {region["domain"]: region["calls"] for region in report["regions"]}
    expect_equal(calls, {f"domain {i}": 2 if n <= i < 2 * n else 1 for i in range(2 * n + 2)}, "ranges")


@case
def arguments_are_all_there_or_a_note_reports_that_they_are_cut():
    for extra, is_cut in ((["x"] * 1000, False), (["y" * 900] * 36, False), (["z" * 900] * 40, True)):
        command = [PROGRAMS / "nested", "nothing", "0", *extra]
        result, output = record(command)
        expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
        report = leaks(output)
        [process] = report["processes"]
        notes = [note for note in report["notes"] if "arguments are longer" in note]
        expect_equal((len(notes), report["recording"]["complete"]), (int(is_cut), True), "notes, and complete")
        whole, found = [str(word) for word in command], process["arguments"]
        if is_cut:
            text = "\0".join(found)
            assert len(text) > 32000 and "\0".join(whole).startswith(text), f"{len(found)} arguments of {len(text)} bytes"
        else:
            expect_equal(found, whole, "arguments")


N_SETTINGS = 50
SCRUBS = "import os, sys; os.execve(sys.argv[1], ['env'], {})"


@case
def settings_of_any_number_are_handed_to_an_exec_that_lacks_them():
    settings = {f"TORSH_PROFILER_OF_NOBODY_{i}": f"value {i}" for i in range(N_SETTINGS)}
    result, _ = record([sys.executable, "-c", SCRUBS, need_command("env")], env=settings)
    expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
    found = dict(line.split("=", 1) for line in result.stdout.decode().splitlines())
    expect_equal({name: value for name, value in found.items() if name in settings}, settings, "settings of the new program")


OPEN_MOST = 65536  # nested calls of a thread that a schedule's steps are kept apart for


@case
def ranges_nested_to_any_depth_are_sent_as_the_schedule_has_them():
    for n in (300, OPEN_MOST, OPEN_MOST + 100):
        _, output = nested("steps", n, TORSH_PROFILER_SCHEDULE="active:1,repeat:1", TORSH_PROFILER_ACTIVITIES="cpu")
        sent = collections.Counter(event["event"] for event in timeline.timeline(output))
        n_beyond = 2 * max(n - OPEN_MOST, 0)  # of the two steps that the schedule leaves out
        expect_equal((sent["range_push"], sent["range_pop"]), (n + n_beyond,) * 2, f"begins and ends of {n} nested ranges")
        report = read_report("regions", output, "--limit", "0")
        expect_equal((report["events"]["losses"], report["recording"]["complete"]), ([], True), "losses")
        expect_equal([(region["calls"], region["left_open"]) for region in report["regions"]], [(n, 0)], "ranges")


OPEN_SHOWN = 4096  # calls within one another of a thread that reports of calls and exports take


@case
def calls_nested_too_deep_for_a_report_are_reported_as_left_out():
    for n_deeper in (0, 100):
        _, output = nested("steps", OPEN_SHOWN + n_deeper, TORSH_PROFILER_ACTIVITIES="cpu")
        report, text = read_report("ops", output, "--limit", "0"), torsh("ops", output)
        expect_equal(report["too_deep_calls"], 3 * n_deeper, "calls that are too deep")
        words = f"{3 * n_deeper} calls are left out: {OPEN_SHOWN} others were open"
        expect_equal(words in text, bool(n_deeper), "that they are left out")
        export = run([TORSH, "export", output, "--format", "chrome", "-o", output / "trace.json"])
        expect_equal((export.returncode, words in export.stderr.decode()), (0, bool(n_deeper)), "output of the export")


CHAIN_MOST = 2048  # frames of Python that a stack can have; of a deeper one at least the innermost 512 are there
RECURSES = """
import sys
sys.setrecursionlimit(100000)
held = []
def fall(n):
    if n:
        return fall(n - 1)
    held.append(bytearray(1 << 20))
fall(int(sys.argv[1]))
"""


@case
def stacks_of_too_many_python_frames_report_it():
    for n in (CHAIN_MOST - 50, 3 * CHAIN_MOST):
        result, output = record([sys.executable, "-c", RECURSES, n])
        expect_equal(result.returncode, 0, f"status ({result.stderr!r})")
        report = read_report("peak", output, "--limit", "1", "--depth", "0")
        (holder,) = report["holders"]
        n_there = sum(frame.get("function") == "fall" for frame in holder["stack"])
        is_cut = n > CHAIN_MOST
        assert n_there == n + 1 if not is_cut else 512 <= n_there <= CHAIN_MOST, (n, n_there)
        cuts = [frame["cut"] for frame in holder["stack"] if "cut" in frame]
        # Before 3.11 each call is several of the interpreter's own, with frames that are cut, too.
        has_cut = is_cut or sys.version_info < (3, 11)
        expect_equal(set(cuts), {"deeper than is recorded"} if has_cut else set(), "where it was cut")
        expect_equal((report["events"]["losses"], report["recording"]["complete"]), ([], True), "losses")


main()
