# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Applications that infer, for test/e2e/torch/requests.py. GET /N answers after N forwards; TOGETHER requests wait for each
other before their forwards, and in between, so that they overlap.

asgi: coroutines on one thread; pool: Starlette's, on a pool of threads, each told of by torsh.request; wsgi: threads.
"""

import asyncio
import os
import threading

import torch
from torch import nn

import torsh

TOGETHER = int(os.environ.get("TOGETHER", "2"))
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
inputs = torch.randn(8, 16)
barrier = threading.Barrier(TOGETHER)
arrived = []


def forward(n):
    with torch.inference_mode():
        for _ in range(n):
            model(inputs)


def serve(n):
    barrier.wait()
    forward(n - 1)
    barrier.wait()
    forward(1)


async def meet():
    """asyncio has barriers since 3.11 only."""
    if not arrived or arrived[-1][0] == TOGETHER:
        arrived.append([0, asyncio.Event()])
    meeting = arrived[-1]
    meeting[0] += 1
    if meeting[0] == TOGETHER:
        meeting[1].set()
    await meeting[1].wait()


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        raise NotImplementedError
    n = int(scope["path"][1:])
    await meet()
    forward(n - 1)
    await meet()
    forward(1)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def wsgi(environ, start_response):
    serve(int(environ["PATH_INFO"][1:]))
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


@torsh.request("endpoint")
def endpoint(request):
    from starlette.responses import PlainTextResponse

    serve(int(request.path_params["n"]))
    return PlainTextResponse("ok")


def __getattr__(name):
    if name != "pool":
        raise AttributeError(name)
    from starlette.applications import Starlette
    from starlette.routing import Route

    return Starlette(routes=[Route("/{n}", endpoint)])
