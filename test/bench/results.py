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


def with_note(text, note):
    return text if note is None else f"{text} ({note})"


class Verdicts:
    """The targets, and whether they were reached. A note stands behind what was measured: what it is to be read with."""

    def __init__(self):
        self.rows = []

    def add(self, what, target, measured, is_reached):
        verdict = "not measured" if measured is None else "reached" if is_reached else "**missed**"
        self.rows.append([what, target, measured or "–", verdict])

    def at_most(self, what, limit, value, unit, form="{:.1f}", note=None, noise=0):
        """noise: by how much two runs of one thing differed; where that decides there is no verdict."""
        self.add(what, f"≤ {limit} {unit}", None if value is None else with_note(f"{form.format(value)} {unit}", note),
                 value is not None and value <= limit)
        if value is not None and abs(value - limit) < abs(noise):
            self.rows[-1][-1] = "within the noise"

    def at_least(self, what, limit, value, unit, form="{:.1f}", note=None):
        self.add(what, f"≥ {limit}{unit}", None if value is None else with_note(f"{form.format(value)}{unit}", note),
                 value is not None and value >= limit)
