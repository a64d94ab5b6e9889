# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
ending.py FILE DAEMONS: allocates while the interpreter ends: in functions of atexit, in __del__ of what modules keep, in threads that still
run: these keep this module alive. Writes down, on the way, which lines of Python there are at each leak.
"""

import atexit
import os
import sys
import threading

import probe

out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)


def write_down(write=os.write, out=out, truth=probe.truth, leak=probe.leak):
    """By defaults and to a descriptor: globals are gone when a module is taken apart, and files are closed."""
    leak()
    sizes = truth()
    size = max(sizes)
    write(out, (repr((size, sizes[size])) + "\n").encode())


class Dying:
    def __init__(self, other=None):
        self.other, self.note = other, write_down

    def __del__(self):
        self.note()


def at_the_end():
    write_down()
    Dying()


def daemon(is_running):
    while True:
        block = [bytearray(600) for _ in range(50)]
        is_running.set()
        del block


def late(main):
    """Not a daemon: the interpreter waits for it before it ends."""
    main.join()
    write_down()


atexit.register(at_the_end)
kept = Dying(Dying())
cycle = Dying()
cycle.other = cycle
for _ in range(int(sys.argv[2])):
    running = threading.Event()
    threading.Thread(target=daemon, args=(running,), daemon=True).start()
    running.wait()
threading.Thread(target=late, args=(threading.main_thread(),)).start()
write_down()
