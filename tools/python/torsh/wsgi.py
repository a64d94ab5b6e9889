# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Requests of a WSGI application, as of Flask or Django, are steps of `torsh steps`:

    app = torsh.wsgi.Requests(app)                       in the program, or without an edit
    TORSH_APP=main:app waitress-serve torsh.wsgi:app     the application that the server would have been given

A request lasts until its answer is made; an answer that is made in parts has a range for each. Without the agent in the
process nothing is added. gunicorn needs none of it: torsh.gunicorn.
"""

import torsh
from torsh._applications import load
from torsh._requests import DOMAIN, details_of, number_here, request


class _Parts:
    """An answer that is made while it is sent."""

    def __init__(self, parts, name, details):
        self._parts, self._next, self._name, self._details = parts, iter(parts), torsh._text(name), details

    def __iter__(self):
        return self

    def __next__(self):
        torsh._push(self._name, self._details)
        try:
            return next(self._next)
        finally:
            torsh.range_pop(DOMAIN)

    def close(self):
        if hasattr(self._parts, "close"):
            self._parts.close()


class Requests:
    """The application, with a request around each of its calls."""

    def __init__(self, app) -> None:
        self._app = app

    def __call__(self, environ, start_response):
        if not torsh.is_there():
            return self._app(environ, start_response)
        name = environ.get("REQUEST_METHOD", "") + " " + environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        with request(name, environ.get("HTTP_TRACEPARENT")):
            details = details_of(number_here())
            parts = self._app(environ, start_response)
        return parts if isinstance(parts, (list, tuple)) else _Parts(parts, name, details)


def __getattr__(name):
    if name != "app":
        raise AttributeError(name)
    return Requests(load())
