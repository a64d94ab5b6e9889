# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Python objects made and thrown away: objects.py ROUNDS."""
import sys


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def plus(self, other):
        return Point(self.x + other.x, self.y + other.y)


def walk(n):
    here, seen = Point(0, 0), []
    for i in range(n):
        here = here.plus(Point(i * 1.5, i - 0.5))
        seen.append((here, {"x": here.x, "name": str(i)}))
        if len(seen) > 500:
            seen = seen[250:]
    return here.x


print(sum(walk(2000) for _ in range(int(sys.argv[1]))))
