#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Routes of real servers, FastAPI on uvicorn, aiohttp and gunicorn: what they allocate and leak, against what they do."""

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
from unix_http import get, is_listening  # noqa: E402

FOLDER = ROOT / "test/python/requests"
BLOCK = 1 << 20
OF_PYTHON = 1 << 19
# Pairs of requests that wait for each other: a route and a number.
PAIRS = [(("quick", 1), ("large", 2)), (("leaky", 3), ("quick", 4)), (("large", 5), ("leaky", 6)), (("leaky", 7), ("leaky", 8))]
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e%04x-00f067aa0ba902b7-01"


def serve(words, environment="tasks", prefix="", together=2, has_agent=True, **variables):
    """The report on the server after pairs of requests, those of a pair at the same time."""
    folder = scratch("served")
    variables = {"PYTHONPATH": f"{ROOT / 'tools/python'}:{FOLDER}", "PYTHONDONTWRITEBYTECODE": "1", "TOGETHER": str(together), **variables}
    with tempfile.TemporaryDirectory() as short:  # paths of sockets have 107 bytes
        path = pathlib.Path(short) / "socket"
        command = [environment_python(environment), *(str(word).replace("SOCKET", str(path)) for word in words)]
        settings = agent_environment(folder / "out", **variables) if has_agent else {**clean_environment(), **variables}
        with started(command, settings) as server:
            wait_until(lambda: is_listening(path), "the server listens")
            with concurrent.futures.ThreadPoolExecutor(2) as clients:
                for pair in PAIRS:
                    ask = lambda of: get(path, "{}/{}/{}".format(prefix, *of), traceparent=TRACE % of[1])  # noqa: E731
                    answers = list(clients.map(ask, pair)) if together == 2 else [ask(of) for of in pair]
                    expect_equal(answers, [(200, b"ok")] * 2, "answers")
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    if not has_agent:
        return None
    report = json.loads(torsh("requests", folder / "out", "--json", "--limit", "0"))
    expect_fits("requests", report)
    return report


def expect_requests(report, kind="request", prefix=""):
    """Each has its own blocks, and its trace."""
    singles = {int(one["trace_id"][-4:], 16): one for one in report["requests"] if one["kind"] == kind and one["trace_id"]}
    expect_equal(sorted(singles), [n for pair in PAIRS for _, n in pair], "requests")
    for route, n in (of for pair in PAIRS for of in pair):
        single = singles[n]
        expect_equal(single["name"], f"GET {prefix}/{route}/{n}", "name")
        size = BLOCK + 4096 * n
        wanted = size + (8 * BLOCK if route == "large" else 0)
        # The first ones import, and start threads.
        assert wanted <= single["allocated_bytes"] < wanted + (OF_PYTHON if n > 2 else 32 * OF_PYTHON), (single, wanted)
        wanted = size if route == "leaky" else 0
        assert wanted <= single["kept_bytes"] < wanted + OF_PYTHON, (single, wanted)
        assert single["duration_ns"] >= single["cpu_ns"] > 0, single
    return singles


def expect_overlaps(singles):
    for (_, one), (_, other) in PAIRS:
        begin = max(singles[n]["start_ns"] for n in (one, other))
        end = min(singles[n]["start_ns"] + singles[n]["duration_ns"] for n in (one, other))
        assert begin < end, (singles[one], singles[other])


UVICORN = ["-m", "uvicorn", "torsh.asgi:app", "--uds", "SOCKET", "--lifespan", "off"]
GUNICORN = ["-m", "gunicorn", "served:wsgi", "--bind", "unix:SOCKET", "--workers", "1"]


@case
@needs("tasks")
def coroutines_of_fastapi_have_their_own():
    expect_overlaps(expect_requests(serve([*UVICORN, "--loop", "asyncio"], TORSH_APP="served:fast")))


@case
@needs("tasks")
def so_they_have_on_uvloop():
    expect_overlaps(expect_requests(serve([*UVICORN, "--loop", "uvloop"], TORSH_APP="served:fast")))


@case
@needs("tasks")
def routes_of_fastapi_on_a_pool_of_threads_have_theirs():
    report = serve([*UVICORN, "--loop", "asyncio"], prefix="/pool", TORSH_APP="served:fast")
    expect_overlaps(expect_requests(report, prefix="/pool"))


@case
@needs("servers")
def threads_of_gunicorn_have_theirs():
    report = serve([*GUNICORN, "--threads", "2"], "servers", GUNICORN_CMD_ARGS="--config python:torsh.gunicorn")
    expect_overlaps(expect_requests(report))


@case
@needs("servers")
def requests_by_sockets_have_theirs_where_a_thread_has_one():
    """Nothing of torsh is in the program."""
    report = serve(GUNICORN, "servers", together=1, TORSH_PROFILER_REQUESTS="1")
    expect_requests(report, "http")


@case
@needs("tasks")
def of_requests_by_sockets_that_a_loop_serves_only_times_are_known():
    report = serve([FOLDER / "served.py", "SOCKET"], TORSH_PROFILER_REQUESTS="1")
    served = [one for one in report["requests"] if one["kind"] == "http"]
    expect_equal(len(served), 2 * len(PAIRS), "requests")
    for one in served:
        assert one["duration_ns"] > 0 and one["trace_id"], one
        expect_equal((one["allocated_bytes"], one["cpu_ns"], one["kept_bytes"]), (None, None, None), f"of {one}")
        assert "torsh.asgi" in one["reason"], one
    # aiohttp has a task for each.
    tasks = [one for one in report["requests"] if one["kind"] == "asyncio"]
    kept = sorted(one["kept_bytes"] // BLOCK for one in tasks if one["kept_bytes"] >= BLOCK)
    expect_equal(kept, [1] * 4, f"tasks that leaked ({tasks})")


@case
@needs("tasks")
def so_are_those_that_uvloop_serves():
    """uvicorn as it is where uvloop is installed; also where waits are recorded, which bind the same functions."""
    for activities in ("heap,python", "heap,python,waits"):
        report = serve(["-m", "uvicorn", "served:fast", "--uds", "SOCKET", "--loop", "uvloop"], TORSH_PROFILER_REQUESTS="1",
                       TORSH_PROFILER_ACTIVITIES=activities)
        served = {int(one["trace_id"][-4:], 16): one for one in report["requests"] if one["kind"] == "http"}
        expect_equal({n: one["name"] for n, one in served.items()}, {n: f"GET /{route}/{n}" for pair in PAIRS for route, n in pair},
                     f"requests with {activities}")
        assert all(one["duration_ns"] > 0 and one["cpu_ns"] is None for one in served.values()), served
        expect_overlaps(served)


@case
@needs("tasks", "servers")
def without_the_agent_they_serve_the_same():
    serve([*UVICORN, "--loop", "asyncio"], has_agent=False, TORSH_APP="served:fast")
    serve([*UVICORN, "--loop", "uvloop"], has_agent=False, TORSH_APP="served:fast")
    serve([*GUNICORN, "--threads", "2"], "servers", has_agent=False, GUNICORN_CMD_ARGS="--config python:torsh.gunicorn")


main()
