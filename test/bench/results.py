# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tables, means, and the targets with what became of them."""

import math

from runs import BARE, OURS

NOISE = 0.01  # of the bare program's wall time: smaller differences are noise

def cell(value, form="{:.1f}"):
    return "–" if value is None else form.format(value)


def table(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def added_ratio(walls, peer, ours=OURS):
    """Geometric mean over programs of (wall time that the peer adds) / (wall time that we add), and
    the number of programs: walls are theirs, {mode: s}. Times within the noise count as the
    noise."""
    ratios = [(wall[peer] - wall[BARE]) / max(wall[ours] - wall[BARE], NOISE * wall[BARE])
              for wall in walls if {peer, ours, BARE} <= wall.keys() and wall[peer] > wall[BARE]]
    return geometric_mean(ratios), len(ratios)


class Verdicts:
    """The targets, and whether they were reached."""

    def __init__(self):
        self.rows = []

    def add(self, what, target, measured, is_reached):
        verdict = "not measured" if measured is None else "reached" if is_reached else "**missed**"
        self.rows.append([what, target, measured or "–", verdict])

    def at_most(self, what, limit, value, unit, form="{:.1f}"):
        self.add(what, f"≤ {limit} {unit}", None if value is None else f"{form.format(value)} {unit}",
                 value is not None and value <= limit)

    def at_least(self, what, limit, value, unit, form="{:.1f}"):
        self.add(what, f"≥ {limit}{unit}", None if value is None else f"{form.format(value)}{unit}",
                 value is not None and value >= limit)
