# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Requests of a server: steps of `torsh steps`. One has a number; its ranges, in a domain of their own, carry it. What is
inside of a request, also on another thread with its context, is part of it.
"""

import contextvars
import itertools
import sys

import torsh

DOMAIN = "torsh.request"
_numbers = itertools.count(1)
# Of the innermost open request: its number, what ends its range, and the same of the one around it. None: none.
_open = contextvars.ContextVar("torsh.request", default=None)


def number_here():
    """The number of the request that this is in, else a new one."""
    around = _open.get()
    return around[0] if around else next(_numbers)


def details_of(number):
    return torsh._attributes(DOMAIN, None, 0, number)


def _is_one_of_many():
    """Whether this is a coroutine or a greenlet: others may run on its thread before it goes on."""
    events = sys.modules.get("asyncio.events")
    if events is not None and events._get_running_loop() is not None:
        return True
    greenlets = sys.modules.get("greenlet")
    return greenlets is not None and greenlets.getcurrent().parent is not None


class Turns:
    """Runs a coroutine; each of its turns on a thread is a range."""

    def __init__(self, name, coroutine):
        self._name, self._coroutine = torsh._text(name), coroutine

    def __await__(self):
        around, number = _open.get(), number_here()
        details, domain = details_of(number), torsh._text(DOMAIN)
        _open.set((number, None, around))
        turns = self._coroutine.__await__()
        value, error = None, None
        try:
            while True:
                torsh._push(self._name, details)
                try:
                    awaited = turns.send(value) if error is None else turns.throw(error)
                except StopIteration as end:
                    return end.value
                finally:
                    torsh._pop(domain)
                try:
                    value, error = (yield awaited), None
                except BaseException as thrown:  # also GeneratorExit: the coroutine has to end, too
                    error = thrown
        finally:
            error = None  # it refers to this frame
            _open.set(around)


class request:
    """
    A request as a context manager, or around each call of a function: `with torsh.request("GET /"):`,
    `@torsh.request("predict")`.

    A coroutine function has a range for each of its turns, so that of several requests on one thread each has its own
    operators. Within `with`, a coroutine has one range until it is left: what runs there counts for the request that
    began last.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = torsh._text(name)

    def __enter__(self) -> "request":
        around, number, end = _open.get(), number_here(), None
        if torsh.is_there() and _is_one_of_many():
            end = torsh._start(self._name, details_of(number))
        elif torsh.is_there():
            torsh._push(self._name, details_of(number))
        _open.set((number, end, around))
        return self

    def __exit__(self, *error: object) -> None:
        _, end, around = _open.get()
        _open.set(around)
        if end is not None:
            torsh.range_end(end)
        else:
            torsh.range_pop(DOMAIN)

    def __call__(self, function):
        if not torsh.is_there():
            return function
        if torsh._is_coroutine_function(function):
            async def wrapper(*arguments, **named):
                return await Turns(self._name, function(*arguments, **named))
        else:
            def wrapper(*arguments, **named):  # type: ignore[misc]
                with self:
                    return function(*arguments, **named)
        return torsh._as(function, wrapper)
