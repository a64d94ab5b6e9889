# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Every way to tell of a request in Python; prints what came of the calls, which is the same without the agent.
test/e2e/python/requests_python.py has the expected steps.
"""

import asyncio
import contextvars
import os
import threading
from wsgiref.util import setup_testing_defaults

os.environ["TORSH_APP"] = "requests:application"

import torsh
import torsh.asgi
import torsh.wsgi


@torsh.request("function")
def function(n):
    """Counts."""
    with torsh.request("inner"):
        return n + 1


@torsh.request("turns")
async def turns(n):
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return n


@torsh.request("raises")
async def raises():
    try:
        await asyncio.sleep(0)
        raise ValueError("caught")
    finally:
        await asyncio.sleep(0)


@torsh.request("waits")
async def waits(begun):
    begun.set()
    await asyncio.Event().wait()


async def inside(meeting):
    with torsh.request("inside"):
        meeting.append(asyncio.Event())
        if len(meeting) == 2:
            for event in meeting:
                event.set()
        await meeting[-1].wait()


async def cancelled():
    begun = asyncio.Event()
    task = asyncio.ensure_future(waits(begun))
    await begun.wait()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"


async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


async def coroutines():
    sent, meeting = [], []

    async def send(message):
        sent.append(message["type"])

    print(await asyncio.gather(turns(1), turns(2)), await cancelled())
    try:
        await raises()
    except ValueError as error:
        print(error)
    await asyncio.gather(inside(meeting), inside(meeting))
    app = torsh.asgi.Requests(answer)
    await app({"type": "http", "method": "GET", "path": "/asgi"}, None, send)
    print(sent)


def application(environ, start_response):
    start_response("200 OK", [])
    if environ["PATH_INFO"] == "/whole":
        return [b"whole"]
    return (part for part in (b"in ", b"parts"))


def answers(app, path):
    environ = {"PATH_INFO": path}
    setup_testing_defaults(environ)
    return b"".join(app(environ, lambda status, headers: None))


def on_a_thread():
    """A thread with the context of a request works on it, too."""
    with torsh.request("across"):
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(function, 1))
        thread.start()
        thread.join()


def main():
    print(function(4), function.__name__, function.__doc__)
    again = torsh.request("again")
    with again, again:
        pass
    asyncio.run(coroutines())
    print(answers(torsh.wsgi.Requests(application), "/whole"), answers(torsh.wsgi.app, "/parts"))
    on_a_thread()


if __name__ == "__main__":
    main()
