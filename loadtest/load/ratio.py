# SPDX-License-Identifier: Apache-2.0
"""Ratios of rounds within one run, and how far they may be believed.

Each round of the one is set against the neighbouring round of the other, in
logarithms: twice as fast and half as fast are equally far from alike. Two
neighbouring rounds, A B B A, are one look: a machine that grows steadily slower
falls out of it. The looks' mean is the ratio; its spread is Student's interval
for so many looks, which holds the true ratio in 99 of 100 runs. So few looks
know little, and then it is wide. A spread that has 1 in it covers the
difference: not a finding.

Rounds of one run are not independent: what slows one down slows its neighbour.
That is why looks are counted and not rounds, and why it is 99 and not 95 of
100: two runs have many ratios, and all of them are to agree.
"""
import math
import statistics

LEAST_ROUNDS = 6  # three looks

# Student's t, two-sided, 0.99: one to twenty degrees of freedom, as in the
# NIST/SEMATECH handbook of statistical methods, 1.3.6.7.2 (column 0.995).
STUDENT = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250,
           3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878,
           2.861, 2.845)


def order(arms, rounds):
    """A B B A, A B B A: so that a drift of the machine meets all alike."""
    made = []
    for n in range(rounds):
        made.append(list(arms) if n % 2 == 0 else list(reversed(arms)))
    return made


def refused(rounds):
    """A sentence when so many rounds are not enough to say anything."""
    if rounds >= LEAST_ROUNDS and rounds % 2 == 0:
        return None
    return (f"--rounds {rounds}: {LEAST_ROUNDS} or more, and an even number; "
            "two neighbouring rounds, A B B A, are one look, and fewer than "
            "three looks cannot tell how far they may be believed")


def student(looks):
    """How many standard errors their mean may be off; where the table ends a
    little too many."""
    return STUDENT[min(looks - 1, len(STUDENT)) - 1]


def interval(values):
    """(mean, low, high) of what was seen in each round; None below two looks.
    The last round of an odd number is left out."""
    looks = [(one + other) / 2 for one, other in zip(values[::2],
                                                     values[1::2])]
    if len(looks) < 2:
        return None
    mean = statistics.fmean(looks)
    off = student(len(looks)) * statistics.stdev(looks) / math.sqrt(len(looks))
    return mean, mean - off, mean + off


def of(ones, others):
    """{"value", "low", "high", "finding"} of values by round; None when there
    are too few, or a round saw nothing."""
    if len(ones) != len(others) or min((*ones, *others), default=0) <= 0:
        return None
    found = interval([math.log(one / other)
                      for one, other in zip(ones, others)])
    if not found:
        return None
    value, low, high = map(math.exp, found)
    return {"value": round(value, 6), "low": round(low, 6),
            "high": round(high, 6), "finding": not low <= 1 <= high}


def level(values):
    """The same of values by round that are no ratio and may be negative:
    {"value", "spread"}."""
    value, low, high = (round(one, 3) for one in interval(values))
    return {"value": value, "spread": (low, high)}


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
