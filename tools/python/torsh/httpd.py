# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Runs a program in which each request that http.server or wsgiref serves is a step of `torsh steps`, without an edit of it:

    torsh run -- python3 -m torsh.httpd PROGRAM.py ARGUMENT...
    torsh run -- python3 -m torsh.httpd -m MODULE ARGUMENT...
"""

import functools
import http.server
import pathlib
import runpy
import sys

from torsh._requests import request


def _begin(handler):
    _end(handler)
    handler._torsh_request = entered = request(
        f"{handler.command} {handler.path}", handler.headers.get("traceparent"))
    entered.__enter__()


def _end(handler):
    entered = handler.__dict__.pop("_torsh_request", None)
    if entered is not None:
        entered.__exit__(None, None, None)


def _beginning(parse):
    @functools.wraps(parse)
    def parse_request(handler):
        is_good = parse(handler)
        if is_good:
            _begin(handler)
        return is_good

    return parse_request


def _ending(method):
    @functools.wraps(method)
    def ending(handler):
        try:
            return method(handler)
        finally:
            _end(handler)

    return ending


def follow():
    """From here on requests of http.server are steps."""
    handler = http.server.BaseHTTPRequestHandler
    handler.parse_request = _beginning(handler.parse_request)
    # A connection can have several requests; handlers of wsgiref have one, and end with the connection.
    handler.handle_one_request = _ending(handler.handle_one_request)
    handler.finish = _ending(handler.finish)


def main():
    is_module = sys.argv[1:2] == ["-m"]
    arguments = sys.argv[1 + is_module:]
    if not arguments:
        sys.exit("usage: python3 -m torsh.httpd PROGRAM.py|-m MODULE [ARGUMENT...]")
    follow()
    sys.argv = arguments
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(pathlib.Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
