# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes every kind of annotation of torsh.py; test/e2e/python/regions_python.py has the expected
recording."""

import ctypes  # noqa: F401
import sys



class _Used(ctypes.Structure):
    "Since 3.14 ctypes imports more with the first of these."
    _fields_ = [("number", ctypes.c_int)]


before = set(sys.modules)
import torsh  # noqa: E402

print("there" if torsh.is_there() else "alone", sorted(name for name in set(sys.modules) - before if name.split(".")[0] != "torsh"))


@torsh.range("decorated", domain="functions")
def add(a, b=1):
    "Adds."
    return a + b


@torsh.range("coroutine")
async def wait(value):
    return value


def finish(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value


print(add(1, b=2), add.__name__, add.__doc__, finish(wait(5)), wait.__name__)

torsh.step(3)
with torsh.range("outer", category="kind", color=0xff112233, payload=2.5) as outer:
    with outer:
        torsh.mark("whole", payload=-7)
    torsh.mark("large", payload=2**64 - 1)
try:
    with torsh.range("fails"):
        raise ValueError
except ValueError:
    torsh.mark("caught \u00e4\ud800")
torsh.scalar("loss", 1)
torsh.counter("items", 4, domain="store")
torsh.histogram("length", 17.5)
torsh.step()
torsh.range_push("pushed")
torsh.range_pop()

import threading  # noqa: E402

number = torsh.range_start("across")
ender = threading.Thread(target=torsh.range_end, args=(number,))
ender.start()
ender.join()


def rounds(name):
    one = torsh.range(name)
    for _ in range(300):
        with one, torsh.range("inner"):
            pass


threads = [threading.Thread(target=rounds, args=(f"round {i}",)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
