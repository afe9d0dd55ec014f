# SPDX-License-Identifier: Apache-2.0
"""200 places, 60 bookers at once: exactly 200 are sold, each once, and every
answer and every row of the book agree."""
import pytest

from yk.exact import BOOKERS, HOUSES, PLACES, Crowd, crowd


@pytest.mark.parametrize("house", HOUSES)
def test_two_hundred_places_sell_out_exactly(house, rig):
    made, journey = HOUSES[house](rig)
    crowd(BOOKERS, journey)
    made.agree()


@pytest.mark.parametrize("house", ["named", "all three"])
def test_what_is_given_back_meanwhile_is_sold_again(house, rig):
    """Every third booking leaves at once. Who was refused a place may be gone
    before it is free again: at the end one walks round for what is left."""
    made, journey = HOUSES[house](rig, rest=3)
    crowd(BOOKERS, journey)
    made.rest = 0
    journey(0)
    made.agree()


@pytest.mark.parametrize("lane", ["on", "off"])
def test_two_hosts_sell_out_exactly(lane, rig):
    """Lanes keep order on one host; between hosts, and between a lane and a
    host without, only the locks of the database do."""
    host = rig.add_host(conf=f"YoyakuLane {lane}\n")
    try:
        made, journey = HOUSES["all three"](rig)
        crowd(BOOKERS, journey)
        made.agree()
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_a_quota_is_sold_to_its_last(rig):
    made = Crowd(rig, rig.slot(pools={"Floor": PLACES}))
    rig.price(made.slot, "adult", "20.00", quota=50)
    crowd(BOOKERS, lambda i: made.counted("Floor", i, most=3, tariff="adult"))
    made.agree(50)


@pytest.mark.parametrize("most", [3])
def test_a_booker_never_passes_his_limit(rig, most):
    made = Crowd(rig, rig.slot(pools={"Floor": PLACES}))
    rig.limit("booker", f"slot:{made.slot}", "places", most)
    names = [f"guest-{made.slot}-{i}" for i in range(6)]

    def journey(i):
        for _ in range(4):
            booker = rig.booker(names[i % len(names)])
            said = made.tally.note(booker.hold(made.slot, area="Floor",
                                               quantity=1))
            if "lines" in said:
                made.tally.count(said["lines"])
            else:
                assert said["reason"] == "limit", said

    crowd(24, journey)
    made.agree(most * len(names))
    assert {row["n"] for row in rig.rows(
        "SELECT SUM(quantity) AS n FROM yoyaku_booking b JOIN yoyaku_slot s "
        "USING (slot_id) WHERE slot_key = %s AND live = 1 GROUP BY "
        "b.booker_hash", (made.slot,))} == {most}
