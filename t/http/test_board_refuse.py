# SPDX-License-Identifier: Apache-2.0
"""Refused from the board: quickly, and never wrongly."""
import uuid

import pytest

from servers import until
from yk import board
from yk.booker import Booker


@pytest.fixture
def own(own_rig):
    rig = own_rig(conf="KeepAlive Off\n", hosts=2)
    return rig, rig.slot({"Stalls": (2, 10)}, areas={})


def early(rig, slot, places, host=0, **more):
    """Hold right after the board was compared with the database; the answer,
    and whether the board alone gave it."""
    def ask():
        board.get(rig.hosts[host], slot)
        before = begins(rig)
        said = Booker(rig.hosts[host].url).hold(slot, places, **more)
        return said, begins(rig) == before
    return ask()


def begins(rig):
    row, = rig.rows("SHOW GLOBAL STATUS LIKE 'Com_begin'")
    return int(row["Value"])


def test_a_taken_place_is_refused_without_a_transaction(own):
    rig, slot = own
    rig.hold(slot, ["Stalls-1-1"])

    def refused():
        said, alone = early(rig, slot, ["Stalls-1-2", "Stalls-1-1"])
        assert (said.status_code, said.json()["reason"]) == (409, "taken")
        assert said.json()["places"] == [{"slot": slot, "place": "Stalls-1-1"}]
        return said.json()["complete"] is False and alone

    until(refused, 10, "a refusal from the board")
    # nothing was taken on the way
    assert board.in_book(rig, slot)["Stalls"] == "1" + "0" * 19


def test_a_repeated_hold_gets_its_first_answer(own):
    rig, slot = own
    key = str(uuid.uuid4())
    first = Booker(rig.url).hold(slot, ["Stalls-1-3"], key=key)
    assert first.status_code == 201
    for _ in range(10):
        said, _ = early(rig, slot, ["Stalls-1-3"], key=key)
        assert (said.status_code, said.json()["number"]) == \
            (201, first.json()["number"])


def test_ones_own_place_is_no_refusal(own):
    rig, slot = own
    booker, _ = rig.hold(slot, ["Stalls-1-4"])
    for _ in range(10):
        board.get(rig.host, slot)
        assert booker.hold(slot, ["Stalls-1-4"]).status_code in (200, 201)


def test_a_place_released_on_the_other_host_is_not_refused_for_long(own):
    """Half a second after the release the board has heard of it, or does not
    refuse."""
    rig, slot = own
    for _ in range(3):
        booker, said = rig.hold(slot, ["Stalls-1-5"], host=1)
        assert said.status_code == 201
        early(rig, slot, ["Stalls-1-5"])
        booker.release()
        got = until(lambda: early(rig, slot, ["Stalls-1-5"])[0]
                    .status_code == 201, 2, "the place")
        assert got
        # the one before it has ended, though it may not be swept yet
        numbers = rig.rows("SELECT order_id FROM yoyaku_order WHERE state=1 "
                           "AND until_us > %s", (rig.now_us(),))
        assert len(numbers) == 1
        rig.advance(601)
        until(lambda: board.content(board.get(rig.host, slot).json())
              ["Stalls"] == "0" * 20, 5, "its end")


def test_a_hold_that_ends_soon_is_for_the_desk(own):
    rig, slot = own
    rig.hold(slot, ["Stalls-1-6"])
    early(rig, slot, ["Stalls-1-6"])
    rig.advance(601)
    # from here on whoever asks may have it; until the board heard of the
    # jump of the clock it is refused as held, at most half a second
    until(lambda: early(rig, slot, ["Stalls-1-6"])[0].status_code == 201, 2,
          "the place")
