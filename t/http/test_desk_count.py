# SPDX-License-Identifier: Apache-2.0
"""Counts that are full of expired holds, payments that come late, deadlines
around which everything happens: no sweep runs here, and nobody waits."""
import itertools

import pytest

from yk import Rig
from yk.exact import crowd, guids

names = itertools.count(1)


@pytest.fixture(scope="module")
def still(folder, build, mpm, database):
    """A house whose sweep comes once a minute: what expires here is not
    settled by anybody who was not asked for it."""
    made = Rig(f"{folder}/still", build, mpm, database, "yoyaku_still")
    made.start(conf="YoyakuSweepInterval 1min\n")
    yield made
    made.stop()


@pytest.fixture
def rig(still):
    still.complaints()
    with still.one_test():
        yield still


def used(rig, slot, kind):
    return rig.value("SELECT used FROM yoyaku_lock_anchor a JOIN yoyaku_slot s "
                     "ON a.owner = s.slot_id WHERE s.slot_key = %s AND "
                     "a.kind = %s", (slot, kind))


def states(rig, slot):
    """How many orders of this slot are in which state."""
    return {row["state"]: row["n"] for row in rig.rows(
        "SELECT o.state, COUNT(DISTINCT o.order_id) AS n FROM yoyaku_order o "
        "JOIN yoyaku_booking USING (order_id) JOIN yoyaku_slot s USING "
        "(slot_id) WHERE s.slot_key = %s GROUP BY o.state", (slot,))}


HELD, EXPIRED = 1, 5


# ---- full of expired holds ----

@pytest.mark.parametrize("kind", ["pool", "quota", "assigned", "booker"])
def test_what_is_full_of_expired_holds_sells_again_without_a_sweep(kind, rig):
    """100 orders, more than a transaction settles, then all of it at once."""
    area, who, what = "Floor", "", {"quantity": 1}
    if kind == "assigned":
        slot = rig.slot({"Stalls": (10, 10)}, areas={"Stalls": "assigned"})
        area = "Stalls"
    else:
        slot = rig.slot(pools={"Floor": 100 if kind == "pool" else 300})
    if kind == "quota":
        rig.price(slot, "adult", "10.00", quota=100)
    if kind == "booker":
        rig.limit("booker", f"slot:{slot}", "places", 100)
        who = f"collector-{next(names)}"

    def fill(i):
        for _ in range(10):
            answer = rig.booker(who).hold(slot, area=area, **what)
            assert answer.status_code == 201, answer.text
    crowd(10, fill)
    full = rig.booker(who).hold(slot, area=area, **what)
    assert full.json()["reason"] == ("limit" if kind == "booker"
                                     else "sold_out")
    rig.advance(601)
    before = states(rig, slot)
    assert before[EXPIRED if EXPIRED in before else HELD] == 100
    assert before.get(HELD) == 100, "somebody swept: this proves nothing"
    for _ in range(20):
        answer = rig.booker(who).hold(slot, area=area, quantity=5)
        assert answer.status_code == 201, answer.text
    answer = rig.booker(who).hold(slot, area=area, quantity=1)
    assert answer.status_code == 409, answer.text
    if kind in ("pool", "quota"):
        assert used(rig, slot, 2 if kind == "pool" else 3) == 100


def test_a_place_of_an_expired_hold_is_taken_over_without_a_sweep(rig):
    slot = rig.slot({"Stalls": (1, 8)})
    old, _ = rig.hold(slot, guids("Stalls", 1, 8)[:4])
    rig.advance(599)
    assert rig.hold(slot, ["Stalls-1-1"])[1].json()["reason"] == "taken"
    rig.advance(2)
    rig.takes_over(slot, "Stalls-1-1")
    assert states(rig, slot) == {HELD: 2}
    said = old.order().json()
    assert said["state"] == "expired"


def test_many_at_once_share_what_expired(rig):
    """Sixty at once reach for fifty places that nobody has any more."""
    slot = rig.slot(pools={"Floor": 50})
    for _ in range(10):
        assert rig.hold(slot, area="Floor", quantity=5)[1].status_code == 201
    rig.advance(601)
    answers = crowd(60, lambda i: rig.booker().hold(
        slot, area="Floor", quantity=1).status_code)
    assert sorted(answers) == [201] * 50 + [409] * 10
    assert used(rig, slot, 2) == 50


# ---- paid late ----

@pytest.fixture
def late(rig):
    """A function: an order of what is named, checked out, past its end."""
    def make(slot, **what):
        booker, answer = rig.hold(slot, **what)
        assert answer.status_code == 201, answer.text
        attempt = booker.checkout().json()["attempt"]
        total = booker.order().json()["total"]
        return booker, lambda key=None: rig.shop().confirm(
            booker.number, attempt, total, "EUR", "pay-7", key=key)
    return make


PRICED = {"adult": "20.00"}


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("kind", ["placed", "assigned", "pooled:4"])
def test_paid_late_takes_everything_again(kind, settled, rig, late):
    slot = rig.slot({"Stalls": (1, 4)}, areas={"Stalls": kind}, prices=PRICED)
    what = ({"places": guids("Stalls", 1, 4)[:3]} if kind == "placed"
            else {"area": "Stalls", "quantity": 3})
    booker, pay = late(slot, **what)
    rig.advance(36 * 60)
    if settled:
        # somebody needs a seat, finds all gone but this, and settles it
        other = rig.hold(slot, **({"places": ["Stalls-1-1"]} if kind == "placed"
                                  else {"area": "Stalls", "quantity": 4}))
        assert other[1].status_code == 201, other[1].text
        assert other[0].release().status_code == 200
    said = pay()
    assert said.status_code == 200, said.text
    assert (said.json()["state"], said.json()["late"]) == ("confirmed", True)
    assert rig.availability(slot).json()["free"] == 1
    assert pay().json()["state"] == "confirmed"


@pytest.mark.parametrize("kind", ["placed", "assigned", "pooled:4"])
def test_paid_late_with_one_gone_takes_nothing(kind, rig, late):
    slot = rig.slot({"Stalls": (1, 4)}, areas={"Stalls": kind}, prices=PRICED)
    what = ({"places": guids("Stalls", 1, 4)[:3]} if kind == "placed"
            else {"area": "Stalls", "quantity": 3})
    booker, pay = late(slot, **what)
    rig.advance(36 * 60)
    thief = ({"places": ["Stalls-1-1"]} if kind == "placed"
             else {"area": "Stalls", "quantity": 2})
    assert rig.hold(slot, **thief)[1].status_code == 201
    said = pay()
    assert (said.status_code, said.json()["reason"]) == (409, "refund_due")
    assert booker.order().json()["state"] == "refund_due"
    taken = 1 if kind == "placed" else 2
    assert rig.availability(slot).json()["free"] == 4 - taken
    again = pay()
    assert again.json()["reason"] == "refund_due"


def test_paid_late_by_two_for_the_last_one_is_late_once(rig, late):
    """Both held the one place, one after the other; both pay at once."""
    for _ in range(3):
        slot = rig.slot({"Stalls": (1, 1)}, prices=PRICED)
        _, first = late(slot, places=["Stalls-1-1"])
        rig.advance(36 * 60)
        _, second = late(slot, places=["Stalls-1-1"])
        rig.advance(36 * 60)
        codes = crowd(2, lambda i: (first, second)[i]().status_code)
        assert sorted(codes) == [200, 409]
        assert rig.availability(slot).json()["free"] == 0


# ---- around the deadline ----

def test_everything_around_a_deadline_leaves_one_owner(rig):
    """A hold ends; its booker adds, pays and leaves, others take it, all at
    once. Whoever was told yes has it."""
    for turn in range(6):
        slot = rig.slot({"Stalls": (1, 3)})
        old, _ = rig.hold(slot, ["Stalls-1-1", "Stalls-1-2"])
        rig.advance(600.05 if turn % 2 else 599.7)

        def again(do):
            one = rig.booker()
            one.token = old.token
            answer = do(one)
            return answer.status_code, answer.json().get("state")

        deeds = [lambda: again(lambda one: one.confirm()),
                 lambda: again(lambda one: one.hold(slot, ["Stalls-1-3"])),
                 lambda: again(lambda one: one.checkout()),
                 lambda: again(lambda one: one.release()),
                 lambda: (rig.hold(slot, ["Stalls-1-2"])[1].status_code,
                          "rival"),
                 lambda: (rig.hold(slot, ["Stalls-1-1", "Stalls-1-2"])
                          [1].status_code, "rival")]
        told = crowd(len(deeds), lambda i: deeds[i]())
        yes = [state for code, state in told
               if code == 201 and state == "rival"]
        confirmed = ("confirmed" in [state for _, state in told])
        assert len(yes) <= 1 and not (yes and confirmed), told
        assert all(code in (200, 201, 409, 410) for code, _ in told), told
