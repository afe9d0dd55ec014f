# SPDX-License-Identifier: Apache-2.0
"""Refused from the board: quickly, and never wrongly."""
import signal
import time
import uuid
from email.utils import parsedate_to_datetime

import pytest

from servers import Memcached, until
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


def test_one_refused_by_the_desk_spares_the_next_a_transaction(own):
    """Also when nobody looks at the board."""
    rig, slot = own
    rig.hold(slot, ["Stalls-1-7"])

    def spared():
        Booker(rig.url).hold(slot, ["Stalls-1-7"])
        before = begins(rig)
        said = Booker(rig.url).hold(slot, ["Stalls-1-7"])
        assert (said.status_code, said.json()["reason"]) == (409, "taken")
        return said.json()["complete"] is False and begins(rig) == before

    until(spared, 10, "a refusal from the board")


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


@pytest.mark.parametrize("cache", [None, "running", "stopped"])
def test_a_place_released_on_the_other_host_is_free_half_a_second_later(
        cache, own_rig, tmp_path):
    """To whoever asks first: a board that was not compared with the book since
    says nothing, with a memcached that answers nothing, too."""
    memcached = Memcached(str(tmp_path)).start() if cache else None
    try:
        rig = own_rig(hosts=2, conf="KeepAlive Off\n" + (
            f"YoyakuMemcached {memcached.address}\n" if cache else ""))
        slot = rig.slot({"Stalls": (2, 10)})
        for turn in range(3):
            booker, said = rig.hold(slot, ["Stalls-1-5"], host=1)
            assert said.status_code == 201
            until(lambda: early(rig, slot, ["Stalls-1-5"])[1], 10,
                  "a refusal from the board")
            if cache == "stopped" and turn == 0:
                memcached.process.send(signal.SIGSTOP)
            booker.release()
            time.sleep(0.5)
            mine = Booker(rig.url)
            assert mine.hold(slot, ["Stalls-1-5"]).status_code == 201
            mine.release()
            until(lambda: board.content(board.get(rig.hosts[1], slot).json())
                  ["Stalls"] == "0" * 20, 5, "the release")
    finally:
        if memcached:
            memcached.process.send(signal.SIGCONT)
            memcached.stop()


@pytest.mark.parametrize("minutes", [-5, 5])
def test_the_hosts_own_clock_has_no_say(minutes, clock, own_rig):
    """Five minutes off: a hold is refused to its end, and not a moment more."""
    rig = own_rig(conf="KeepAlive Off\n", location="YoyakuHoldTTL 1min")
    rig.add_host(conf="KeepAlive Off\n", location="YoyakuHoldTTL 1min", env={
        "LD_PRELOAD": clock, "YK_CLOCK_OFF": str(60 * minutes)})
    slot = rig.slot({"Stalls": (2, 10)})
    off = parsedate_to_datetime(
        board.get(rig.hosts[1], slot).headers["Date"]).timestamp() - time.time()
    assert abs(off - 60 * minutes) < 30, "its clock is not off"
    # its desk has been used, so that nothing is first when the clock jumps
    assert rig.hold(slot, ["Stalls-2-1"], host=1)[1].status_code == 201
    rig.hold(slot, ["Stalls-1-1"])
    until(lambda: early(rig, slot, ["Stalls-1-1"], host=1)[1], 10,
          "a refusal from the board")
    rig.advance(57)
    for _ in range(3):
        said, _ = early(rig, slot, ["Stalls-1-1"], host=1)
        assert (said.status_code, said.json()["reason"]) == (409, "taken")
        assert board.content(board.get(rig.hosts[1], slot).json())[
            "Stalls"].startswith("1")
    rig.advance(4)
    time.sleep(0.5)
    mine = Booker(rig.hosts[1].url)
    said = mine.hold(slot, ["Stalls-1-1"])
    assert said.status_code == 201
    assert 55 < said.json()["seconds_left"] <= 60


def test_of_several_reasons_the_board_does_not_jump_the_queue(own_rig):
    """What is refused for two reasons is refused for the desk's first."""
    rig = own_rig(conf="KeepAlive Off\n", workers=4)
    slot = rig.slot({"Stalls": (2, 10)}, prices={"adult": "20.00"})
    rig.hold(slot, ["Stalls-1-1"])
    until(lambda: early(rig, slot, ["Stalls-1-1"])[1], 10,
          "a refusal from the board")

    def refused(reason, places=("Stalls-1-1",), name="", **more):
        # what an operator changed has come to be known
        time.sleep(0.5)
        for _ in range(4):
            board.get(rig.host, slot)
            said = Booker(rig.url, name).hold(slot, list(places), **more)
            assert said.json()["reason"] == reason

    refused("taken")
    refused("tariff_not_offered", tariff="senior")
    refused("invalid", ("Stalls-1-1", "Stalls-1-1"))
    refused("unknown_place", ("Stalls-1-1", "Stalls-9-9"))
    refused("limit", [f"Stalls-1-{seat}" for seat in range(1, 10)])
    rig.price(slot, "child", "9.00", quota=1)
    assert rig.hold(slot, ["Stalls-2-1"], tariff="child")[1].status_code == 201
    refused("sold_out", tariff="child")
    refused("taken", tariff="adult")
    rig.limit("booker", f"slot:{slot}", "places", 1)
    assert rig.hold(slot, ["Stalls-2-2"], "ada", tariff="adult")[
        1].status_code == 201
    refused("limit", name="ada", tariff="adult")
    refused("taken", name="eve", tariff="adult")
    rig.limit("order", f"slot:{slot}", "places", 1)
    refused("limit", ("Stalls-1-1", "Stalls-1-2"), tariff="adult")
    rig.ctl("slot", "close", slot)
    refused("not_on_sale", tariff="adult")


def test_a_hold_that_ends_soon_is_for_the_desk(own):
    rig, slot = own
    rig.hold(slot, ["Stalls-1-6"])
    early(rig, slot, ["Stalls-1-6"])
    rig.advance(601)
    # from here on whoever asks may have it; until the board heard of the
    # jump of the clock it is refused as held, at most half a second
    until(lambda: early(rig, slot, ["Stalls-1-6"])[0].status_code == 201, 2,
          "the place")
