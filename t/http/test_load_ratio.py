# SPDX-License-Identifier: Apache-2.0
"""What the load rig says of a ratio: its value, and how far it is believed."""
import itertools
import json
import math
import random
import statistics

import pytest

from load import compare, ladder, measure, measures, ratio
from servers import ServerError

pytestmark = [pytest.mark.own, pytest.mark.prefork]

ROUNDS = ladder.parser().get_default("rounds")


def test_known_numbers_have_a_known_spread():
    """Three looks at twice, four and eight times as much: the mean of the
    logarithms is 2 doublings, their error 1 / sqrt(3), Student's t 9.925."""
    found = ratio.of([2, 2, 4, 4, 8, 8], [1, 1, 1, 1, 1, 1])
    off = 9.925 / math.sqrt(3)
    assert found["value"] == pytest.approx(4)
    assert found["low"] == pytest.approx(2 ** (2 - off), abs=1e-6)
    assert found["high"] == pytest.approx(2 ** (2 + off), rel=1e-6)
    assert not found["finding"]


def test_the_table_is_students():
    for freedom, t in enumerate(ratio.STUDENT, 1):
        height = math.gamma((freedom + 1) / 2) / (
            math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
        # Simpson's rule over the half, in x = tan: no tail is cut off
        steps, top = 2000, math.atan(t)
        values = [(1 + math.tan(a) ** 2 / freedom) ** (-(freedom + 1) / 2)
                  / math.cos(a) ** 2
                  for a in (top * n / steps for n in range(steps + 1))]
        inside = 2 * height * top / steps / 3 * (
            values[0] + values[-1] + 4 * sum(values[1:-1:2])
            + 2 * sum(values[2:-1:2]))
        assert inside == pytest.approx(0.99, abs=2e-5), freedom
    assert ratio.student(1000) == ratio.STUDENT[-1]


def test_a_steady_drift_is_no_difference():
    """Each shot is a tenth slower than the one before: A B B A."""
    sides, speed = {"a": [], "b": []}, 100.0
    for row in ratio.order("ab", 6):
        for side in row:
            sides[side].append(speed)
            speed *= 0.9
    found = ratio.of(sides["a"], sides["b"])
    assert [found[key] for key in ("value", "low", "high")] == \
        pytest.approx([1, 1, 1])
    assert not found["finding"]


def test_a_difference_the_spread_covers_is_not_a_finding():
    same = ratio.of([100, 110, 90, 105, 95, 99], [95, 105, 99, 98, 101, 100])
    assert not same["finding"] and "not a finding" in ratio.said(same)
    found = ratio.of([200, 210, 220, 205, 208, 215],
                     [100, 110, 100, 104, 106, 103])
    assert found["finding"] and found["low"] <= found["value"] <= found["high"]
    assert "not a finding" not in ratio.said(found)


def test_too_few_rounds_are_refused():
    for run, words in ((ladder.run, []), (measure.run, ["hall_80000_over_200"])):
        for rounds in ("2", "4", "7"):
            with pytest.raises(ServerError, match="--rounds .* 6 or more"):
                run([*words, "--rounds", rounds])
    assert ratio.of([1, 2], [1, 2]) is None
    assert ratio.of([1, 2, 3, 0, 5, 6], [1] * 6) is None, "nothing was seen"
    assert ratio.said(None) == "not measured"


# ---- a machine that is simulated ----

ARMS, RUNGS = ("ours", "theirs", "memory"), (8, 40)
CELLS = [(rung, arm) for rung in RUNGS for arm in ARMS]
PAIRS = [*(((rung, one), (rung, other)) for rung in RUNGS
           for one, other in itertools.combinations(ARMS, 2)),
         *(((RUNGS[1], arm), (RUNGS[0], arm)) for arm in ARMS)]


class Machine:
    """Shots of one run. It drifts, it has good and bad minutes that meet one
    arm more than another, every shot has its own luck, and whole runs are
    calmer or wilder than others. All in parts of a rate."""

    TREND, DRIFT, MINUTES, LUCK = 0.003, 0.03, 0.04, 0.09

    def __init__(self, draw, speed):
        self.draw, self.speed = draw, speed
        self.wild = math.exp(draw.gauss(0, 0.3))
        self.all = draw.gauss(0, 0.5)  # another hour is another machine
        self.minute = {cell: draw.gauss(0, self.MINUTES) for cell in CELLS}

    def shot(self, cell):
        self.all += self.draw.gauss(-self.TREND, self.DRIFT)
        self.minute[cell] = (0.6 * self.minute[cell] +
                             0.8 * self.draw.gauss(0, self.MINUTES))
        return self.speed.get(cell, 1000) * math.exp(self.all + self.wild * (
            self.minute[cell] + self.draw.gauss(0, self.LUCK)))

    def ladder(self):
        """{(cell, cell): ratio} of a ladder of the default rounds."""
        rates = {cell: [] for cell in CELLS}
        for row in ratio.order(CELLS, ROUNDS):
            for cell in row:
                rates[cell].append(self.shot(cell))
        return {pair: ratio.of(*(rates[cell] for cell in pair))
                for pair in PAIRS}


def test_ladders_of_one_machine_agree_in_their_ratios():
    """A thousand times four ladders. Of single pairs as good as all agree; of
    the fours nine in ten agree in each ratio of each pair."""
    draw, pairs, whole, false, widths = random.Random(7), 0, 0, 0, []
    for _ in range(1000):
        four = [Machine(draw, {}).ladder() for _ in range(4)]
        agreed = sum(ratio.agree(one[pair], other[pair]) for one, other in
                     itertools.combinations(four, 2) for pair in PAIRS)
        pairs += agreed
        whole += agreed == 6 * len(PAIRS)
        false += sum(one[pair]["finding"] for one in four for pair in PAIRS)
        widths += [one[pair]["high"] for one in four for pair in PAIRS]
    assert pairs / (1000 * 6 * len(PAIRS)) > 0.995
    assert whole / 1000 > 0.9
    # all arms are alike: what is found is not there
    assert false / (4000 * len(PAIRS)) < 0.02
    assert statistics.median(widths) < 1.2, "as wide as that says nothing"


def test_a_difference_of_a_third_is_found():
    draw = random.Random(8)
    speed = {(rung, "ours"): 1300 for rung in RUNGS}
    runs = [Machine(draw, speed).ladder() for _ in range(300)]
    found = sum(run[pair]["finding"] and run[pair]["low"] > 1
                for run in runs for pair in PAIRS if pair[0][1] == "ours"
                and pair[0][0] == pair[1][0])
    assert found / (300 * 4) > 0.9


def test_a_measure_alternates_and_its_first_rounds_do_not_count():
    class Args:
        rounds = 6
    done, speeds = [], {"one": itertools.chain([1], itertools.repeat(20)),
                        "other": itertools.chain([900], itertools.repeat(10))}

    def load(side):
        done.append(side)
        return next(speeds[side])
    found = measures.Context(Args, None).versus(
        lambda: load("one"), lambda: load("other"), value=lambda shot: shot)
    assert done == ["one", "other"] * 2 + ["other", "one", "one", "other"] * 2 \
        + ["other", "one"]
    assert found["value"] == pytest.approx(2) and found["finding"]
    assert found["rounds"] == [[20] * 6, [10] * 6]
    assert found["sides"] == [20, 10]


# ---- compare ----

def kept(folder, name, low, high, void=False):
    one = {"of": "a", "over": "b", "void": void, "value": (low + high) / 2,
           "low": low, "high": high}
    slope = {"rung": "40", "void": False, "value": 1, "low": 0.9, "high": 1.1}
    path = folder / name
    path.write_text(json.dumps({
        "kind": "ladder", "rungs": [{"name": "8", "ratios": [one]}],
        "slopes": {"a": [slope, {**slope, "void": void}]}}))
    return str(path)


def test_compare_says_which_agree_and_leaves_out_the_void(tmp_path, capsys):
    one, other = (kept(tmp_path, "one", 1.0, 1.2),
                  kept(tmp_path, "other", 1.1, 1.4))
    far, void = (kept(tmp_path, "far", 2.0, 2.2),
                 kept(tmp_path, "void", 2.0, 2.2, void=True))
    assert compare.run([one, other]) == 0
    assert compare.run([one, far]) == 1
    assert "DISAGREE  a over b, 8" in capsys.readouterr().out
    assert compare.run([one, void, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["ratios"] == [] and len(said["in_one_only"]) == 2
