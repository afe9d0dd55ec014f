# SPDX-License-Identifier: Apache-2.0
"""Ratios of rounds within one run, and how far they may be believed.

Every round of the one is set against every round of the other; the median is
the ratio, the least and the largest are its spread. A spread that has 1 in it
covers the difference: not a finding.
"""
import statistics


def order(arms, rounds):
    """A B B A, A B B A: so that a drift of the machine meets all alike."""
    made = []
    for n in range(rounds):
        made.append(list(arms) if n % 2 == 0 else list(reversed(arms)))
    return made


def of(ones, others):
    """{"value", "low", "high", "finding"}; None without rounds."""
    quotients = sorted(one / other for one in ones for other in others
                       if other)
    if not quotients:
        return None
    low, high = quotients[0], quotients[-1]
    return {"value": round(statistics.median(quotients), 6),
            "low": round(low, 6), "high": round(high, 6),
            "finding": not low <= 1 <= high}


def spread(values):
    """Of one arm's own rounds, percent of the median."""
    middle = statistics.median(values) if values else 0
    return round(100 * (max(values) - min(values)) / middle, 1) if middle \
        else 0.0


def agree(one, other):
    """Do two runs' ratios fit into each other's spread?"""
    return one["low"] <= other["high"] and other["low"] <= one["high"]


def digits(value):
    """Three that count."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def said(ratio):
    if not ratio or "value" not in ratio:
        return "not measured"
    text = (f"{digits(ratio['value'])} ({digits(ratio['low'])} to "
            f"{digits(ratio['high'])})")
    return text if ratio["finding"] else text + ", not a finding"
