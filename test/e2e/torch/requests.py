#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Requests of real servers are steps, each with its own operators, also where they overlap."""

import concurrent.futures
import json
import pathlib
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from harness import *  # noqa: E402,F403
from environments import environment_python  # noqa: E402
from schema import expect_fits  # noqa: E402
from torch_python import OPERATORS_ONLY, torch_python  # noqa: E402
from unix_http import get, is_listening  # noqa: E402

FOLDER = ROOT / "test/python/inference"
# Pairs of requests that wait for each other: forwards of each.
PAIRS = [(1, 3), (2, 6), (4, 5)]


def environment_of(**variables):
    """PyTorch's Python with the packages of the servers: these are of Python alone."""
    packages = run([environment_python("servers"), "-c", "import uvicorn, os; print(os.path.dirname(os.path.dirname(uvicorn.__file__)))"])
    paths = [ROOT / "tools/python", FOLDER, packages.stdout.decode().strip()]
    return {**OPERATORS_ONLY, "PYTHONPATH": ":".join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1", **variables}


def serve(command, together=2, has_agent=True, **variables):
    """The recording of the server after pairs of requests, those of a pair at the same time."""
    folder = scratch("served")
    with tempfile.TemporaryDirectory() as short:  # paths of sockets have 107 bytes
        serve_pairs(command, pathlib.Path(short) / "socket", folder / "out", together, has_agent, variables)
    return folder / "out"


def serve_pairs(command, path, output, together, has_agent, variables):
    variables = environment_of(TOGETHER=str(together), **variables)
    environment = agent_environment(output, **variables) if has_agent else {**clean_environment(), **variables}
    with started([torch_python(), "-m", *(str(word).replace("SOCKET", str(path)) for word in command)], environment) as server:
        wait_until(lambda: is_listening(path), "the server listens")
        with concurrent.futures.ThreadPoolExecutor(2) as clients:
            for pair in PAIRS:
                if together == 2:
                    answers = list(clients.map(lambda n: get(path, f"/{n}"), pair))
                else:
                    answers = [get(path, f"/{n}") for n in pair]
                expect_equal(answers, [(200, b"ok")] * 2, "answers")
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def expect_requests(output):
    report = json.loads(torsh("steps", output, "--json", "--limit", "0"))
    expect_fits("steps", report)
    expect_equal((report["rule"], report["certainty"]), ("requests", 1), "rule")
    steps = report["steps"]
    wanted = sorted(n for pair in PAIRS for n in pair)
    expect_equal(sorted(step["name"] for step in steps), [f"GET /{n}" for n in wanted], "requests")
    calls = {int(step["name"].rpartition("/")[2]): step["calls"] for step in steps}
    expect_equal(calls, {n: n * calls[1] for n in wanted}, "operators of each request")
    for step in steps:
        expect_equal(sum(step["phases"].values()), step["duration_ns"], f"phases of {step}")
        assert step["phases"]["forward"] > 0, step
    return steps


def expect_overlaps(steps):
    """Both requests of a pair are open at the same time."""
    by_name = {step["name"]: step for step in steps}
    for pair in PAIRS:
        one, other = (by_name[f"GET /{n}"] for n in pair)
        assert max(one["start_ns"], other["start_ns"]) < min(step["start_ns"] + step["duration_ns"] for step in (one, other)), (one, other)


UVICORN = ["uvicorn", "torsh.asgi:app", "--uds", "SOCKET", "--lifespan", "off"]
GUNICORN = ["gunicorn", "served:wsgi", "--bind", "unix:SOCKET", "--workers", "1"]


@case
@needs("servers")
def coroutines_of_uvicorn_have_their_own_operators():
    output = serve(UVICORN, TORSH_APP="served:asgi")
    steps = expect_requests(output)
    expect_overlaps(steps)
    text = torsh("steps", output)
    for words in ("6 steps", "one request that the program served", "GET /6"):
        assert words in text, f"'{words}' is not in\n{text}"


@case
@needs("servers")
def endpoints_on_a_pool_of_threads_have_theirs():
    expect_overlaps(expect_requests(serve(UVICORN, TORSH_APP="served:pool")))


@case
@needs("servers")
def threads_of_gunicorn_have_theirs():
    output = serve([*GUNICORN, "--threads", "2"], GUNICORN_CMD_ARGS="--config python:torsh.gunicorn")
    expect_overlaps(expect_requests(output))


@case
@needs("servers")
def a_worker_of_gunicorn_serves_one_by_one():
    steps = expect_requests(serve(GUNICORN, together=1, GUNICORN_CMD_ARGS="--config python:torsh.gunicorn"))
    for before, after in zip(steps, steps[1:]):
        assert before["start_ns"] + before["duration_ns"] <= after["start_ns"], (before, after)


@case
@needs("servers")
def threads_of_the_standard_librarys_server_have_theirs():
    program = FOLDER / "served_by_stdlib.py"
    expect_overlaps(expect_requests(serve(["torsh.httpd", program, "SOCKET"])))


@case
@needs("servers")
def without_the_agent_they_serve_the_same():
    serve(["torsh.httpd", FOLDER / "served_by_stdlib.py", "SOCKET"], has_agent=False)
    serve(UVICORN, has_agent=False, TORSH_APP="served:asgi")
    serve([*GUNICORN, "--threads", "2"], has_agent=False, GUNICORN_CMD_ARGS="--config python:torsh.gunicorn")


@case
@needs("servers")
def unedited_servers_have_no_requests():
    """Then repeats of the forwards are the steps."""
    output = serve(["uvicorn", "served:asgi", "--uds", "SOCKET", "--lifespan", "off"])
    report = json.loads(torsh("steps", output, "--json", "--limit", "0"))
    expect_equal((report["rule"], len(report["steps"])), ("period", sum(map(sum, PAIRS))), "steps")


main()
