# SPDX-License-Identifier: Apache-2.0
"""Who waits for whom: first holds at once, others' locks on places that are
named and on places that are not, baskets that cross."""
import contextlib
import itertools
import threading

import pytest

from yk.exact import Crowd, crowd, guids

AT_ONCE = 64
keys = (f"locks-key-{n:020d}" for n in itertools.count())


@pytest.fixture(scope="module", params=["lanes", "no lanes"])
def desk(request, _house):
    """A host that would rather say busy than wait for long."""
    lane = "on" if request.param == "lanes" else "off"
    host = _house.add_host(conf=f"YoyakuLane {lane}\n", workers=24,
                           location="YoyakuHoldWait 3s\nYoyakuHoldPlaces 300")
    yield host
    host.stop()
    _house.hosts.remove(host)


@contextlib.contextmanager
def locked(rig, slot, *places):
    """Somebody else's transaction holds these place rows, and no others."""
    line = rig.connect(autocommit=False)
    try:
        with line.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ "
                           "COMMITTED")
            cursor.execute("SELECT slot_id, hall_id FROM yoyaku_slot WHERE "
                           "slot_key = %s", (slot,))
            slot_id, hall_id = cursor.fetchone()
            for place in places:
                cursor.execute("SELECT place_no FROM yoyaku_place WHERE "
                               "hall_id = %s AND guid = %s", (hall_id, place))
                no = cursor.fetchone()[0]
                cursor.execute("SELECT state FROM yoyaku_slot_place WHERE "
                               "slot_id = %s AND place_no = %s FOR UPDATE",
                               (slot_id, no))
                assert cursor.rowcount == 1
        yield
    finally:
        line.rollback()
        line.close()


def free(rig, slot):
    return rig.value("SELECT COUNT(*) FROM yoyaku_slot_place JOIN yoyaku_slot "
                     "USING (slot_id) WHERE slot_key = %s AND "
                     "yoyaku_slot_place.state = 0 AND order_id = 0", (slot,))


def orders(rig, slot):
    return rig.value("SELECT COUNT(DISTINCT order_id) FROM yoyaku_booking JOIN "
                     "yoyaku_slot USING (slot_id) WHERE slot_key = %s",
                     (slot,))


# ---- first holds ----

@pytest.mark.parametrize("sold", ["placed", "assigned", "pooled:64", "quota"])
def test_first_holds_on_a_fresh_slot_from_64_at_once(sold, rig, desk):
    """All rows are there before, so nobody meets anybody in a gap."""
    mode = "placed" if sold == "quota" else sold
    slot = rig.slot({"Stalls": (8, 8)}, areas={"Stalls": mode})
    if sold == "quota":
        rig.price(slot, "adult", "10.00", quota=AT_ONCE)
    seats, made = guids("Stalls", 8, 8), Crowd(rig, slot)

    def journey(i):
        what = ({"places": [seats[i]]} if mode == "placed"
                else {"area": "Stalls", "quantity": 1})
        said = made.tally.note(desk.booker().hold(slot, **what))
        assert "lines" in said, said
        made.tally.count(said["lines"])

    crowd(AT_ONCE, journey)
    made.agree(AT_ONCE)


# ---- a lock of somebody else ----

def test_a_lock_on_one_of_four_places_makes_the_whole_hold_busy(rig, desk):
    slot = rig.slot({"Stalls": (2, 5)})
    named = guids("Stalls", 1, 4)
    key = next(keys)
    with locked(rig, slot, named[3]):
        answer = desk.booker().hold(slot, places=named, key=key)
        assert (answer.status_code, answer.json()["reason"]) == (503, "busy")
        assert int(answer.headers["Retry-After"]) > 0
        assert free(rig, slot) == 10 and orders(rig, slot) == 0
        # the three are not kept by who was sent away
        other = desk.booker().hold(slot, places=named[:2])
        assert other.status_code == 201, other.text
    refused = desk.booker().hold(slot, places=named, key=key)
    assert refused.json()["reason"] == "taken"
    answer = desk.booker().hold(slot, places=named[2:], key=next(keys))
    assert answer.status_code == 201


def test_who_wants_other_places_does_not_wait_for_who_waits(rig, desk):
    """One waits for a lock with three places in hand; eight others, in the same
    lane, are served before that lock goes."""
    slot = rig.slot({"Stalls": (2, 12)})
    named, others = guids("Stalls", 1, 4), guids("Stalls", 2, 12)[12:]
    with locked(rig, slot, named[3]):
        first = {}
        waits = threading.Thread(target=lambda: first.update(
            answer=desk.booker().hold(slot, places=named)))
        waits.start()
        answers = crowd(8, lambda i: desk.booker().hold(
            slot, places=[others[i]]))
        assert [answer.status_code for answer in answers] == [201] * 8
        waits.join(90)
    assert first["answer"].json()["reason"] == "busy"
    assert free(rig, slot) == 24 - 8


HOUSES = {12: (1, 12), 200: (10, 20), 1011: (3, 337)}


@pytest.mark.parametrize("places", HOUSES)
def test_nobody_waits_for_a_place_he_did_not_name(places, rig, desk):
    """Were a list of places a scan of the hall, these would all be busy."""
    shape = HOUSES[places]
    seats = guids("Stalls", *shape)
    slot = rig.slot({"Stalls": shape})
    # first, last and one between two that are named
    foreign = [seats[0], seats[places // 2], seats[-1]]
    left = [seat for seat in seats if seat not in foreign]
    with locked(rig, slot, *foreign):
        for n in (1, 2, 9, 64, 256):
            named = left[:n] if n < len(left) else left
            near = desk.booker()
            answer = near.hold(slot, places=named)
            assert answer.status_code == 201, (n, answer.text[:300])
            assert near.release().status_code == 200
            # and the same number spread over the hall, around the locked ones
            step = max(1, len(left) // n)
            wide = desk.booker()
            answer = wide.hold(slot, places=left[::step][:n])
            assert answer.status_code == 201, (n, answer.text[:300])
            assert wide.release().status_code == 200
    assert free(rig, slot) == places


def test_a_pool_is_not_locked_by_the_places_beside_it(rig, desk):
    slot = rig.slot({"Stalls": (1, 6), "Pit": (1, 1)},
                    areas={"Pit": "pooled:30"})
    with locked(rig, slot, *guids("Stalls", 1, 6)):
        answers = crowd(8, lambda i: desk.booker().hold(slot, area="Pit",
                                                        quantity=1))
    assert [answer.status_code for answer in answers] == [201] * 8


# ---- baskets that cross ----

def test_two_bookers_on_different_slots_both_have_it(rig, desk):
    slots = [rig.slot({"Stalls": (1, 4)}) for _ in range(2)]
    answers = crowd(2, lambda i: desk.booker().hold(
        slots[i], places=["Stalls-1-1", "Stalls-1-2"]))
    assert [answer.status_code for answer in answers] == [201, 201]


@pytest.mark.parametrize("order", [1, -1], ids=["same", "opposite"])
def test_of_two_groups_with_the_same_places_one_has_them(order, rig, desk):
    for _ in range(4):
        slot = rig.slot({"Stalls": (1, 6)})
        wanted = guids("Stalls", 1, 6)
        answers = crowd(2, lambda i: desk.booker().hold(
            slot, places=wanted[::order] if i else wanted))
        assert sorted(a.status_code for a in answers) == [201, 409]
        refused = next(a for a in answers if a.status_code == 409).json()
        assert refused["reason"] == "taken"
        assert orders(rig, slot) == 1 and free(rig, slot) == 0


def test_two_groups_over_the_same_slots_in_opposite_order(rig, desk):
    one, two = (rig.slot({"Stalls": (1, 4)}) for _ in range(2))
    for seat in range(1, 5):
        def lines(slots):
            return [{"slot": slot, "place": f"Stalls-1-{seat}"}
                    for slot in slots]
        answers = crowd(4, lambda i: desk.booker().hold(
            lines=lines([two, one] if i % 2 else [one, two])))
        assert sorted(a.status_code for a in answers) == [201, 409, 409, 409]
    assert free(rig, one) == free(rig, two) == 0
    assert orders(rig, one) == orders(rig, two) == 4


def test_one_basket_asked_for_twice_is_one(rig, desk):
    """Twins with one key, at the same moment: both get the one order."""
    slot = rig.slot({"Stalls": (1, 8)})
    for seat in range(1, 9):
        key = next(keys)
        answers = crowd(4, lambda _: desk.booker().hold(
            slot, places=[f"Stalls-1-{seat}"], key=key))
        assert [a.status_code for a in answers] == [201] * 4
        assert len({a.json()["token"] for a in answers}) == 1
    assert orders(rig, slot) == 8


def test_released_fifty_times_at_once_gives_back_once(rig, desk):
    slot = rig.slot(pools={"Floor": 20})
    rig.price(slot, "adult", "10.00", quota=15)
    stays = desk.booker()
    assert stays.hold(slot, area="Floor", quantity=6).status_code == 201
    goes = desk.booker()
    assert goes.hold(slot, area="Floor", quantity=7).status_code == 201

    def leave(_):
        again = desk.booker()
        again.token = goes.token
        answer = again.release()  # not kept, lest it keeps its worker
        return answer.status_code, answer.json()["state"]

    assert set(crowd(50, leave)) == {(200, "released")}
    assert rig.availability(slot).json()["free"] == 14
    used = [row["used"] for row in rig.rows(
        "SELECT used FROM yoyaku_lock_anchor a JOIN yoyaku_slot s ON "
        "a.owner = s.slot_id WHERE s.slot_key = %s AND a.kind IN (2, 3)",
        (slot,))]
    assert used == [6, 6]
    kinds = rig.rows("SELECT at_us FROM yoyaku_journal JOIN yoyaku_slot "
                     "USING (slot_id) WHERE slot_key = %s", (slot,))
    assert len(kinds) == 3  # two holds, one release
