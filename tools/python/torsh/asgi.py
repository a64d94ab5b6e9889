# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Requests of an ASGI application, as of FastAPI or Starlette, are steps of `torsh steps`:

    app = torsh.asgi.Requests(app)                       in the program, or without an edit
    TORSH_APP=main:app uvicorn torsh.asgi:app            the application that uvicorn would have been given

Of a websocket each connection is one. Without the agent in the process nothing is added.
"""

from torsh import is_there
from torsh._applications import load
from torsh._requests import Turns


class Requests:
    """The application, with a request around each of its calls for HTTP and websockets."""

    def __init__(self, app) -> None:
        self._app = app

    async def __call__(self, scope, receive, send):
        kind = scope["type"]
        if kind not in ("http", "websocket") or not is_there():
            return await self._app(scope, receive, send)
        name = (scope.get("method") or "WEBSOCKET") + " " + scope.get("path", "")
        traceparent = dict(scope.get("headers") or ()).get(b"traceparent")
        return await Turns(name, self._app(scope, receive, send), traceparent)


def __getattr__(name):
    if name != "app":
        raise AttributeError(name)
    return Requests(load())
