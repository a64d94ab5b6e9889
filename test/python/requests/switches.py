# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Greenlets without a word of the profiler: they switch to each other and to their parents, throw, end, fail, are dropped, and have
threads and classes of their own. Prints what each allocated, in JSON, by the name of what it runs; with "plain" what a program can
see of greenlets instead.
"""

import ctypes
import json
import sys
import threading
import time

import greenlet

MIB = 1 << 20
libc = ctypes.PyDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]

allocated, cpu = {}, {}


def work(name, mib):
    """Allocates that, and computes a while, in the name of a greenlet."""
    begin = time.thread_time_ns()
    libc.free(libc.malloc(mib * MIB))
    while time.thread_time_ns() - begin < 2_000_000:
        pass
    allocated[name] = allocated.get(name, 0) + mib * MIB
    cpu[name] = cpu.get(name, 0) + time.thread_time_ns() - begin


def serve(number):
    work(f"serve{number}", 2 + number)
    main.switch()
    work(f"serve{number}", 10 + number)
    main.switch("again")
    work(f"serve{number}", 20)


def ping():
    for _ in range(3):
        work("ping", 3)
        pong_let.switch()


def pong():
    while True:
        work("pong", 4)
        ping_let.switch()


def parent():
    work("parent", 5)
    child_let.switch()
    work("parent", 6)


def child():
    work("child", 7)


def catches():
    work("catches", 8)
    try:
        main.switch()
    except ValueError:
        work("catches", 9)
        raise KeyError from None


def never_starts():
    work("never_starts", 100)


def dropped():
    work("dropped", 11)
    try:
        main.switch()
    finally:
        # On the time of what dropped it.
        work("nobody", 12)


def follows():
    main.switch()
    work("follows", 13)


class Own(greenlet.greenlet):
    def run(self, mib):
        work("Own.run", mib)
        return mib


def elsewhere():
    def of_thread():
        work("elsewhere.<locals>.of_thread", 14)
        here.switch()
        work("elsewhere.<locals>.of_thread", 15)

    here = greenlet.getcurrent()
    one = greenlet.greenlet(of_thread)
    one.switch()
    work("nobody", 16)
    one.switch()
    try:
        served[0].switch()
    except greenlet.error:
        work("nobody", 17)


def run_all():
    global ping_let, pong_let, child_let, served
    served = [greenlet.greenlet(serve) for _ in range(3)]
    for number, one in enumerate(served):
        one.switch(number)
    work("nobody", 30)
    for one in served:
        assert one.switch() == "again"
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    for one in served:
        one.switch()
    assert all(one.dead for one in served)
    served[0].switch()  # dead: it returns at once
    work("nobody", 31)

    ping_let, pong_let = greenlet.greenlet(ping), greenlet.greenlet(pong)
    ping_let.switch()
    work("nobody", 32)

    parent_let = greenlet.greenlet(parent)
    child_let = greenlet.greenlet(child, parent_let)
    parent_let.switch()
    work("nobody", 33)

    one = greenlet.greenlet(catches)
    one.switch()
    try:
        one.throw(ValueError)
    except KeyError:
        work("nobody", 34)
    one = greenlet.greenlet(never_starts)
    try:
        one.throw(IndexError)
    except IndexError:
        work("nobody", 35)

    one = greenlet.greenlet(dropped)
    one.switch()
    del one
    work("nobody", 36)
    # Also within another greenlet, which goes on.
    one = greenlet.greenlet(follows)
    one.switch()
    one.switch()
    assert Own().switch(18) == 18
    work("nobody", 37)
    print(json.dumps({"allocated": allocated, "cpu": cpu}))


def plain():
    def first(*arguments, **named):
        print(arguments, named, sys.getrefcount(greenlet.getcurrent()))
        print(main.switch(1, 2), main.switch(a=3))
        return "done"

    def fails():
        raise ValueError("an error")

    one = greenlet.greenlet(first)
    print(one.switch(1, b=2), one.switch("x"), one.switch(), one.dead, one.switch(7), greenlet.gettrace())
    for call in (lambda: greenlet.greenlet(fails).switch(), lambda: greenlet.greenlet(first).throw(KeyError, "thrown"),
                 lambda: greenlet.greenlet().switch(), lambda: greenlet.greenlet.switch(5), lambda: greenlet.greenlet.throw()):
        try:
            print(call())
        except Exception as error:
            print(type(error).__name__, error)
    print(greenlet.greenlet(first).throw(), greenlet.greenlet.switch, greenlet.greenlet.throw.__doc__[:40], one.switch.__name__)
    events = []
    greenlet.settrace(lambda event, arguments: events.append(event))
    one = greenlet.greenlet(lambda: main.switch())
    one.switch(), one.switch()
    greenlet.settrace(None)
    print(events, sorted(name for name in sys.modules if "torsh" in name or "greenlet" in name))


main = greenlet.getcurrent()
plain() if sys.argv[1:] == ["plain"] else run_all()
