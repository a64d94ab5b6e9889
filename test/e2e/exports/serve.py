#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""torsh serve: the page in a real browser with what it fetches, and a server that lets nobody else in."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from html_report import data_of, opened_at, written  # noqa: E402

SYNTHETIC = PROGRAMS.parent / "synthetic"
SCREENS = BUILD / "test/screens"
TABS = ("overview", "memory", "time", "devices", "ranks", "findings", "recorded")
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{64})/\n")
COMMANDS = ("report", "leaks", "peak", "ops", "steps", "modules", "kernels", "tensors", "regions")
AT_ONCE = 200
LISTENS = "0A"  # of /proc/net/tcp


def synthetic(*numbers):
    recording = scratch("recording") / "synthetic.torsh"
    expect_equal(run([SYNTHETIC, recording, *map(str, numbers)]).returncode, 0, "status of synthetic")
    return recording


class Server:
    def __init__(self, process, address):
        self.process, self.address = process, address
        match = ADDRESS.fullmatch(address)
        assert match, f"not an address with a token: {address!r}"
        self.address, self.port, self.token = address.strip(), int(match[1]), match[2]

    def get(self, path, status=200):
        """The answer's body and headers."""
        try:
            with urllib.request.urlopen(self.address + path, timeout=TIMEOUT_S) as answer:
                body, headers, got = answer.read(), answer.headers, answer.status
        except urllib.error.HTTPError as error:
            body, headers, got = error.read(), error.headers, error.code
        expect_equal(got, status, f"status of {path} ({body[:200]!r})")
        return body, headers

    def json(self, path):
        return json.loads(self.get(path)[0])

    @contextlib.contextmanager
    def connection(self, host="127.0.0.1"):
        with socket.create_connection((host, self.port), TIMEOUT_S) as one:
            yield one

    def raw(self, request, is_all=False):
        """The status line of the answer to these bytes; "" where the server only closes. is_all: nothing more will come."""
        with self.connection() as one:
            with contextlib.suppress(OSError):  # it closed
                one.sendall(request)
                if is_all:
                    one.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                return one.makefile("rb").readline().decode().strip()
            return ""

    def status(self, path, method="GET", host=None, headers=""):
        host = f"127.0.0.1:{self.port}" if host is None else host
        line = self.raw(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n".encode())
        return int(line.split()[1]) if line else 0

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        expect_equal(self.process.wait(TIMEOUT_S), 0, "status after the signal")


@contextlib.contextmanager
def serving(recording, *arguments):
    with started([TORSH, "serve", *arguments, recording], clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield Server(process, process.stdout.readline().decode())


@case
def every_tab_shows_what_the_page_of_html_shows():
    recording = synthetic(2000, 2, 1)
    document = data_of(written(recording))
    with serving(recording) as server, opened_at(server.address) as report:
        served = server.json("document")
        expect_equal({key: value for key, value in served.items() if key != "recording"},
                     {key: value for key, value in document.items() if key != "recording"}, "the document")
        for width in (400, 1280):
            for tab in TABS:
                report.open(tab, width)
                expect_equal(report.js("document.querySelector('[role=tab][aria-selected=true]').id"), f"tab-{tab}", "the open tab")
                assert report.js("document.documentElement.scrollWidth") <= width, f"{tab} is wider than {width}"
        report.screenshot(SCREENS / "serve.png")
        server.get("document")


@case
def what_the_file_leaves_out_is_fetched():
    recording = synthetic(1000, 1, 30)  # of each step 6,000 spans
    windows = data_of(written(recording))["windows"]
    shown = windows[0]
    assert shown["omitted"], "the file has all spans"
    with serving(recording) as server, opened_at(server.address) as report:
        path = f"window?process={shown['process']}&from={shown['from_ns']}&to={shown['from_ns'] + shown['duration_ns']}"
        (window,) = server.json(path)["windows"]
        expect_equal((len(window["rows"]), window["omitted"]), (len(shown["rows"]) + shown["omitted"], 0), "spans of the window")
        report.open("time/timeline")
        words = "document.querySelector('#timeline [role=status]').textContent"
        report.until(f"{words}.startsWith('{len(window['rows']):,} spans') && !{words}.includes('left out')")
        report.js("document.querySelector('.timeline canvas').focus()")
        report.press("w")
        report.until(f"!{words}.startsWith('{len(window['rows']):,} spans')")
        # A step that the file has no window of.
        step = next(step for step in read_report("steps", recording, "--limit", "0")["steps"]
                    if step["index"] not in [window["step"] for window in windows])
        report.js(f"(box => {{ box.value = {step['index']}; box.dispatchEvent(new Event('change')); }})(document.querySelector('.window-picker [aria-label=step]'))")
        report.click(".window-picker [type=submit]")
        wanted = server.json(f"window?process=0&from={step['start_ns']}&to={step['start_ns'] + step['duration_ns']}")["windows"][0]
        report.until(f"{words}.startsWith('{len(wanted['rows']):,} spans')")


@case
def tables_fetch_all_their_rows():
    recording = synthetic(420_000, 1, 0)
    steps = read_report("steps", recording, "--limit", "0")["steps"]
    with serving(recording) as server, opened_at(server.address) as report:
        whole = server.json("time")
        expect_equal([row[1:4] for row in whole["steps"]["rows"]], [[step["index"], step["start_ns"], step["duration_ns"]] for step in steps], "steps")
        report.open("time")
        note = "document.querySelector('#steps .note')?.textContent ?? ''"
        assert "not on this page" in report.js(note), report.js(note)
        report.click("#steps button.whole")
        report.until(f"!({note}).includes('not on this page')")
        memory = server.json("memory")
        expect_equal((memory["leaks"]["bytes"], memory["trees"]["merged"]["left_out"]), (leaks(recording)["leaked_bytes"], 0), "leaks and nodes left out")


@case
def json_is_that_of_the_commands():
    recording = synthetic(400, 1, 1)
    with serving(recording) as server:
        for name in COMMANDS:
            expect_equal(server.json(f"json/{name}?limit=0"), read_report(name, recording, "--limit", "0"), name)
        expect_equal(len(server.json("json/ops?limit=1")["ops"]), 1, "operators with limit=1")
        for name in ("dump", "run", "../ops", "html", ""):
            server.get(f"json/{name}", 404)


@case
def nobody_else_gets_in():
    with serving(synthetic(400, 1, 1)) as server:
        own = f"/{server.token}/"
        expect_equal(server.status(own), 200, "status with the token")
        for wrong in ("/", own[:-2], own[:-1], f"/{server.token[:-1]}0{'' if server.token[-1] != '0' else '1'}/", f"/{'0' * 64}/document", "//", "*",
                      f"/{server.token.upper()}/" if server.token.upper() != server.token else "/", f"http://127.0.0.1:{server.port}{own}"):
            expect_equal(server.status(wrong), 403, f"status of {wrong}")
        for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", f"127.0.0.1:{server.port + 1}", f"127.0.0.1:{server.port}.evil.example", ""):
            expect_equal(server.status(own, host=host), 403, f"status for the host {host}")
        for host in (f"localhost:{server.port}", f"[::1]:{server.port}"):
            expect_equal(server.status(own, host=host), 200, f"status for the host {host}")
        expect_equal(server.status(own, headers="Host: evil.example\r\n"), 403, "status with two hosts")
        for method in ("POST", "PUT", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "BREW"):
            expect_equal(server.status(own, method), 405, f"status of {method}")
        assert server.status(own, "POST", headers="Content-Length: 1000000\r\n") in (0, 400, 405, 413), "a large body"
        for path in ("..", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "document/..", "document%00", "Document",
                     "window", "window?process=0&from=5&to=5", "window?process=0&from=-1&to=5", "window?process=0&from=1&to=99999999999999999999999"):
            expect_equal(server.status(own + path), 404, f"status of {path}")
        expect_equal(server.status(own + "window?process=7&from=0&to=5"), 500, "status of a process that there is not")
        for path in (own, own + "document", "/"):
            with contextlib.suppress(urllib.error.HTTPError):
                headers = urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=TIMEOUT_S).headers
                expect_equal((headers["Cache-Control"], headers["Referrer-Policy"], headers["X-Content-Type-Options"]),
                             ("no-store", "no-referrer", "nosniff"), f"headers of {path}")
                assert "default-src 'none'" in headers["Content-Security-Policy"], headers["Content-Security-Policy"]
        server.stop()


@case
def bad_clients_do_not_stop_it():
    with serving(synthetic(400, 1, 1)) as server:
        own = f"GET /{server.token}/"
        for request in (b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100_000 + b"\r\n", b"\x00" * 5000, b"GET\r\n\r\n",
                        b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 5000):
            line = server.raw(request, is_all=True)
            assert not line or int(line.split()[1]) >= 400, f"{request[:30]!r} is answered with {line}"
        whole = f"{own}document HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
        with contextlib.ExitStack() as stack:
            for _ in range(AT_ONCE):
                stack.enter_context(server.connection())
            slow = stack.enter_context(server.connection())
            slow.sendall(whole[:20])
            expect_equal(server.status(f"/{server.token}/"), 200, f"status beside {AT_ONCE} connections")
            # One that requests and leaves, one that requests twice at once, and one that does not read.
            gone = stack.enter_context(server.connection())
            gone.sendall(whole)
            gone.close()
            twice = stack.enter_context(server.connection())
            twice.sendall(whole + whole)
            deaf = stack.enter_context(server.connection())
            deaf.sendall(whole)
            slow.sendall(whole[20:])
            expect_equal(slow.recv(15), b"HTTP/1.1 200 OK", "the slow client's answer")
            server.get("document")
        with contextlib.ExitStack() as stack:
            for _ in range(2 * AT_ONCE):
                stack.enter_context(server.connection())
        server.get("")
        expect_equal(server.process.poll(), None, "the server's status")
        children = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        wait_until(lambda: not children.read_text(), "the processes that answer end")
        expect_equal(len(list(pathlib.Path(f"/proc/{server.process.pid}/task").iterdir())), 1, "threads")
        server.stop()


def listening(port):
    """Local addresses of sockets that listen on a port, as the kernel prints them."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {fields[1].split(":")[0] for fields in lines if fields[3] == LISTENS and int(fields[1].split(":")[1], 16) == port}


@case
def only_loopback_is_bound():
    with serving(synthetic(400, 1, 1)) as server:
        addresses = listening(server.port)
        assert "0100007F" in addresses, addresses
        expect_equal(addresses - {"0100007F", "00000000000000000000000001000000"}, set(), "other addresses")
        result = run([TORSH, "serve", "--port", str(server.port), "--no-browser", server.process.args[-1]])
        expect_equal(result.returncode, 2, "status where the port is used")
        assert b"cannot be used" in result.stderr, result.stderr
        server.stop(signal.SIGTERM)
        expect_equal(listening(server.port), set(), "addresses after the end")


@case
def a_removed_recording_is_a_clear_error():
    recording = synthetic(400, 1, 1)
    with serving(recording) as server:
        server.get("document")
        copy = recording.with_suffix(".kept")
        recording.rename(copy)
        for path in ("document", "memory", "window?process=0&from=0&to=1000", "json/ops"):
            body, _ = server.get(path, 410)
            assert b"was removed" in body and str(recording).encode() in body, body
        server.get("")
        shutil.copy(copy, recording)
        server.get("document")
        recording.write_bytes(b"not a recording")
        assert server.get("document", 500)[0], "no sentence"


@case
def a_recording_that_is_being_written_shows_more_on_reload():
    recording = synthetic(400, 1, 1)
    longer = synthetic(800, 1, 1).read_bytes()
    recording.parent.mkdir(exist_ok=True)
    expect_equal(run([SYNTHETIC, recording, "400", "1", "1"]).returncode, 0, "status of synthetic")
    with serving(recording) as server:
        before = server.json("document")["operators"]["calls"]
        recording.write_bytes(longer)
        assert server.json("document")["operators"]["calls"] > before, "nothing new is shown"


@case
def a_browser_is_opened_only_on_a_display():
    fake = scratch("bin")
    (fake / "xdg-open").write_text(f"#!/bin/sh\necho \"$1\" >{fake}/opened\ncp \"$1\" {fake}/redirect\n")
    (fake / "xdg-open").chmod(0o755)
    recording = synthetic(400, 1, 1)
    env = dict(clean_environment(), PATH=f"{fake}:{os.environ['PATH']}", XDG_RUNTIME_DIR=str(fake))
    env.pop("DISPLAY", None)
    env.pop("WAYLAND_DISPLAY", None)
    for display in ({}, {"DISPLAY": ":99"}):
        with started([TORSH, "serve", "--browser", recording], {**env, **display}, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            server = Server(process, process.stdout.readline().decode())
            if display:
                wait_until((fake / "redirect").exists, "xdg-open is run")
                opened = (fake / "opened").read_text().strip()
                wait_until(lambda: server.address in (fake / "redirect").read_text(), "the redirect leads to the page")
                expect_equal(os.stat(opened).st_mode & 0o777, 0o600, "mode of the redirect")
            server.stop()
            if display:
                assert not os.path.exists(opened), f"{opened} is left"
            else:
                assert b"no display" in process.stderr.read(), "no word about the display"
                assert not (fake / "opened").exists(), "a browser was opened without a display"


main()
