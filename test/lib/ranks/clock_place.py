# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What a writer speaks with others about clocks, written from agent/wire/PROTOCOL.md a second time: packets, their code, and a
place that answers by a clock that is planted.
"""

import socket
import struct
import threading
import time

REQUEST, REPLY = 1, 2
BODY = struct.Struct("<8sIIQQQQ")
BYTES = BODY.size + 8
MASK = (1 << 64) - 1


def rotated(word, n):
    return (word << n | word >> 64 - n) & MASK


def siphash(key, data):
    """SipHash-2-4, of Aumasson's and Bernstein's paper."""
    v = [key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573]

    def rounds(n):
        for _ in range(n):
            v[0] = v[0] + v[1] & MASK
            v[2] = v[2] + v[3] & MASK
            v[1], v[3] = rotated(v[1], 13) ^ v[0], rotated(v[3], 16) ^ v[2]
            v[0] = rotated(v[0], 32)
            v[2] = v[2] + v[1] & MASK
            v[0] = v[0] + v[3] & MASK
            v[1], v[3] = rotated(v[1], 17) ^ v[2], rotated(v[3], 21) ^ v[0]
            v[2] = rotated(v[2], 32)

    tail = data[len(data) // 8 * 8:]
    words = [*struct.unpack(f"<{len(data) // 8}Q", data[:len(data) - len(tail)]),
             int.from_bytes(tail, "little") | (len(data) & 255) << 56]
    for word in words:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def key_of(secret):
    """Of TORSH_PROFILER_CLOCK_KEY."""
    text = b"key\n" + secret.encode()
    return siphash((1, 0), text), siphash((2, 0), text)


def packet(key, kind, nonce, clock=0, received_ns=0, replied_ns=0):
    body = BODY.pack(b"torshclk", 1, kind, nonce, clock, received_ns, replied_ns)
    return body + struct.pack("<Q", siphash(key, body))


def unpacked(key, data):
    """Kind, nonce, clock, received and replied; None: it is no packet of the key."""
    if len(data) != BYTES or struct.unpack("<Q", data[BODY.size:])[0] != siphash(key, data[:BODY.size]):
        return None
    magic, version, *rest = BODY.unpack(data[:BODY.size])
    return rest if magic == b"torshclk" and version == 1 else None


class Place:
    """
    Answers as the writer of a recording that began at `clock` would, whose clock is `ahead_ns` before CLOCK_MONOTONIC and gains
    `drift`. Replies leave back_ns late.
    """

    def __init__(self, secret, clock, ahead_ns=0, drift=0, back_ns=0):
        self.key, self.clock, self.ahead_ns, self.drift, self.back_ns = key_of(secret), clock, ahead_ns, drift, back_ns
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.begin_ns = time.monotonic_ns()
        self.heard = self.answered = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def now(self):
        since = time.monotonic_ns() - self.begin_ns
        return since + self.ahead_ns + int(since * self.drift)

    def run(self):
        while True:
            data, sender = self.socket.recvfrom(2048)
            received_ns = self.now()
            self.heard += 1
            found = unpacked(self.key, data)
            if not found:
                continue
            replied_ns = self.now()
            if self.back_ns:
                time.sleep(self.back_ns / 1e9)  # the network, which is slower on the way back
            self.socket.sendto(packet(self.key, REPLY, found[1], self.clock, received_ns, replied_ns), sender)
            self.answered += 1
