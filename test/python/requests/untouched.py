# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Prints all that following asyncio's tasks might change; test/e2e/python/requests_tasks.py compares."""

import asyncio
import contextvars
import sys
import threading

variable = contextvars.ContextVar("variable", default="none")


class Parent:
    async def child(self, n):
        variable.set(n)
        await asyncio.sleep(0)
        return variable.get(), asyncio.current_task().get_name(), len(contextvars.copy_context())


async def fails():
    await asyncio.sleep(0)
    raise ValueError("fails")


async def waits():
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        raise


class Picky:
    """A callable whose attributes are Python."""

    def __getattr__(self, name):
        print("asked for", name)
        raise AttributeError(name)

    def __call__(self, *arguments, **named):
        return arguments, named


def raises():
    raise KeyError("inside")


async def main():
    print(await asyncio.gather(*(Parent().child(n) for n in range(3))))
    task = asyncio.ensure_future(waits())
    await asyncio.sleep(0)
    task.cancel()
    print(await asyncio.gather(task, fails(), return_exceptions=True))
    print(task.done(), task.cancelled(), variable.get(), len(contextvars.copy_context()))
    print(await asyncio.get_running_loop().run_in_executor(None, threading.active_count))


def contexts():
    context = contextvars.copy_context()
    print(context.run(Picky(), 1, b=2), context.run(variable.set, 5) is not None, context[variable], variable.get())
    for call in (lambda: context.run(raises), lambda: context.run(), lambda: context.run(context.run, raises),
                 lambda: context.run(lambda: context.run(raises)), lambda: contextvars.Context.run(5, raises)):
        try:
            call()
        except (KeyError, TypeError, RuntimeError) as error:
            print(type(error).__name__, str(error).replace(hex(id(context)), "ID"))
    method = contextvars.Context.run
    print(method, method.__name__, method.__doc__, type(method), type(context.run))


asyncio.run(main())
contexts()
print(sorted(sys.modules))
