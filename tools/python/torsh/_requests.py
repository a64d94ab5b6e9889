# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Requests of a server: steps of `torsh steps` and rows of `torsh requests`. One has a number; its ranges, in a domain of
their own, carry it. What is inside of a request, also on another thread with its context, is part of it.
"""

import contextvars
import ctypes
import itertools
import sys

import torsh

DOMAIN = "torsh.request"
_numbers = itertools.count(1)
# Of the innermost open request: its number, what ends its range, and the same of the one around it. None: none. The
# agent reads the number, at each entry of a context, to see for which request the thread works.
_open = contextvars.ContextVar("torsh.request", default=None)

_begin = torsh._find("request_begin", ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint32)
_turn = torsh._find("request_turn", ctypes.c_uint64, ctypes.c_uint64) or (lambda number: 0)
_finish = torsh._find("request_end", None, ctypes.c_uint64, ctypes.c_uint64)
_follow = torsh._find("request_follow", ctypes.c_int, ctypes.py_object)
_is_followed = bool(_follow and _follow(_open))
_TURN, _SHARED = 1, 2  # the thread works for it from its begin on; it can't be seen for which one it works


def number_here():
    """The number of the request that this is in, else a new one."""
    around = _open.get()
    return around[0] if around else next(_numbers)


def details_of(number):
    return torsh._attributes(DOMAIN, None, 0, number)


def _loop_here():
    events = sys.modules.get("asyncio.events")
    return events._get_running_loop() if events is not None else None


def _greenlets_here():
    """The package greenlet, in one of its greenlets."""
    greenlets = sys.modules.get("greenlet")
    return greenlets if greenlets is not None and greenlets.getcurrent().parent is not None else None


def _is_one_of_many():
    """Whether this is a coroutine or a greenlet: others may run on its thread before it goes on."""
    return _loop_here() is not None or _greenlets_here() is not None


class _GreenletTrace:
    """
    Called at each switch of the thread, in the context of the greenlet that goes on; for versions of greenlet that the
    agent can't follow by itself.
    """

    def __init__(self, former):
        self._former = former

    def __call__(self, event, arguments):
        around = _open.get()
        _turn(around[0] if around else 0)
        if self._former is not None:
            self._former(event, arguments)


def _is_each_turn_seen():
    """Whether the thread turns to another request when another coroutine or greenlet goes on."""
    loop, greenlets = _loop_here(), _greenlets_here()
    if greenlets is not None:
        is_followed = _follow and _follow(ctypes.py_object())  # NULL: greenlets
        former = greenlets.gettrace()
        if not is_followed and not isinstance(former, _GreenletTrace):
            greenlets.settrace(_GreenletTrace(former))
        return True
    # uvloop enters contexts by itself.
    return loop is None or (_is_followed and not type(loop).__module__.startswith("uvloop"))


def _traceparent_here():
    """Of OpenTelemetry's current span, if the program has imported its API; None: none."""
    tracing = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        return None
    try:
        span = tracing.get_current_span().get_span_context()
        return b"00-%032x-%016x-%02x" % (span.trace_id, span.span_id, span.trace_flags) if span.is_valid else None
    except Exception:
        return None


class _Account:
    """What the agent counts for the request between begin and end; nothing within another one."""

    __slots__ = ("_number", "_former")

    def __init__(self):
        self._number = None

    def begin(self, name, number, flags, traceparent):
        if _begin is not None and _open.get() is None:
            self._former = _begin(name, number, torsh._text(traceparent) or _traceparent_here(), flags)
            self._number = number

    def end(self):
        if self._number is not None:
            _finish(self._number, self._former)


class Turns:
    """Runs a coroutine; each of its turns on a thread is a range."""

    def __init__(self, name, coroutine, traceparent=None):
        self._name, self._coroutine, self._traceparent = torsh._text(name), coroutine, traceparent

    def __await__(self):
        around, number = _open.get(), number_here()
        details, domain = details_of(number), torsh._text(DOMAIN)
        account = _Account()
        account.begin(self._name, number, 0, self._traceparent)
        _open.set((number, None, around))
        turns = self._coroutine.__await__()
        value, error = None, None
        try:
            while True:
                former = _turn(number)
                torsh._push(self._name, details)
                try:
                    awaited = turns.send(value) if error is None else turns.throw(error)
                except StopIteration as end:
                    return end.value
                finally:
                    torsh._pop(domain)
                    _turn(former)
                try:
                    value, error = (yield awaited), None
                except BaseException as thrown:  # also GeneratorExit: the coroutine has to end, too
                    error = thrown
        finally:
            error = None  # it refers to this frame
            _open.set(around)
            account.end()


class request:
    """
    A request as a context manager, or around each call of a function: `with torsh.request("GET /"):`,
    `@torsh.request("predict")`.

    What runs in its context counts for it: tasks that it starts, other threads with its context, and a coroutine
    whenever it goes on. Of a request within another one nothing is counted by itself.

    A coroutine function has a range for each of its turns, so that of several requests on one thread each has its own
    operators. Within `with`, a coroutine has one range until it is left: operators that run there count for the request
    that began last. traceparent: the request's header of that name; else it is that of OpenTelemetry's current span.
    """

    __slots__ = ("_name", "_traceparent")

    def __init__(self, name: str, traceparent: "str | None" = None) -> None:
        self._name, self._traceparent = torsh._text(name), traceparent

    def __enter__(self) -> "request":
        around, number, end, account = _open.get(), number_here(), None, _Account()
        if torsh.is_there():
            if _is_one_of_many():
                end = torsh._start(self._name, details_of(number))
            else:
                torsh._push(self._name, details_of(number))
            account.begin(self._name, number, _TURN if _is_each_turn_seen() else _SHARED, self._traceparent)
        _open.set((number, end, around, account))
        return self

    def __exit__(self, *error: object) -> None:
        _, end, around, account = _open.get()
        _open.set(around)
        account.end()
        if end is not None:
            torsh.range_end(end)
        else:
            torsh.range_pop(DOMAIN)

    def __call__(self, function):
        if not torsh.is_there():
            return function
        if torsh._is_coroutine_function(function):
            async def wrapper(*arguments, **named):
                return await Turns(self._name, function(*arguments, **named), self._traceparent)
        else:
            def wrapper(*arguments, **named):  # type: ignore[misc]
                with self:
                    return function(*arguments, **named)
        return torsh._as(function, wrapper)
