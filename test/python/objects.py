# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keeps objects of known sizes, writes down how many bytes each line made, and ends without
cleanup."""

import json
import os
import sys

N = 1000
kept = []


def small():
    for i in range(N):
        kept.append(bytes(100))  # line: small


def large():
    for i in range(N):
        kept.append(bytes(1000 + i))  # line: large


def freed():
    for i in range(N):
        bytes(200 + i % 50)


small()
large()
freed()
sizes = {"small": [N, N * sys.getsizeof(bytes(100))], "large": [N, sum(sys.getsizeof(bytes(1000 + i)) for i in range(N))]}
with open(sys.argv[1], "w") as file:
    json.dump(sizes, file)
os._exit(0)
