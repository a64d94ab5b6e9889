# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Work items of two executors: each tells when it was submitted, when it ran, its processor time, and what it allocated and
kept, by its own account. With "plain" it prints what a program can see of the queue's methods instead.
"""

import concurrent.futures
import functools
import json
import queue
import sys
import threading
import time

KIB = 1024
kept = []
own = queue.SimpleQueue()


def load(number, n_bytes, keeps):
    begin, cpu = time.perf_counter_ns(), time.thread_time_ns()
    block = bytearray(n_bytes)
    # Its own use of such a queue is a part of the item.
    own.put(number)
    own.get()
    time.sleep(0.01)
    while time.thread_time_ns() - cpu < 10_000_000:
        pass
    if keeps:
        kept.append(block)
    return {"begin": begin, "end": time.perf_counter_ns(), "cpu_ns": time.thread_time_ns() - cpu, "allocated": n_bytes}


class Work:
    def method(self, number, n_bytes, keeps):
        return load(number, n_bytes, keeps)


def items():
    told = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool, concurrent.futures.ThreadPoolExecutor(1) as other:
        for number in range(12):
            function = (load, Work().method, functools.partial(load))[number % 3]
            # Sizes that nothing else has tell one from another.
            arguments = (number, (1000 + 100 * number) * KIB, number % 2)
            submitted = time.perf_counter_ns()
            future = (pool, pool, other)[number % 3].submit(function, *arguments)
            told.append((submitted, future))
        print(json.dumps([{"submitted": submitted, **future.result()} for submitted, future in told]))


def fails():
    raise ValueError("an error")


def plain():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        print(list(pool.map(str.upper, ["a", "b", "c"])), repr(pool.submit(fails).exception()), pool.submit(pow, 2, 5).result())
    one = queue.SimpleQueue()
    for call in (one.get_nowait, lambda: one.get(False), lambda: one.get(timeout=0.01), lambda: one.get(timeout=-1), lambda: one.put()):
        try:
            call()
        except Exception as error:
            print(type(error).__name__, error)
    one.put(None)
    one.put(item=5, block=False)
    print(one.get(), one.get(block=True), one.empty(), one.put.__name__, one.get.__qualname__, one.get_nowait.__name__)
    print(threading.active_count(), sorted(name for name in sys.modules if "torsh" in name))


plain() if sys.argv[1:] == ["plain"] else items()
