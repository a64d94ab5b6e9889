# SPDX-License-Identifier: Apache-2.0 OR MIT
"""waits.py: waits in Python's own ways, each in a function of its own; prints by its name how long by the program's clock, in ns."""

import json
import os
import queue
import select
import socket
import subprocess
import sys
import threading
import time

SECONDS = 0.02
clock = {}


def timed(function):
    def call():
        begin = time.monotonic_ns()
        function()
        clock[function.__name__] = time.monotonic_ns() - begin
    return call


def is_waiting(tid):
    with open(f"/proc/self/task/{tid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


def later(function):
    """Ends the wait of the calling thread, once it has lasted for some time."""
    tid = threading.get_native_id()

    def run():
        while not is_waiting(tid):
            time.sleep(0.001)
        time.sleep(SECONDS)
        function()
    thread = threading.Thread(target=run)
    thread.start()
    return thread


@timed
def wait_for_lock():
    lock = threading.Lock()
    lock.acquire()
    thread = later(lock.release)
    lock.acquire()
    thread.join()


@timed
def wait_for_queue():
    items = queue.Queue()
    thread = later(lambda: items.put(1))
    items.get()
    thread.join()


@timed
def wait_for_sleep():
    time.sleep(SECONDS)


@timed
def wait_for_select():
    select.select([], [], [], SECONDS)


@timed
def wait_for_pipe():
    readable, writable = os.pipe()
    thread = later(lambda: os.write(writable, b"x"))
    os.read(readable, 1)
    thread.join()


@timed
def wait_for_socket():
    one, other = socket.socketpair()
    thread = later(lambda: other.send(b"x"))
    one.recv(1)
    thread.join()


@timed
def wait_for_child():
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.02)"])


for wait in (wait_for_lock, wait_for_queue, wait_for_sleep, wait_for_select, wait_for_pipe, wait_for_socket, wait_for_child):
    wait()
print(json.dumps(clock))
