#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Requests that a writer refuses, or that no writer can answer."""

import array
import pathlib
import pwd
import random
import signal
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from live_targets import FIRST, SECOND, Target, become, kept, session_of, sessions, snapshot, socket_of  # noqa: E402

REQUEST = struct.Struct("<8sIIII")
MAGIC, VERSION = b"torshrq1", 1
STATUS, SNAPSHOT, PAUSE, RESUME = 1, 2, 3, 4


@case
def a_process_without_a_session_is_status_2():
    for command in ("snapshot", "pause", "resume"):
        result = run([TORSH, command, os.getpid()])
        expect_equal(result.returncode, 2, f"status of torsh {command}")
        assert b"is being recorded" in result.stderr, result.stderr
        for wrong in ([], ["0"], ["-1"], ["x"], ["1", "2"]):
            expect_equal(run([TORSH, command, *wrong]).returncode, 2, f"status of torsh {command} {wrong}")
    expect_equal(run([TORSH, "top", "--once", os.getpid()]).returncode, 2, "status of torsh top")


@case
def a_snapshot_that_cannot_be_written_reports_it():
    with Target() as target:
        target.send("a")
        # The last one is the recording itself, which must not be harmed.
        for path in ("/nonexistent/x", "/dev/null", scratch("folder"), recordings(target.output)[0]):
            result = run([TORSH, "snapshot", target.pid, "-o", path])
            expect_equal(result.returncode, 2, f"status for {path}")
            assert b"can't write" in result.stderr, result.stderr
        assert os.path.exists("/dev/null")
        target.end()
    expect_equal(kept(target.output), {"keep_first": (10, 10 * FIRST)}, "leaks at the end")


def request(path, message, fds=()):
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
        target.send("a")
        session = session_of(target.pid)
        path, writer = socket_of(session["writer_pid"]), session["writer_pid"]
        good = REQUEST.pack(MAGIC, VERSION, STATUS, 0, 0)
        assert len(request(path, good)) == 32
        choose = random.Random(4)
        bad = [good[:n] for n in range(len(good))] + [good + b"\0", good * 100, MAGIC, b"torshch1" + bytes(8),
               REQUEST.pack(MAGIC, VERSION + 1, STATUS, 0, 0), REQUEST.pack(MAGIC, VERSION, 0, 0, 0),
               REQUEST.pack(MAGIC, VERSION, 5, 0, 0), REQUEST.pack(MAGIC, VERSION, 10, 0, 0), REQUEST.pack(MAGIC, VERSION, STATUS, 0xffffffff, 0),
               REQUEST.pack(MAGIC, VERSION, STATUS, 0, 1)]
        bad += [choose.randbytes(choose.randrange(64)) for _ in range(200)]
        for message in bad:
            expect_equal(request(path, message), b"", f"answer to {message[:64]!r}")
        n_open = len(os.listdir(f"/proc/{writer}/fd"))
        with open("/dev/null") as null:
            for _ in range(50):
                expect_equal(request(path, good, [null.fileno()] * 3), b"", "answer to a request with descriptors")
        assert len(os.listdir(f"/proc/{writer}/fd")) <= n_open, "descriptors of strangers stay open"
        # A client that sends nothing blocks nobody.
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
def a_client_that_disconnects_is_forgotten():
    with Target() as target:
        target.send("am")
        path = socket_of(session_of(target.pid)["writer_pid"])
        for verb in (STATUS, SNAPSHOT) * 20:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.connect(path)
                connection.send(REQUEST.pack(MAGIC, VERSION, verb, 0, 0))
        target.send("M")
        expect_equal(kept(snapshot(target.pid)), {"keep_first": (10, 10 * FIRST)}, "live blocks")
        target.end()


@case
def many_clients_are_served_at_once():
    with Target() as target:
        target.send("aab")
        folder = scratch("snapshots")
        client = [subprocess.Popen([str(TORSH), "snapshot", str(target.pid), "-o", str(folder / f"{i}.torsh")],
                                   env=clean_environment(), stdout=subprocess.DEVNULL) for i in range(8)]
        torsh("pause", target.pid)
        torsh("resume", target.pid)
        for process in client:
            expect_equal(process.wait(TIMEOUT_S), 0, "status of torsh snapshot")
        for path in folder.iterdir():
            expect_equal(kept(path), {"keep_first": (20, 20 * FIRST), "keep_second": (10, 10 * SECOND)}, "live blocks")
        target.end()


@case
@waits
def a_writer_that_does_not_answer_is_named():
    with Target() as target:
        target.send("a")
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
@waits
def a_writer_that_dies_is_missed():
    with Target() as target:
        target.send("a")
        writer = session_of(target.pid)["writer_pid"]
        os.kill(writer, signal.SIGSTOP)
        with started([TORSH, "snapshot", target.pid, "-o", scratch("snapshots") / "x"], clean_environment(),
                     stderr=subprocess.PIPE) as client:
            wait_until(lambda: "socket:" in " ".join(descriptors(client.pid)), "it to be connected")
            os.kill(writer, signal.SIGKILL)
            _, words = client.communicate(timeout=TIMEOUT_S)
        expect_equal(client.returncode, 2, "status")
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
        target.send("a")
        session = session_of(target.pid)
        stranger = {"preexec_fn": become("nobody")}
        expect_equal([s for s in sessions(**stranger) if s["writer_pid"] == session["writer_pid"]], [], "sessions of nobody")
        for command in ("snapshot", "pause", "resume", "top"):
            for pid in (target.pid, session["writer_pid"]):
                result = run([TORSH, command, pid, *(["--once"] if command == "top" else [])], **stranger)
                expect_equal(result.returncode, 2, f"status of torsh {command} for another user ({result.stderr!r})")
        path = socket_of(session["writer_pid"])
        expect_equal(status_as("nobody", lambda: can_connect(path)), 0, "connections of nobody")
        expect_equal(can_connect(path), 1, "connections of its own user")
        expect_equal(session_of(target.pid)["paused"], False, "paused")
        target.end()


def keep_full(path):
    """A listening socket with a full queue: connecting to it waits."""
    path.parent.mkdir()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    listening.listen(0)
    held = [listening]
    nobody = pwd.getpwnam("nobody")
    for part in (path, path.parent):
        os.chown(part, nobody.pw_uid, nobody.pw_gid)
    while True:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.setblocking(False)
        held.append(client)
        try:
            client.connect(str(path))
        except BlockingIOError:
            return held


@case
def full_sockets_of_another_user_are_not_waited_for():
    # Each would take 10 s: more than the test has, together.
    need_root()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="torsh-test-", dir="/tmp"))
    try:
        held = [keep_full(folder / f"torsh-{os.geteuid()}-{i}-1/socket") for i in range(2 + TIMEOUT_S // 10)]
        result = run([TORSH, "list"])
        expect_equal((result.returncode, b"torsh-test-" in result.stdout + result.stderr), (0, False), "status, and its output")
        del held
    finally:
        shutil.rmtree(folder)


@case
def not_even_root_is_answered_by_others_writers():
    need_root()
    output = scratch()
    output.chmod(0o777)
    with Target(output=output, user="nobody") as target:
        target.send("a")
        writer = wait_until(lambda: next((s["writer_pid"] for s in sessions(preexec_fn=become("nobody"))
                                          if target.pid in [p["pid"] for p in s["processes"]]), None), "its own user to see it")
        assert not session_of(target.pid)
        expect_equal(run([TORSH, "pause", target.pid]).returncode, 2, "status of torsh pause")
        path = socket_of(writer)
        for verb in (STATUS, SNAPSHOT, PAUSE, RESUME):
            expect_equal(request(path, REQUEST.pack(MAGIC, VERSION, verb, 0, 0)), b"", f"answer to {verb}")
        target.end()
    expect_equal(leaks(output)["recording"]["pauses"], [], "pauses")


@case
def the_live_commands_are_clean_under_valgrind():
    need_command("valgrind")
    with Target() as target:
        target.send("ab")
        for command in (["list"], ["list", "--json"], ["snapshot", target.pid, "-o", scratch("v") / "x"], ["pause", target.pid],
                        ["resume", target.pid], ["top", "--once", "--interval", "1"]):
            result = run(["valgrind", "-q", "--error-exitcode=99", "--leak-check=no", TORSH, *command])
            expect_equal(result.returncode, 0, f"status of {command} under valgrind ({result.stderr.decode()[-800:]})")
        target.end()


main()
