# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
Loops for test/e2e/heap/growth_of_loops.py: many_loops.py STEPS. What keeps_… keeps is bounded, what leaks_… keeps is not.
Their objects are larger than 512 bytes: CPython has no block of its own for a smaller one.
"""

import collections
import functools
import gc
import heapq
import io
import random
import sys
import weakref

import torsh

kept = collections.defaultdict(list)
held = collections.defaultdict(dict)
numbers = random.Random(1)


def keeps_the_latest(i, recent=collections.deque(maxlen=90)):
    recent.append(bytearray(800))


def keeps_the_latest_of_many_sizes(i, recent=collections.deque(maxlen=40)):
    recent.append(bytearray(numbers.randrange(600, 4000)))


def keeps_a_ring(i, ring=[None] * 50):
    ring[i % 50] = bytearray(900)


def keeps_a_replay_buffer(i, buffer=[]):
    for _ in range(4):
        item = bytearray(700)
        if len(buffer) < 80:
            buffer.append(item)
        else:
            buffer[numbers.randrange(80)] = item


@functools.lru_cache(maxsize=16)
def remembered(i):
    return bytearray(1000)


def keeps_what_an_lru_cache_has(i):
    remembered(i)


def keeps_one_for_each_key(i):
    held["each"][i % 20] = bytearray(900)


def keeps_what_comes_at_random(i):
    held["random"].setdefault(numbers.randrange(12), bytearray(700))


def keeps_until_a_list_is_emptied(i):
    kept["emptied"].append(bytearray(700))
    if len(kept["emptied"]) == 25:
        kept["emptied"].clear()


def keeps_what_was_used_last(i, used=collections.OrderedDict()):
    used[numbers.randrange(100)] = bytearray(800)
    if len(used) > 30:
        used.popitem(last=False)


def keeps_the_best(i, best=[]):
    heapq.heappush(best, (numbers.random(), i, bytearray(900)))
    if len(best) > 20:
        heapq.heappop(best)


def keeps_two_buffers(i):
    held["buffers"]["before"], held["buffers"]["now"] = held["buffers"].get("now"), bytearray(2000)


def keeps_a_text_with_a_number(i):
    held["text"]["latest"] = "x" * 1000 + str(10 ** (i // 50))


def keeps_a_model(i):
    held["model"]["weights"] = bytearray(50000 + i)


def keeps_what_is_alive(i, alive=weakref.WeakValueDictionary()):
    class Thing:
        def __init__(self):
            self.bytes = bytearray(900)

    held["alive"][i % 5] = alive[i] = Thing()


def keeps_a_log_until_it_is_flushed(i, log=io.StringIO()):
    log.write("step %d of a log that is written down now and then" % i)
    if i % 10 == 9:
        log.seek(0)
        log.truncate()


def keeps_three_checkpoints(i):
    if i % 10 == 0:
        kept["checkpoints"].append(bytearray(3000))
        del kept["checkpoints"][:-3]


def keeps_what_it_learns_at_first(i):
    held["learned"].setdefault(min(i, 55), bytearray(800))


def keeps_cycles_until_they_are_collected(i):
    cycle = [bytearray(800)]
    cycle.append(cycle)
    if i % 20 == 0:
        gc.collect()


def keeps_a_queue(i):
    for _ in range(numbers.randrange(4)):
        kept["queue"].append(bytearray(700))
    del kept["queue"][:max(0, len(kept["queue"]) - numbers.randrange(8, 12))]


def leaks_each_step(i):
    kept["each"].append(bytearray(900))


def leaks_every_tenth_step(i):
    if i % 10 == 3:
        kept["tenth"].append(bytearray(5000))


def leaks_at_random(i):
    if numbers.random() < 0.4:
        kept["at random"].append(bytearray(900))


def leaks_many_sizes(i):
    kept["sizes"].append(bytearray(numbers.randrange(600, 4000)))


def leaks_in_a_dict(i):
    held["leak"][i] = bytearray(900)


def leaks_beside_what_it_replaces(i):
    for k in range(8):
        held["beside"][k if k else i] = bytearray(700)


def leaks_after_a_warm_up(i):
    if i > 50:
        kept["after"].append(bytearray(800))


def leaks_more_and_more(i):
    kept["more"].append(bytearray(10 * i))


def leaks_callbacks(i):
    data = bytearray(900)
    kept["callbacks"].append(lambda: data)


class Registered:
    every = []

    def __init__(self):
        self.data = bytearray(800)
        self.every.append(self)


def leaks_in_a_registry(i):
    Registered()


def leaks_a_text(i):
    held["text"]["all"] = held["text"].get("all", "") + "a line of a text" * 20


def leaks_in_a_buffer(i, buffer=bytearray()):
    buffer.extend(b"x" * 500)


def leaks_in_a_queue(i, queue=collections.deque()):
    queue.append(bytearray(800))
    queue.append(bytearray(800))
    queue.popleft()


@functools.lru_cache(maxsize=None)
def remembered_for_ever(i):
    return bytearray(900)


def leaks_in_a_cache_without_bound(i):
    remembered_for_ever(i)


def leaks_what_an_error_held(i):
    try:
        data = bytearray(900)
        raise ValueError(len(data))
    except ValueError as error:
        kept["errors"].append(error)


def leaks_a_line_of_history(i):
    kept["history"].append({"step": i, "loss": 1 / (i + 1), "text": "a loss of %f, " % (1 / (i + 1)) * 50})


def leaks_names(i, names=set()):
    names.update("a name that nobody needs any more, %d of %d; " % (k, i) * 20 for k in range(4))


def leaks_one_of_three(i):
    kept["three"].extend(bytearray(700) for _ in range(3))
    del kept["three"][-2:]


def main(n_steps):
    gc.disable()
    loops = [loop for name, loop in globals().items() if name.startswith(("keeps_", "leaks_"))]
    for i in range(n_steps):
        torsh.step(i)
        for loop in loops:
            loop(i)


main(int(sys.argv[1]))
