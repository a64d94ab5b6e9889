# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Settings of gunicorn by which requests are steps of `torsh steps`, without an edit of the program or of its command:

    GUNICORN_CMD_ARGS='--config python:torsh.gunicorn' torsh run -- gunicorn main:app

They replace a file of settings, gunicorn.conf.py; what the command line says still holds. Workers of uvicorn don't ask
for them: torsh.asgi.
"""

from torsh._requests import request

_open = {}


def pre_request(worker, req):
    traceparent = dict(req.headers).get("TRACEPARENT")
    _open[id(req)] = entered = request(req.method + " " + req.path, traceparent)
    entered.__enter__()


def post_request(worker, req, environ, resp):
    entered = _open.pop(id(req), None)
    if entered is not None:
        entered.__exit__(None, None, None)
