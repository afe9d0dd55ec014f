# SPDX-License-Identifier: Apache-2.0
"""Histograms as the driver writes them, put together without averaging."""
import bisect
import math

POINTS = (50, 90, 95, 99, 99.9)


class Hdr:
    """Cells are (highest value of the cell, count), ascending."""

    def __init__(self, written=None):
        self.cells, self.total, self.min, self.max = {}, 0, 0, 0
        if written:
            self.add(written)

    def add(self, written):
        """Another one, as written ({"total","min","max","cells"})."""
        if written["total"]:
            self.min = (min(self.min, written["min"]) if self.total
                        else written["min"])
            self.max = max(self.max, written["max"])
        self.total += written["total"]
        for high, count in written["cells"]:
            self.cells[high] = self.cells.get(high, 0) + count
        return self

    def at(self, percent):
        """The smallest value that so many percent are at or below; us."""
        if not self.total:
            return 0
        rank = max(1, math.ceil(self.total * percent / 100))
        seen = 0
        for high in sorted(self.cells):
            seen += self.cells[high]
            if seen >= rank:
                return min(high, self.max)
        return self.max

    def sum_us(self):
        """Within the cells' width."""
        return sum(high * count for high, count in self.cells.items())

    def above(self, limit_us):
        highs = sorted(self.cells)
        return sum(self.cells[high]
                   for high in highs[bisect.bisect_right(highs, limit_us):])

    def written(self):
        return {"total": self.total, "min": self.min, "max": self.max,
                "cells": [[high, self.cells[high]]
                          for high in sorted(self.cells)]}

    def short(self):
        made = {f"p{point:g}": self.at(point) for point in POINTS}
        return {"n": self.total, **made, "max": self.max}


def merged(rows, action=None, outcome=None):
    """All of a result's rows that fit, as one."""
    made = Hdr()
    for row in rows:
        if (action is None or row["action"] in action) and \
                (outcome is None or row["outcome"] in outcome):
            made.add(row["hdr"])
    return made


def ms(us):
    return f"{us / 1000:.1f}" if us < 10_000_000 else f"{us / 1000:.0f}"
