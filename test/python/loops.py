# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Loops for test/e2e/heap/growth.py: loops.py LOOP STEPS. Some leak, most keep what is sensible to keep."""

import collections
import functools
import random
import sys

import torsh

kept = []
cache = {}
recent = collections.deque(maxlen=4)
window = []


def leaks_a_block_a_step(i):
    kept.append(bytearray(5000))  # line: leak


def leaks_now_and_then(i):
    if i % 5 == 4:
        kept.append(bytearray(7000))  # line: now and then


def leaks_beside_a_cache(i):
    cache.setdefault(i % 10, bytearray(3000))
    kept.append(bytearray(6000))  # line: beside


def allocates_nothing(i):
    pass


def frees_all(i):
    return sum(len(bytearray(4000)) for _ in range(20))


def warms_a_cache_at_once(i):
    for k in range(50):
        cache.setdefault(k, bytearray(4000))


def warms_a_cache_slowly(i):
    cache.setdefault(min(i, 30), bytearray(4000))


def warms_a_cache_at_random(i):
    cache.setdefault(random.Random(i).randrange(12), bytearray(4000))


def keeps_the_latest(i):
    recent.append(bytearray(4000))


def replaces_one(i):
    cache["model"] = bytearray(100000 + i)


def empties_a_list_now_and_then(i):
    window.append(bytearray(4000))
    if len(window) == 25:
        window.clear()


@functools.lru_cache(maxsize=16)
def remembered(i):
    return bytearray(4000)


def remembers_in_an_lru_cache(i):
    remembered(i)


def replaces_at_random(i):
    for k in range(4):
        cache[random.Random(4 * i + k).randrange(100)] = bytearray(4000)


def grows_before_the_steps(i):
    return len(kept)


def fills_in_the_middle(i):
    if 40 <= i < 60:
        kept.append(bytearray(4000))


def main(loop, n_steps):
    if loop == "grows_before_the_steps":
        kept.extend(bytearray(4000) for _ in range(200))
    step = globals()[loop]
    for i in range(n_steps):
        torsh.step(i)
        step(i)


main(sys.argv[1], int(sys.argv[2]))
