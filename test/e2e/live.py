#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Sessions that are alive: list, snapshot, top, stop and start, and who is refused. The targets do what they are told."""

import array
import collections
import fcntl
import pathlib
import pty
import pwd
import random
import re
import select
import signal
import socket
import struct
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from harness import *  # noqa: E402,F403
from schema import expect_fits  # noqa: E402

OBEYS = PROGRAMS / "obeys"
N_BLOCKS, FREED = 10, 4
FIRST, SECOND, THIRD, CHILD, RESIZED = 1001, 2003, 3001, 4001, 5003

REQUEST = struct.Struct("<8sIIII")
MAGIC, VERSION = b"torshrq1", 1
STATUS, SNAPSHOT, PAUSE, RESUME = 1, 2, 3, 4


class Target:
    """A running test/programs/obeys, or another program that answers each letter with a dot."""

    def __init__(self, command=(OBEYS,), output=None, user=None, **variables):
        self.output = output or scratch()
        self.process = subprocess.Popen([str(part) for part in command], env=agent_environment(self.output, **variables),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=user and become(user))
        self.pid = self.process.pid

    def tell(self, letters):
        for letter in letters:
            self.process.stdin.write(letter.encode())
            self.process.stdin.flush()
            expect_equal(self.process.stdout.read(1), b".", f"answer to {letter}")

    def end(self):
        self.process.stdin.close()
        expect_equal(self.process.wait(TIMEOUT_S), 0, "status of the target")
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def become(user):
    """For preexec_fn: the process is another user's from there on."""
    row = pwd.getpwnam(user)

    def change():
        os.setgroups([])
        os.setgid(row.pw_gid)
        os.setuid(row.pw_uid)
    return change


def sessions(**options):
    result = run([TORSH, "list", "--json"], **options)
    expect_equal(result.returncode, 0, f"status of torsh list ({result.stderr!r})")
    return json.loads(result.stdout)["sessions"]


def session_of(pid):
    return next((s for s in sessions() if pid in [process["pid"] for process in s["processes"]]), None)


def socket_of(writer):
    words = pathlib.Path(f"/proc/{writer}/cmdline").read_bytes().split(b"\0")
    return words[words.index(b"--socket") + 1].decode()


def snapshot(pid, name="snapshot.torsh"):
    path = scratch("snapshots") / name
    torsh("snapshot", pid, "-o", path)
    return path


def kept(recording, *arguments):
    """(blocks, bytes) by the function that kept them, of those in obeys."""
    found = collections.Counter()
    n_bytes = collections.Counter()
    for entry in leaks(recording, *arguments)["leaks"]:
        for name in functions(entry):
            if name in ("keep_first", "keep_second", "keep_third", "keep_in_child"):
                found[name] += entry["blocks"]
                n_bytes[name] += entry["bytes"]
                break
    return {name: (found[name], n_bytes[name]) for name in found}


@case
def a_snapshot_has_what_was_there_and_nothing_else():
    with Target() as target:
        target.tell("aabf")
        path = snapshot(target.pid)
        expect_equal(kept(path), {"keep_first": (16, 16 * FIRST), "keep_second": (10, 10 * SECOND)}, "live blocks")
        report = leaks(path)
        expect_equal([process["end"] for process in report["processes"]], ["running"], "processes")
        expect_equal(report["recording"]["snapshot_of"], str(recordings(target.output)[0]), "path of the recording")
        expect_fits("leaks", report)
        check_counts(report["events"])
        # Each later one is as exact, whatever the recording's own checkpoints have by then.
        for n in range(3, 8):
            target.tell("b")
            expect_equal(kept(snapshot(target.pid))["keep_second"][0], N_BLOCKS * (n - 1), "live blocks of keep_second")
        target.end()
    expect_equal(kept(target.output), {"keep_first": (16, 16 * FIRST), "keep_second": (60, 60 * SECOND)}, "leaks at the end")
    assert leaks(target.output)["recording"]["snapshot_of"] is None


@case
def a_snapshot_has_the_peak_so_far():
    with Target() as target:
        target.tell("aaaaaff")
        before = peak(snapshot(target.pid))
        target.tell("bbbbbbbbb")
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
        target.tell("am")
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
        target.tell("M")
        target.end()
    report = leaks(target.output)
    check_counts(report["events"])
    expect_equal(kept(target.output), {"keep_first": (10, 10 * FIRST)}, "leaks at the end")


@case
def a_snapshot_of_a_tree_has_processes_that_ended():
    with Target() as target:
        target.tell("axe")
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
        target.tell("ab")
        path = snapshot(target.pid)
        expect_equal(kept(path)["keep_first"], (10, 10 * FIRST), "live blocks")
        assert not [line for line in torsh("dump", path).splitlines() if '"event"' in line]
        target.end()


@case
def names_are_in_a_snapshot():
    program = scratch("program") / "obeys"
    shutil.copy(OBEYS, program)
    with Target([program]) as target:
        target.tell("ab")
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
        target.tell("123")
        report = leaks(snapshot(target.pid), "--stacks", "python")
        found = [entry for entry in report["leaks"] if "keep" in functions(entry)]
        expect_equal((total(found, "blocks"), total(found)), (3, 3 * 1234568), "blocks and bytes of keep")
        expect_equal({entry["stack"][0]["line"] for entry in found}, {5}, "line")
        target.tell("4")
        lines = torsh("top", "--once", "--interval", "10", str(target.pid)).splitlines()
        line = next(line for line in lines if "keep  " in line)
        assert re.match(r"\s*4.71 MiB\s+4\s.*program.py:5$", line), line
        target.end()


# ---- stop and start --------------------------------------------------------------------------------------------------

@case
def blocks_of_a_pause_are_in_no_report():
    with Target() as target:
        target.tell("ab")
        torsh("stop", target.pid)
        # Freed and resized in the pause: what was known stays known.
        target.tell("cafr")
        report = leaks(snapshot(target.pid))
        expect_equal(report["recording"]["pauses"][0]["until_ns"], None, "end of the pause")
        torsh("start", target.pid)
        target.tell("cb")
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
        target.tell("a")
        torsh("stop", target.pid)
        target.tell("r")
        torsh("start", target.pid)
        target.end()
    expect_equal(kept(target.output), {"keep_first": (10, 9 * FIRST + RESIZED)}, "leaks")


@case
def frees_of_blocks_from_a_pause_are_counted_apart():
    with Target() as target:
        target.tell("a")
        torsh("stop", target.pid)
        target.tell("b")
        torsh("start", target.pid)
        target.tell("gs")
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
        target.tell("xe")
        torsh("stop", target.pid)
        target.tell("xxee")
        torsh("start", target.pid)
        target.tell("xe")
        target.end()
    expect_equal(kept(target.output), {"keep_in_child": (40, 40 * CHILD)}, "leaks")


@case
def threads_at_full_speed_come_through_pauses():
    with Target() as target:
        target.tell("am")
        for _ in range(3 if IS_QUICK else 10):
            torsh("stop", target.pid)
            torsh("start", target.pid)
        target.tell("bM")
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
        # Who has answered has said hello.
        target.tell("a")
        torsh("stop", target.pid)
        target.tell("a")
        before = session_of(target.pid)["processes"][0]["produced"]
        target.tell("bbbbcccc")
        after = session_of(target.pid)["processes"][0]["produced"]
        expect_equal(after - before, 0, "events of 80 allocations")
        target.end()


@case
def stopping_twice_is_said():
    with Target() as target:
        target.tell("a")
        assert torsh("start", target.pid).startswith("was not paused")
        assert torsh("stop", target.pid).startswith("paused")
        assert torsh("stop", target.pid).startswith("was paused before")
        expect_equal(session_of(target.pid)["paused"], True, "paused")
        assert "(paused)" in torsh("list")
        assert torsh("start", target.pid).startswith("resumed")
        expect_equal(session_of(target.pid)["paused"], False, "paused")
        target.end()
    expect_equal(len(leaks(target.output)["recording"]["pauses"]), 1, "pauses")


# ---- list and top ----------------------------------------------------------------------------------------------------

@case
def list_shows_sessions_and_only_those_that_live():
    with Target() as one, Target(output=scratch("other")) as other:
        one.tell("a")
        other.tell("ab")
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
        wait_until(lambda: not session_of(other.pid), "the session to end, however often somebody asks")
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
        # Other tests' writers may have something to be said of.
        assert folder.name.encode() not in result.stdout + result.stderr, result
    finally:
        shutil.rmtree(folder)


@case
def top_prints_a_frame():
    with Target(RANK="7") as target:
        target.tell("aab")
        lines = torsh("top", "--once", "--interval", "10", target.pid).splitlines()
        assert "1 session, 1 process" in lines[0], lines
        row = next(line.split() for line in lines if line.endswith("obeys"))
        expect_equal((row[0], row[1]), (str(target.pid), "7"), "pid and rank")
        held = next(line for line in lines if "keep_first" in line)
        line = OBEYS_LINES["malloc(FIRST_BYTES)"]
        assert re.match(rf"\s*19.6 KiB\s+20\s+[\d.]+ %  keep_first  \S*obeys.c:{line}$", held), held
        target.end()


def source_lines(path, *parts):
    lines = path.read_text().splitlines()
    return {part: next(i for i, line in enumerate(lines, 1) if part in line) for part in parts}


OBEYS_LINES = source_lines(ROOT / "test/programs/obeys.c", "malloc(FIRST_BYTES)")


@case
def top_needs_a_terminal_and_says_so():
    result = run([TORSH, "top"])
    expect_equal(result.returncode, 2, "status")
    assert b"--once" in result.stderr, result.stderr


class Terminal:
    """A program on a terminal of its own, and what it has drawn there so far."""

    def __init__(self, command, term="xterm", size=(30, 110)):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(str(command[0]), [str(part) for part in command], dict(clean_environment(), TERM=term))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.seen = ""

    def read(self):
        if select.select([self.fd], [], [], 0.05)[0]:
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                return False
        return True

    def wait_for(self, *words):
        def is_there():
            self.read()
            # Without what moves the cursor and colours.
            text = re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|\(B|[=>])", " ", self.seen)
            return all(re.search(word, text) for word in words)
        wait_until(is_there, f"{words} in {self.seen[-2000:]!r}")

    def press(self, keys):
        self.seen = ""
        os.write(self.fd, keys.encode())

    def end(self):
        while self.read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@case
def top_is_drawn_on_a_terminal():
    with Target() as target:
        target.tell("aab")
        terminal = Terminal([TORSH, "top", "--interval", "100", target.pid])
        terminal.wait_for(rf"\b{target.pid}\b", "obeys", r"19\.6 KiB\s+20\b.*keep_first", "q quit", "sorted by live")
        # What changes is drawn anew.
        target.tell("a")
        terminal.wait_for(r"29\.3 KiB|29\.3")
        terminal.press("s")
        terminal.wait_for("peak")
        terminal.press("p")
        terminal.wait_for("view is held")
        terminal.press("q")
        expect_equal(terminal.end(), 0, "status of torsh top")
        target.end()


@case
def top_ends_when_its_session_does():
    with Target() as target:
        target.tell("a")
        terminal = Terminal([TORSH, "top", "--interval", "50", target.pid])
        terminal.wait_for("obeys")
        target.end()
        terminal.wait_for("has ended")
        expect_equal(terminal.end(), 0, "status of torsh top")


@case
def a_terminal_that_cannot_be_drawn_on_is_refused():
    terminal = Terminal([TORSH, "top"], term="no-such-terminal")
    terminal.wait_for("can't be drawn on")
    expect_equal(terminal.end(), 2, "status of torsh top")


# ---- who is refused --------------------------------------------------------------------------------------------------

@case
def a_process_without_a_session_is_status_2():
    for command in ("snapshot", "stop", "start"):
        result = run([TORSH, command, os.getpid()])
        expect_equal(result.returncode, 2, f"status of torsh {command}")
        assert b"is being recorded" in result.stderr, result.stderr
        for wrong in ([], ["0"], ["-1"], ["x"], ["1", "2"]):
            expect_equal(run([TORSH, command, *wrong]).returncode, 2, f"status of torsh {command} {wrong}")
    expect_equal(run([TORSH, "top", "--once", os.getpid()]).returncode, 2, "status of torsh top")


@case
def a_snapshot_that_cannot_be_written_says_so():
    with Target() as target:
        target.tell("a")
        # The last one is the recording itself, which must not be harmed.
        for path in ("/nonexistent/x", "/dev/null", scratch("folder"), recordings(target.output)[0]):
            result = run([TORSH, "snapshot", target.pid, "-o", path])
            expect_equal(result.returncode, 2, f"status for {path}")
            assert b"can't write" in result.stderr, result.stderr
        assert os.path.exists("/dev/null")
        target.end()
    expect_equal(kept(target.output), {"keep_first": (10, 10 * FIRST)}, "leaks at the end")


def ask(path, message, fds=()):
    """What the writer at a socket answers: bytes, b"" when it closes the connection."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(path)
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            connection.sendmsg([message], control)
            return connection.recv(1024)
        except (ConnectionResetError, BrokenPipeError):
            return b""


@case
def what_is_no_request_is_refused():
    with Target() as target:
        target.tell("a")
        session = session_of(target.pid)
        path, writer = socket_of(session["writer_pid"]), session["writer_pid"]
        good = REQUEST.pack(MAGIC, VERSION, STATUS, 0, 0)
        assert len(ask(path, good)) == 32
        choose = random.Random(4)
        bad = [good[:n] for n in range(len(good))] + [good + b"\0", good * 100, MAGIC, b"torshch1" + bytes(8),
               REQUEST.pack(MAGIC, VERSION + 1, STATUS, 0, 0), REQUEST.pack(MAGIC, VERSION, 0, 0, 0),
               REQUEST.pack(MAGIC, VERSION, 6, 0, 0), REQUEST.pack(MAGIC, VERSION, STATUS, 0xffffffff, 0),
               REQUEST.pack(MAGIC, VERSION, STATUS, 0, 1)]
        bad += [choose.randbytes(choose.randrange(64)) for _ in range(200)]
        for message in bad:
            expect_equal(ask(path, message), b"", f"answer to {message[:64]!r}")
        n_open = len(os.listdir(f"/proc/{writer}/fd"))
        with open("/dev/null") as null:
            for _ in range(50):
                expect_equal(ask(path, good, [null.fileno()] * 3), b"", "answer to a request with descriptors")
        assert len(os.listdir(f"/proc/{writer}/fd")) <= n_open, "descriptors of strangers stay open"
        # Who says nothing holds nobody up.
        idle = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(200)]
        for connection in idle:
            connection.connect(path)
        expect_equal(kept(snapshot(target.pid)), {"keep_first": (10, 10 * FIRST)}, "live blocks")
        assert len(os.listdir(f"/proc/{writer}/fd")) < n_open + 100, "callers are too many"
        for connection in idle:
            connection.close()
        target.end()
    expect_equal(kept(target.output), {"keep_first": (10, 10 * FIRST)}, "leaks at the end")


@case
def who_asks_and_goes_away_is_forgotten():
    with Target() as target:
        target.tell("am")
        path = socket_of(session_of(target.pid)["writer_pid"])
        for verb in (STATUS, SNAPSHOT) * 20:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.connect(path)
                connection.send(REQUEST.pack(MAGIC, VERSION, verb, 0, 0))
        target.tell("M")
        expect_equal(kept(snapshot(target.pid)), {"keep_first": (10, 10 * FIRST)}, "live blocks")
        target.end()


@case
def many_may_ask_at_once():
    with Target() as target:
        target.tell("aab")
        folder = scratch("snapshots")
        asking = [subprocess.Popen([str(TORSH), "snapshot", str(target.pid), "-o", str(folder / f"{i}.torsh")],
                                   env=clean_environment(), stdout=subprocess.DEVNULL) for i in range(8)]
        torsh("stop", target.pid)
        torsh("start", target.pid)
        for process in asking:
            expect_equal(process.wait(TIMEOUT_S), 0, "status of torsh snapshot")
        for path in folder.iterdir():
            expect_equal(kept(path), {"keep_first": (20, 20 * FIRST), "keep_second": (10, 10 * SECOND)}, "live blocks")
        target.end()


@case
def a_writer_that_does_not_answer_is_named():
    with Target() as target:
        target.tell("a")
        writer = session_of(target.pid)["writer_pid"]
        os.kill(writer, signal.SIGSTOP)
        try:
            result = run([TORSH, "list"])
        finally:
            os.kill(writer, signal.SIGCONT)
        expect_equal(result.returncode, 0, "status")
        assert b"didn't answer in time" in result.stderr, result.stderr
        target.end()


@case
def a_writer_that_dies_is_missed():
    with Target() as target:
        target.tell("a")
        writer = session_of(target.pid)["writer_pid"]
        os.kill(writer, signal.SIGSTOP)
        with started([TORSH, "snapshot", target.pid, "-o", scratch("snapshots") / "x"], clean_environment(),
                     stderr=subprocess.PIPE) as asking:
            wait_until(lambda: "socket:" in " ".join(descriptors(asking.pid)), "it to be connected")
            os.kill(writer, signal.SIGKILL)
            _, words = asking.communicate(timeout=TIMEOUT_S)
        expect_equal(asking.returncode, 2, "status")
        assert words.startswith(b"torsh: "), words
        target.end()


def descriptors(pid):
    try:
        return [os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []


def status_as(user, function):
    """What the function returns in a process of that user's."""
    pid = os.fork()
    if pid == 0:
        try:
            become(user)()
            os._exit(function())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def can_connect(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        try:
            connection.connect(path)
        except PermissionError:
            return 0
    return 1


@case
def another_user_sees_nothing():
    need_root()
    with Target() as target:
        target.tell("a")
        session = session_of(target.pid)
        stranger = {"preexec_fn": become("nobody")}
        expect_equal([s for s in sessions(**stranger) if s["writer_pid"] == session["writer_pid"]], [], "sessions of nobody")
        for command in ("snapshot", "stop", "start", "top"):
            for pid in (target.pid, session["writer_pid"]):
                result = run([TORSH, command, pid, *(["--once"] if command == "top" else [])], **stranger)
                expect_equal(result.returncode, 2, f"status of torsh {command} for another user ({result.stderr!r})")
        path = socket_of(session["writer_pid"])
        expect_equal(status_as("nobody", lambda: can_connect(path)), 0, "connections of nobody")
        expect_equal(can_connect(path), 1, "connections of its own user")
        expect_equal(session_of(target.pid)["paused"], False, "paused")
        target.end()


@case
def not_even_root_is_answered_by_others_writers():
    need_root()
    output = scratch()
    output.chmod(0o777)
    with Target(output=output, user="nobody") as target:
        target.tell("a")
        writer = wait_until(lambda: next((s["writer_pid"] for s in sessions(preexec_fn=become("nobody"))
                                          if target.pid in [p["pid"] for p in s["processes"]]), None), "its own user to see it")
        assert not session_of(target.pid)
        expect_equal(run([TORSH, "stop", target.pid]).returncode, 2, "status of torsh stop")
        path = socket_of(writer)
        for verb in (STATUS, SNAPSHOT, PAUSE, RESUME):
            expect_equal(ask(path, REQUEST.pack(MAGIC, VERSION, verb, 0, 0)), b"", f"answer to {verb}")
        target.end()
    expect_equal(leaks(output)["recording"]["pauses"], [], "pauses")


@case
def the_live_commands_are_clean_under_valgrind():
    need_command("valgrind")
    with Target() as target:
        target.tell("ab")
        for command in (["list"], ["list", "--json"], ["snapshot", target.pid, "-o", scratch("v") / "x"], ["stop", target.pid],
                        ["start", target.pid], ["top", "--once", "--interval", "1"]):
            result = run(["valgrind", "-q", "--error-exitcode=99", "--leak-check=no", TORSH, *command])
            expect_equal(result.returncode, 0, f"status of {command} under valgrind ({result.stderr.decode()[-800:]})")
        target.end()


main()
