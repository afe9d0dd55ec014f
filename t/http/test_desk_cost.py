# SPDX-License-Identifier: Apache-2.0
"""What a hold costs the database: packets, statements and rows, in a hall of 200
places and in one of 80,000; and after many holds."""
import re

import pytest

from yk import Rig, Wire

SMALL, LARGE = (10, 20), (200, 400)
SESSION = re.compile(rb"SET |SHOW |^SELECT 1")


@pytest.fixture(scope="module", params=["lanes", "no lanes"])
def meter(request, folder, build, mpm):
    """A house of one worker, whose every packet is seen and whose database
    counts for nobody else."""
    lane = "on" if request.param == "lanes" else "off"
    rig = Rig(f"{folder}/meter-{lane}", build, mpm, clock=False)
    try:
        rig.start(hosts=0)
        with Wire(rig.database.port) as wire:
            rig.add_host(params=rig.params(port=wire.port), workers=1,
                         conf=f"YoyakuLane {lane}\nYoyakuSweepInterval 1min\n")
            rig.host.announce(r"\[dbd:")
            rig.wire = wire
            yield rig
    finally:
        rig.stop()


def hall(rig, shape):
    return rig.slot({"Stalls": shape, "Gallery": (10, 10)},
                    areas={"Gallery": "assigned"}, prices={"adult": "10.00"})


def counters(rig):
    """Rows read, and steps made in indexes and lists."""
    rows = rig.rows("SHOW GLOBAL STATUS WHERE Variable_name = 'Rows_read' OR "
                    "Variable_name LIKE 'Handler_read_%%'")
    return sum(int(row["Value"]) for row in rows)


def packets(rig, do):
    """What the wire saw while do() was done: (packets, its statements)."""
    rig.wire.queries.clear()
    do()
    seen = [sql for sql in rig.wire.queries if not SESSION.match(sql)]
    return len(seen), [sql.count(b";") + 1 for sql in seen], seen


def cost(rig, do):
    """Packets, statements and rows read by it; the best of three, since now
    and then somebody looks after the house."""
    found = []
    for turn in range(3):
        idle = counters(rig)
        before = counters(rig)
        n, statements, _ = packets(rig, lambda: do(turn))
        after = counters(rig)
        found.append((n, sum(statements), after - before - (before - idle)))
    return min(found)


def seats(slot, n, first, row=1):
    return [f"Stalls-{row}-{seat}" for seat in range(first, first + n)]


def held(rig, slot, **what):
    answer = rig.booker().hold(slot, tariff="adult", **what)
    assert answer.status_code == 201, answer.text


@pytest.fixture(scope="module")
def costs(meter):
    """(hall, what was held) -> cost; the catalogue is warm."""
    made = {}
    for name, shape in (("200", SMALL), ("80000", LARGE)):
        slot = hall(meter, shape)
        held(meter, slot, places=seats(slot, 1, 20))
        for n in (1, 4):
            made[name, f"{n} places"] = cost(meter, lambda turn: held(
                meter, slot, places=seats(slot, n, 1 + 4 * turn, row=n)))
        made[name, "a party"] = cost(meter, lambda turn: held(
            meter, slot, area="Gallery", quantity=3))

        def taken(_):
            answer = meter.booker().hold(slot, tariff="adult",
                                         places=seats(slot, 1, 20))
            assert answer.json()["reason"] == "taken"
        made[name, "a refusal"] = cost(meter, taken)
        last = seats(slot, 1, shape[1] - 3, row=shape[0])

        def again(_):
            booker = meter.booker()
            booker.hold(slot, tariff="adult", places=last)
            booker.release()
        made[name, "the last place, and leaving"] = cost(meter, again)
    return made


def test_a_hold_is_two_packets_whatever_the_hall(costs):
    for what in ("1 places", "4 places", "a party"):
        assert costs["200", what][0] == costs["80000", what][0] == 2, costs


def test_a_refusal_is_a_packet_and_its_rollback(costs):
    assert costs["200", "a refusal"][0] <= 2, costs
    assert costs["80000", "a refusal"][0] <= 2, costs


def test_statements_and_rows_do_not_grow_with_the_hall(costs):
    for (name, what), (n, statements, rows) in costs.items():
        if name == "200":
            large = costs["80000", what]
            assert large[:2] == (n, statements), (what, costs)
            assert large[2] <= rows + 4, (what, costs)


def test_rows_grow_with_the_places_asked_for_alone(costs):
    one, four = costs["80000", "1 places"][2], costs["80000", "4 places"][2]
    assert 0 < one <= 24, costs
    # a place is read when it is locked and when it is written, and has a line
    assert four - one <= 3 * 6, costs


def test_a_hold_costs_the_same_after_many(meter):
    slot = meter.slot({"Stalls": (5, 60)}, prices={"adult": "10.00"})
    held(meter, slot, places=seats(slot, 1, 60))
    first = cost(meter, lambda turn: held(meter, slot,
                                          places=seats(slot, 1, 1 + turn)))
    for row in range(2, 5):
        for seat in range(1, 60):
            held(meter, slot, places=seats(slot, 1, seat, row=row))
    late = cost(meter, lambda turn: held(
        meter, slot, places=seats(slot, 1, 1 + turn, row=5)))
    assert late[:2] == first[:2]
    assert late[2] <= first[2] + 4, (first, late)


def test_a_board_and_a_list_are_one_statement_each(meter):
    slot = hall(meter, SMALL)
    get = meter.host.get
    for path in (f"/yoyaku/slots/{slot}/availability", "/yoyaku/slots"):
        get(path)
        n, statements, seen = packets(meter, lambda: get(path))
        assert n <= 2 and all(b"FOR UPDATE" not in sql for sql in seen), seen
