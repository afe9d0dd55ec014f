# SPDX-License-Identifier: Apache-2.0
"""The proof of test_exact.py: a product that was broken on purpose is found
out by it, each breakage by the sentence that is meant for it."""
import itertools
import os

import pytest

from yk import Rig
from yk.exact import HOUSES, crowd
from yk.mutant import broken

# It is the tests that are examined here; once is enough.
pytestmark = [pytest.mark.own, pytest.mark.prefork]

numbers = itertools.count(1)
CROWDS = 20

# A locking read without its lock, of places and of counts.
NO_PLACE_LOCK = ("store/lock.c", (
    'yk_sql_put(sql, seat ? "" : " FOR UPDATE");', 'yk_sql_put(sql, "");'), (
    '" SKIP LOCKED"', '""'))
NO_COUNT_LOCK = ("store/lock.c", (
    'yk_sql_put(sql, JOIN_ANCHOR " FOR UPDATE");',
    'yk_sql_put(sql, JOIN_ANCHOR);'), ('" SKIP LOCKED"', '""'))
# A line that ends without giving back what it counted.
NO_GIVING = ("core/deed_rows.c", (
    "    if (line->live) {\n        yk_deed_count(deed, row, line,",
    "    if (line->live && !quantity && 0) {\n"
    "        yk_deed_count(deed, row, line,"))
# A place that leaves without its bit in the map of its section.
NO_BIT = ("core/deed_rows.c", (
    "yk_deed_map(deed, slot, line->area_no, line->place_no, 1);", ";"))
# A place row that keeps its owner when he leaves.
NO_FREE = ("core/deed_rows.c", (
    "            place->state = YK_PLACE_FREE;\n", ""), (
    "            place->order_id = 0;\n            place->until_us = 0;\n", ""))
NOTHING = ("core/deed_rows.c", (" ", " "))


@pytest.fixture
def sold(build, folder, mpm, database):
    """A function that sells a house on two hosts of such a build, and gives
    what the exactness test says to it. What takes two at the same moment does
    not happen in every crowd: with `words` more houses are sold, until they
    are said or it is CROWDS of them."""
    made = []

    def run(mutation, house, *words, rest=0):
        file, *changes = mutation
        name = f"mutant{next(numbers)}"
        product = broken(build, os.path.join(folder, f"{name}-build"), file,
                         *changes)
        rig = Rig(os.path.join(folder, name), product, mpm, database,
                  f"yoyaku_{name}")
        made.append(rig)
        # without lanes the locks of the database are all there is
        rig.start(hosts=2, conf="YoyakuLane off\n", workers=12)
        for _ in range(CROWDS if words else 1):
            wrong = sell(rig, house, rest)
            if says(wrong, *words):
                break
        return wrong

    yield run
    for rig in made:
        rig.stop()


def sell(rig, house, rest):
    crowd_made, journey = HOUSES[house](rig, rest)
    crowd(12, journey)  # enough to collide, and quick
    if rest:
        crowd_made.rest = 0
        journey(0)
    wrong = crowd_made.faults()
    try:
        rig.verify_book([crowd_made.slot])
    except AssertionError as error:
        wrong.append(str(error))
    return wrong


def says(wrong, *words):
    return [sentence for sentence in wrong
            if any(word in sentence for word in words)]


def test_the_same_build_unbroken_is_right(sold):
    assert sold(NOTHING, "named", rest=3) == []


def test_without_the_lock_on_places_one_is_sold_twice(sold):
    wrong = sold(NO_PLACE_LOCK, "named", "sold twice")
    assert says(wrong, "sold twice"), wrong


def test_without_the_lock_on_counts_a_pool_is_oversold(sold):
    wrong = sold(NO_COUNT_LOCK, "pooled", "oversold")
    assert says(wrong, "oversold"), wrong


def test_without_the_lock_on_the_map_a_seat_is_given_twice(sold):
    wrong = sold(NO_COUNT_LOCK, "assigned", "sold twice", "oversold")
    assert says(wrong, "sold twice", "oversold"), wrong


def test_a_count_that_is_not_given_back_leaves_places_unsold(sold):
    wrong = sold(NO_GIVING, "pooled", rest=3)
    assert says(wrong, "unsold"), wrong


def test_a_place_that_is_not_freed_stays_unsold(sold):
    wrong = sold(NO_FREE, "named", rest=3)
    assert says(wrong, "unsold"), wrong


def test_a_bit_that_is_not_set_leaves_a_seat_unsold(sold):
    wrong = sold(NO_BIT, "assigned", rest=3)
    assert says(wrong, "unsold"), wrong
