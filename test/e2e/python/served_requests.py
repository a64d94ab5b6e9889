#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Requests of servers that know nothing of steps, by what their sockets receive and send: those of real servers are in their
access logs; each begins and ends where a program that speaks HTTP/1 by itself says so.
"""

import concurrent.futures
import pathlib
import re
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from timeline import timeline  # noqa: E402
from unix_http import UnixConnection, is_listening  # noqa: E402

ON = {"TORSH_PROFILER_REQUESTS": "1", "TORSH_PROFILER_RECORD": "full"}

# Both sides of connections, with a mark after each exchange.
EXCHANGES = r"""
import socket, torsh
def exchange(name, received, sent, connection=None):
    client, server = connection or socket.socketpair()
    for part in received:
        client.send(part)
        server.recv(65536)
    for part in sent:
        server.send(part)
        client.recv(65536)
    torsh.mark(name)
    return client, server
def request(words):
    return words.encode() + b"\r\nHost: here\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
kept = exchange("length", [request("GET /length HTTP/1.1")], [OK + b"content-length: 5\r\n\r\n", b"he", b"llo", b"more"])
exchange("again", [request("GET /again?secret=1 HTTP/1.1")], [OK + b"Content-Length: 2\r\n\r\nok"], kept)
exchange("body", [request("POST /body HTTP/1.1"), b"GET /inside HTTP/1.1\r\n\r\n"], [OK + b"Content-Length: 0\r\n\r\n"])
exchange("head", [request("HEAD /head HTTP/1.1")], [OK + b"Content-Length: 100\r\n\r\n"])
exchange("empty", [request("GET /empty HTTP/1.1")], [b"HTTP/1.1 204 No Content\r\n\r\n"])
exchange("chunks", [request("GET /chunks HTTP/1.1")], [OK + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n", b"0\r\n\r", b"\n"])
exchange("continue", [request("PUT /continue HTTP/1.1")], [b"HTTP/1.1 100 Continue\r\n\r\n", OK + b"Content-Length: 1\r\n\r\n!"])
exchange("close", [request("GET /close HTTP/1.0")], [OK + b"\r\n", b"part", b"part"])
exchange("long", [request("GET /" + "n" * 500 + " HTTP/1.1")], [OK + b"Content-Length: 0\r\n\r\n"])
client, server = exchange("asked", [request("GET /gone HTTP/1.1")], [])
client.close()
assert server.recv(10) == b""
torsh.mark("gone")
exchange("none", [b"GET noslash HTTP/1.1\r\n\r\n", b"get /small HTTP/1.1\r\n\r\n", b"GET /x FTP\r\n\r\n", b"GET", b"GET /half"], [OK + b"\r\n"])
client, server = socket.socketpair()
client.send(request("GET /peeked HTTP/1.1"))
server.recv(10, socket.MSG_PEEK)
torsh.mark("peeked")
print("done")
"""
WHOLE = ["start", "end"]
EXPECTED = {
    "length": WHOLE, "again": WHOLE, "body": WHOLE, "head": WHOLE, "empty": WHOLE, "chunks": WHOLE, "continue": WHOLE,
    "close": WHOLE * 3,  # to the last data that it has sent, whose end nothing else shows
    "long": WHOLE, "asked": ["start"], "gone": ["end"], "none": [], "peeked": [],
}


def record_exchanges(**variables):
    environment = {"PYTHONPATH": ROOT / "tools/python", "PYTHONDONTWRITEBYTECODE": "1", **variables}
    result, output = record([sys.executable, "-c", EXCHANGES], env=environment)
    expect_equal((result.returncode, result.stdout), (0, b"done\n"), f"status and output ({result.stderr.decode()[-1000:]})")
    return output


@case
def a_request_lasts_to_the_end_of_its_response():
    output, found, numbers = record_exchanges(**ON), {}, set()
    seen = []
    for event in timeline(output):
        if event["event"] == "mark":
            found[event["name"]], seen = seen, []
        elif event["event"] == "range_start" and event["domain"] == "torsh.request":
            numbers.add(event["range"])
            seen.append("start")
        elif event["event"] == "range_end" and event["range"] in numbers:
            seen.append("end")
    expect_equal(found, EXPECTED, "ranges between the marks")
    steps = read_report("steps", output, "--limit", "0")
    expect_equal(steps["rule"], "requests", "rule")
    long = ("GET /" + "n" * 500)[:191]
    expect_equal([step["name"] for step in steps["steps"]], ["GET /length", "GET /again", "POST /body", "HEAD /head", "GET /empty",
                 "GET /chunks", "PUT /continue", "GET /close", long, "GET /gone"], "requests")


@case
def nothing_is_taken_for_a_request_unless_it_is_wanted():
    output = record_exchanges(TORSH_PROFILER_RECORD="full")
    assert not [event for event in timeline(output) if event["event"] == "range_start"], "a range"


# ---- real servers ----------------------------------------------------------------------------------------------------------

APPLICATION = """
import asyncio, pathlib
async def asgi(scope, receive, send):
    # Two are open at once: each waits until the other has come.
    asgi.n_open += 1
    while asgi.n_open % 2:
        await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"in ", "more_body": True})
    await send({"type": "http.response.body", "body": b"parts"})
asgi.n_open = 0
def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"in ", b"parts"]
"""
LIBRARY = """
import http.server, pathlib, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"in ")
        self.wfile.write(b"parts")
    def address_string(self):
        return "here"
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
Server(sys.argv[1], Handler).serve_forever()
"""


def get_some(path, client):
    connection = UnixConnection(path)
    for n in range(5):
        connection.request("GET", f"/{client}/{n}?secret={n}")
        answer = connection.getresponse()
        expect_equal((answer.status, answer.read()), (200, b"in parts"), "answer")
    connection.close()


def serve(command, end, environment):
    """The access log, as (path) in the order of answers."""
    folder = scratch("application")
    folder.joinpath("served.py").write_text(APPLICATION)
    folder.joinpath("library.py").write_text(LIBRARY)
    with tempfile.TemporaryDirectory() as short, open(folder / "log", "w+b") as log:  # paths of sockets have 107 bytes
        path = pathlib.Path(short) / "socket"
        command = [str(word).replace("SOCKET", str(path)) for word in command]
        with started(command, environment, cwd=folder, stdout=log, stderr=log) as server:
            wait_until(lambda: is_listening(path), "the server listens")
            with concurrent.futures.ThreadPoolExecutor(2) as clients:
                list(clients.map(lambda n: get_some(path, n), range(2)))
            server.send_signal(end)
            server.wait(60)
        log.seek(0)
        return re.findall(r'"(GET /\d/\d)\?secret', log.read().decode())


def compare(command, end=signal.SIGINT, python=None):
    output = scratch("output")
    python = python or environment_python("servers")
    command = [python, *command]
    logged = serve(command, end, agent_environment(output, PYTHONDONTWRITEBYTECODE="1", **ON))
    wanted = sorted(f"GET /{client}/{n}" for client in range(2) for n in range(5))
    expect_equal(sorted(logged), wanted, "the server's own log")
    expect_equal(sorted(serve(command, end, clean_environment())), wanted, "its log without the agent")
    steps = [step for path in recordings(output) for pid in pids_of(path) for step in steps_of(path, pid)]
    expect_equal(sorted(step["name"] for step in steps), wanted, "requests")
    return steps


def pids_of(recording):
    return [process["pid"] for process in read_report("report", recording)["processes"]]


def steps_of(recording, pid):
    report = read_report("steps", recording, "--limit", "0", "--pid", str(pid))
    return report["steps"] if report["rule"] == "requests" else []


@case
@needs("servers")
def requests_of_uvicorn_are_those_of_its_log():
    compare(["-m", "uvicorn", "--loop", "asyncio", "--lifespan", "off", "served:asgi", "--uds", "SOCKET"])


@case
@needs("servers")
def requests_of_gunicorn_are_those_of_its_log():
    compare(["-m", "gunicorn", "served:wsgi", "--bind", "unix:SOCKET", "--access-logfile", "-"])


@case
@needs("servers")
def requests_of_gunicorns_threads_are_those_of_its_log():
    compare(["-m", "gunicorn", "served:wsgi", "--bind", "unix:SOCKET", "--threads", "2", "--access-logfile", "-"])


@case
def requests_of_the_standard_librarys_server_are_those_of_its_log():
    compare(["library.py", "SOCKET"], python=sys.executable)


main()
