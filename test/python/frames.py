# SPDX-License-Identifier: Apache-2.0 OR MIT
"""All kinds of frames, for test/e2e/python/python_frames.py: each calls probe.leak(), which writes
down the interpreter's frames at that moment. Ends by writing all of that, as JSON, to the file
that is its first argument."""

import asyncio
import contextlib
import functools
import json
import sys
import threading
import types

import probe
from probe import leak

try:
    import greenlet
except ImportError:
    greenlet = None


def plain():
    leak()
    leak()

    leak()
    for i in range(3):
        leak()
        if i:
            (leak(),
             leak(),

             leak())


def deep(n):
    if n:
        deep(n - 1)
    else:
        leak()
    if n % 7 == 0:
        leak()


def generator(n):
    for i in range(n):
        leak()
        yield i
        leak()


def delegating(n):
    leak()
    yield from generator(n)
    leak()


def generators():
    for _ in delegating(4):
        leak()
    # Two of them, in turns: their frames are not on the interpreter's stack.
    one, other = generator(5), delegating(3)
    for _ in zip(one, other):
        leak()
    sum(x for x in generator(3))
    next(one, None)
    one.close()


def comprehensions():
    [leak() for _ in range(3)]
    {leak() for _ in range(2)}
    {i: leak() for i in range(2)}
    list(leak() for _ in range(2))
    [[leak() for _ in range(2)] for _ in range(2)]


def lambdas():
    (lambda: leak())()
    (lambda f: f(lambda: leak()))(lambda g: g())


def decorated():
    def decorator(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            leak()
            return function(*arguments)
        return wrapper

    @decorator
    @functools.lru_cache(None)
    def target(n):
        leak()
        return n and target(n - 1)

    target(3)


class Class:
    leak()

    def __init__(self):
        leak()
        self.cell = leak

    def method(self):
        leak()
        return self.method_of_cell(lambda: self)

    def method_of_cell(self, get):
        get().cell()

    def __getattr__(self, name):
        leak()
        return name

    def __eq__(self, other):
        leak()
        return True

    def __hash__(self):
        return 1

    def __add__(self, other):
        leak()
        return self

    def __getitem__(self, key):
        leak()
        return key

    def __del__(self):
        leak()

    @property
    def value(self):
        leak()

    @classmethod
    def of_class(cls):
        leak()

    @staticmethod
    def of_none():
        leak()

    def __enter__(self):
        leak()

    def __exit__(self, *what):
        leak()


class Meta(type):
    def __call__(cls, *arguments):
        leak()
        return super().__call__(*arguments)


class Made(metaclass=Meta):
    def __init__(self):
        leak()


def classes():
    # Often enough for the interpreter to specialise what it executes: then callees have no native frame any more.
    for _ in range(20):
        one = Class()
        one.method()
        one.missing
        one == Class()
        one + one
        one[1]
        one.value
        one.of_class()
        one.of_none()
        {one: 1}[one]
        Made()
        with one:
            leak()
        del one


def exceptions():
    @contextlib.contextmanager
    def manager():
        try:
            leak()
            yield
        except KeyError:
            leak()
        finally:
            leak()

    def throw(n):
        try:
            if n == 0:
                raise KeyError(n)
            throw(n - 1)
        finally:
            leak()

    with manager():
        throw(4)
    for _ in range(3):
        try:
            throw(1)
        except KeyError:
            leak()


async def inner(n):
    leak()
    await asyncio.sleep(0)
    leak()
    if n:
        await inner(n - 1)


async def items(n):
    for i in range(n):
        leak()
        await asyncio.sleep(0)
        yield i


async def outer():
    await asyncio.gather(*(inner(n) for n in range(4)))
    async for _ in items(3):
        leak()
    leak()


def coroutines():
    asyncio.run(outer())
    # By hand, without a loop.
    coroutine = inner(0)
    coroutine.send(None)
    with contextlib.suppress(StopIteration):
        coroutine.send(None)


def through_c():
    def key(value):
        leak()
        return -value

    sorted(range(4), key=key)
    list(map(lambda _: leak(), range(3)))
    list(filter(key, range(2)))
    max([1, 2], key=key)
    functools.reduce(lambda a, b: leak(), range(3))
    probe.call(leak)
    probe.call(lambda: leak())
    probe.call(lambda: probe.call(lambda: probe.call(leak)))
    import re
    re.sub("a", lambda match: str(leak()), "aaa")

    def up_and_down(n):
        leak()
        if n:
            probe.call(lambda: sorted([n], key=lambda k: up_and_down(k - 1) or 0))

    up_and_down(6)


def directly_and_through_c():
    """The same frames at the same addresses and lines, of which others begin what the interpreter executes."""
    def callee():
        leak()

    def caller(function):
        function()

    def call_each(functions, *arguments):
        for function in functions:
            function(*arguments)

    through = functools.partial
    for _ in range(3):
        call_each([callee, through(callee)] * 3)
        for inner in (callee, through(callee)):
            call_each([caller, through(caller)] * 3, inner)
        for outer, inner in [(through(caller), callee), (caller, through(callee))] * 3:
            outer(inner)


def callbacks():
    import ctypes
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def compare(a, b):
        leak()
        return 0

    array = (ctypes.c_int * 3)(3, 1, 2)
    ctypes.CDLL(None).qsort(array, 3, ctypes.sizeof(ctypes.c_int), callback(compare))


def executed():
    """Code that dies at once: what comes after it has its address, its names' addresses, and other names."""
    for i in range(300):
        exec(compile(f"{chr(10) * (i % 7)}def made_{i % 10}{i // 10 % 10}():\n    leak()\nmade_{i % 10}{i // 10 % 10}()\n",
                     f"generated-{i:05}", "exec"), {"leak": leak})
    for i in range(100):
        eval(f"leak() or {i}")
    for i in range(100):
        types.FunctionType(plain_code.replace(co_name=f"renamed_{i:03}", co_filename=f"file_{i:03}",
                                              co_firstlineno=100 + i), {"leak": leak})()


def plain_function():
    leak()


plain_code = plain_function.__code__


def long_function():
    namespace = {"leak": leak}
    lines = "".join(f"    x = {i}, {i} + 1\n" if i % 50 else "    leak()\n" for i in range(3000))
    exec(compile("def long():\n" + lines + "long()\n", "long.py", "exec"), namespace)


def unicode_names():
    namespace = {"leak": leak}
    for name in ("größe", "δέλτα", "函数", "𝔘𝔫𝔦"):
        exec(compile(f"def {name}():\n    leak()\n{name}()\n", f"/tmp/{name}.py", "exec"), namespace)


def without_lock():
    probe.leak_without_lock()
    probe.call(lambda: probe.leak_without_lock())


def threads():
    barrier = threading.Barrier(4)

    def work(n):
        barrier.wait()
        for i in range(20):
            deep(n)
            probe.leak_without_lock()

    started = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def native_threads():
    for n in range(3):
        probe.call_in_thread(lambda: deep(n))
        probe.call_in_thread(leak)


def greenlets():
    if not greenlet:
        return

    def ping(n):
        for i in range(n):
            leak()
            pong_let.switch(i)
            leak()

    def pong(i):
        while True:
            leak()
            nested(3)

    def nested(n):
        leak()
        if n:
            nested(n - 1)
        else:
            main_let.switch()
        leak()

    main_let, pong_let = greenlet.greenlet(ping), greenlet.greenlet(pong)
    main_let.switch(4)
    probe.call(lambda: greenlet.greenlet(lambda: leak()).switch())
    leak()


SUB_SCRIPT = """
import sys
sys.path[:] = {path!r}
import probe

def inside(n):
    probe.leak()
    if n:
        probe.call(lambda: inside(n - 1))
    probe.leak_without_lock()

for i in range(3):
    inside(i)
"""


def make_interpreter():
    """Another interpreter that this thread can run, sharing the lock: the modules for that changed over time."""
    if sys.version_info >= (3, 13):
        import _interpreters
        return _interpreters, _interpreters.create("legacy")
    import _xxsubinterpreters
    arguments = {"isolated": False} if sys.version_info >= (3, 9) else {}
    return _xxsubinterpreters, _xxsubinterpreters.create(**arguments)


def subinterpreters():
    module, interpreter = make_interpreter()
    for _ in range(2):
        module.run_string(interpreter, SUB_SCRIPT.format(path=sys.path))
        deep(2)
    leak()
    probe.call(lambda: module.run_string(interpreter, SUB_SCRIPT.format(path=sys.path)))
    module.destroy(interpreter)
    deep(3)


def traced():
    def trace(frame, event, argument):
        return trace

    sys.settrace(trace)
    deep(3)
    sys.settrace(None)
    sys.setprofile(lambda *arguments: None)
    deep(3)
    sys.setprofile(None)


def very_deep():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1200)
    deep(700)
    sys.setrecursionlimit(limit)


def main():
    for kind in (plain, generators, comprehensions, lambdas, decorated, classes, exceptions, coroutines, through_c,
                 directly_and_through_c, callbacks, executed, long_function, unicode_names, without_lock, threads,
                 native_threads, greenlets, subinterpreters, traced, very_deep, plain):
        kind()
        deep(4)
    with open(sys.argv[1], "w") as file:
        json.dump({"frames": list(probe.truth().items()), "greenlets": bool(greenlet)}, file)


main()
