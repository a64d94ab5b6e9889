# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Applications with routes that allocate, use the processor and leak known amounts, for test/e2e/python/requests_served.py:
fast of FastAPI, aio of aiohttp, wsgi and handler of the standard library. GET /quick/N, /large/N and /leaky/N; requests
of one pair wait for each other.
"""

import asyncio
import ctypes
import os
import sys
import threading

libc = ctypes.PyDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]

BLOCK = 1 << 20
TOGETHER = int(os.environ.get("TOGETHER", "2"))
leaked = []
arrived = []
barrier = threading.Barrier(TOGETHER)


def begin(route, n):
    blocks = [libc.malloc(BLOCK + 4096 * n)]
    if route == "large":
        blocks.append(libc.malloc(8 * BLOCK))
    return blocks


def end(route, blocks):
    if route == "leaky":
        leaked.append(blocks.pop())
    for block in blocks:
        libc.free(block)


async def meet():
    """asyncio has barriers since 3.11 only."""
    if not arrived or arrived[-1][0] == TOGETHER:
        arrived.append([0, asyncio.Event()])
    meeting = arrived[-1]
    meeting[0] += 1
    if meeting[0] == TOGETHER:
        meeting[1].set()
    await meeting[1].wait()


async def serve(route, n):
    await meet()
    blocks = begin(route, n)
    await meet()
    end(route, blocks)
    return "ok"


def serve_on_a_thread(route, n):
    barrier.wait(60)
    blocks = begin(route, n)
    barrier.wait(60)
    end(route, blocks)
    return "ok"


def wsgi(environ, start_response):
    _, route, n = environ["PATH_INFO"].split("/")
    serve_on_a_thread(route, int(n))
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def make_fast():
    from fastapi import FastAPI
    from fastapi.responses import PlainTextResponse

    app = FastAPI()

    @app.get("/{route}/{n}")
    async def coroutine(route: str, n: int):
        return PlainTextResponse(await serve(route, n))

    @app.get("/pool/{route}/{n}")
    def pool(route: str, n: int):
        return PlainTextResponse(serve_on_a_thread(route, n))

    return app


def __getattr__(name):
    if name != "fast":
        raise AttributeError(name)
    return make_fast()


def run_aiohttp(path):
    from aiohttp import web

    async def answer(request):
        return web.Response(text=await serve(request.match_info["route"], int(request.match_info["n"])))

    app = web.Application()
    app.add_routes([web.get("/{route}/{n}", answer)])
    web.run_app(app, path=path, print=None)


if __name__ == "__main__":
    run_aiohttp(sys.argv[1])
