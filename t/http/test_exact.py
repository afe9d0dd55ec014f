# SPDX-License-Identifier: Apache-2.0
"""200 places, 60 bookers at once: exactly 200 are sold, each once, and every
answer and every row of the book agree."""
import collections
import random
import threading

import pytest

BOOKERS, PLACES = 60, 200
PATIENCE = 60  # journeys end by selling out, long before


def crowd(n, journey):
    """n bookers begin at the same moment; what journey(i) gives, by i."""
    start, given, broken = threading.Barrier(n), [None] * n, []

    def run(i):
        try:
            start.wait(30)
            given[i] = journey(i)
        except Exception as error:  # told below, by the test's own thread
            broken.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE * 2)
    if broken:
        raise broken[0]
    return given


class Ledger:
    """What the bookers were told, to be compared with the book."""

    def __init__(self):
        self.lock = threading.Lock()
        self.places, self.people = collections.Counter(), 0
        self.statuses = collections.Counter()
        self.orders = set()

    def note(self, answer):
        said = answer.json()
        with self.lock:
            self.statuses[answer.status_code, said.get("reason")] += 1
            if answer.status_code in (200, 201):
                self.orders.add(said["number"])
        return said

    def count(self, lines):
        with self.lock:
            for line in lines:
                if "place" in line:
                    self.places[line["place"]] += 1
                self.people += line.get("quantity", 1)


def named(rig, ledger, slot, guids, seed):
    """Ask for what looks free until nothing does."""
    rng = random.Random(seed)
    left = list(guids)
    while left:
        booker = rig.booker()
        wanted = rng.sample(left, min(len(left), rng.randint(1, 4)))
        said = ledger.note(booker.hold(slot, places=wanted))
        if "lines" in said:
            ledger.count(said["lines"])
            gone = set(wanted)
        else:
            assert said["reason"] == "taken", said
            gone = {place["place"] for place in said["places"]}
            assert gone and gone <= set(wanted), said
        left = [guid for guid in left if guid not in gone]


def counted(rig, ledger, slot, area, seed):
    """Ask for parties; smaller ones when the large do not fit any more."""
    rng = random.Random(seed)
    most = 4
    while most > 0:
        booker = rig.booker()
        n = rng.randint(1, most)
        said = ledger.note(booker.hold(slot, area=area, quantity=n))
        if "lines" in said:
            ledger.count(said["lines"])
        else:
            assert said["reason"] == "sold_out", said
            assert said["free"] < n, said
            most = min(n - 1, said["free"])


def agree(rig, ledger, slot, places=PLACES):
    """The count, the answers and the rows."""
    bad = {key: n for key, n in ledger.statuses.items()
           if key[0] not in (200, 201, 409)}
    assert not bad, bad
    assert ledger.people == places, ledger.statuses
    assert max(ledger.places.values(), default=1) == 1, \
        ledger.places.most_common(3)
    slot_id = rig.value("SELECT slot_id FROM yoyaku_slot WHERE slot_key = %s",
                        (slot,))
    taken = {row["guid"].decode() for row in rig.rows(
        "SELECT guid FROM yoyaku_slot_place t JOIN yoyaku_slot s USING "
        "(slot_id) JOIN yoyaku_place p ON p.hall_id = s.hall_id AND "
        "p.place_no = t.place_no WHERE slot_id = %s AND t.state = 1",
        (slot_id,))}
    assert taken == set(ledger.places)
    lines = rig.rows("SELECT order_id, SUM(quantity) AS n FROM yoyaku_booking "
                     "WHERE slot_id = %s AND live = 1 GROUP BY order_id",
                     (slot_id,))
    assert sum(row["n"] for row in lines) == places
    assert len(lines) == len(ledger.orders)
    rig.verify_book([slot])


def guids(*shape):
    name, rows, seats = shape
    return [f"{name}-{row}-{seat}" for row in range(1, rows + 1)
            for seat in range(1, seats + 1)]


def test_named_seats_sell_out_exactly(rig):
    slot, ledger = rig.slot({"Stalls": (10, 20)}), Ledger()
    crowd(BOOKERS, lambda i: named(rig, ledger, slot,
                                   guids("Stalls", 10, 20), i))
    agree(rig, ledger, slot)


def test_assigned_parties_sell_out_exactly(rig):
    slot = rig.slot({"Stalls": (10, 20)}, areas={"Stalls": "assigned"})
    ledger = Ledger()
    crowd(BOOKERS, lambda i: counted(rig, ledger, slot, "Stalls", i))
    agree(rig, ledger, slot)


def test_a_pool_sells_out_exactly(rig):
    slot, ledger = rig.slot(pools={"Floor": PLACES}), Ledger()
    crowd(BOOKERS, lambda i: counted(rig, ledger, slot, "Floor", i))
    agree(rig, ledger, slot)


def test_all_three_in_one_slot_sell_out_exactly(rig):
    slot = rig.slot({"Stalls": (4, 20), "Gallery": (7, 10), "Pit": (1, 1)},
                    areas={"Gallery": "assigned", "Pit": "pooled:50"})
    ledger = Ledger()

    def journey(i):
        parts = [lambda: named(rig, ledger, slot, guids("Stalls", 4, 20), i),
                 lambda: counted(rig, ledger, slot, "Gallery", i),
                 lambda: counted(rig, ledger, slot, "Pit", i)]
        for part in parts[i % 3:] + parts[:i % 3]:
            part()

    crowd(BOOKERS, journey)
    agree(rig, ledger, slot)


def test_a_quota_is_sold_to_its_last(rig):
    slot, ledger = rig.slot(pools={"Floor": PLACES}), Ledger()
    rig.price(slot, "adult", "20.00", quota=50)

    def journey(i):
        rng = random.Random(i)
        most = 3
        while most > 0:
            n = rng.randint(1, most)
            said = ledger.note(rig.booker().hold(slot, area="Floor",
                                                 quantity=n, tariff="adult"))
            if "lines" in said:
                ledger.count(said["lines"])
            else:
                assert said["reason"] == "sold_out", said
                most = n - 1

    crowd(BOOKERS, journey)
    agree(rig, ledger, slot, 50)


@pytest.mark.parametrize("most", [3])
def test_a_booker_never_passes_his_limit(rig, most):
    slot, ledger = rig.slot(pools={"Floor": PLACES}), Ledger()
    rig.limit("booker", f"slot:{slot}", "places", most)
    names = [f"guest-{slot}-{i}" for i in range(6)]

    def journey(i):
        for _ in range(4):
            booker = rig.booker(names[i % len(names)])
            said = ledger.note(booker.hold(slot, area="Floor", quantity=1))
            if "lines" in said:
                ledger.count(said["lines"])
            else:
                assert said["reason"] == "limit", said

    crowd(24, journey)
    agree(rig, ledger, slot, most * len(names))
    assert {row["n"] for row in rig.rows(
        "SELECT SUM(quantity) AS n FROM yoyaku_booking b JOIN yoyaku_slot s "
        "USING (slot_id) WHERE slot_key = %s AND live = 1 GROUP BY "
        "b.booker_hash", (slot,))} == {most}
