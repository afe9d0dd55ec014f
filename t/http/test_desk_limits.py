# SPDX-License-Identifier: Apache-2.0
"""Limits, nested: at most so many places, slots or resources per order or per
booker, over a slot, a resource, a series or everything. The request itself is
counted with what is there. And parties: where they sit, and what they are told."""
import itertools

import pytest

from yk import Rig

names = itertools.count(1)


@pytest.fixture(scope="module")
def own(folder, build, mpm, database):
    """A schema of its own: limits over everything would count elsewhere."""
    made = Rig(f"{folder}/limits", build, mpm, database, "yoyaku_limits")
    try:
        yield made.start(location="YoyakuHoldPlaces 30")
    finally:
        made.stop()


@pytest.fixture
def rig(own):
    with own.one_test():
        yield own
        own.rows("DELETE FROM yoyaku_limit")
        own.ctl("limit", "add", "--per", "order", "--over", "all:", "--count",
                "places", "--max", "100000")  # the catalogue learns of it


@pytest.fixture
def season(rig):
    """Two plays of two evenings each in one series, and one outside."""
    n = next(names)
    made = {}
    for play, series in (("a", "s"), ("b", "s"), ("c", None)):
        for evening in (1, 2):
            more = {"series": f"{series}{n}"} if series else {}
            made[f"{play}{evening}"] = rig.slot(
                pools={"Floor": 50}, resource=f"{play}{n}", **more)
    made["n"] = n
    return made


def lines(season, wish):
    return [{"slot": season[name], "area": "Floor", "quantity": n}
            for name, n in wish.items()]


# (over, count, max): wishes that fit one after the other, then one too many
MATRIX = [
    ("slot:{a1}", "places", 4, [{"a1": 3}, {"a2": 9}, {"a1": 1}], {"a1": 1}),
    ("resource:a{n}", "places", 4, [{"a1": 2}, {"b1": 9}, {"a2": 2}],
     {"a2": 1}),
    ("series:s{n}", "places", 5, [{"a1": 2}, {"c1": 9}, {"b2": 3}], {"b1": 1}),
    ("all:", "places", 6, [{"a1": 2}, {"c1": 4}], {"b1": 1}),
    ("resource:a{n}", "slots", 1, [{"a1": 2}, {"b1": 1}, {"a1": 2}],
     {"a2": 1}),
    ("series:s{n}", "slots", 2, [{"a1": 1, "b1": 1}, {"c1": 1}, {"a1": 3}],
     {"a2": 1}),
    ("all:", "slots", 2, [{"a1": 1}, {"c2": 1}, {"a1": 1}], {"b1": 1}),
    ("series:s{n}", "resources", 1, [{"a1": 1, "a2": 1}, {"c1": 1}],
     {"b1": 1}),
    ("all:", "resources", 2, [{"a1": 1, "c1": 1}, {"a2": 2}], {"b2": 1}),
]


@pytest.mark.parametrize("per", ["order", "booker"])
@pytest.mark.parametrize("over, count, most, fits, too_many", MATRIX)
def test_a_limit_counts_what_it_is_over(per, over, count, most, fits, too_many,
                                        rig, season):
    scope = over.format(**season)
    rig.limit(per, scope, count, most)
    name = f"Ann-{season['n']}"
    booker = rig.booker(name)
    for wish in fits:
        if per == "booker":
            booker = rig.booker(name)  # each an order of its own
        answer = booker.hold(lines=lines(season, wish))
        assert answer.status_code in (200, 201), (wish, answer.text)
        if answer.status_code == 200:
            assert per == "order"
    if per == "booker":
        booker = rig.booker(name)
    said = booker.hold(lines=lines(season, too_many))
    assert said.status_code == 409, said.text
    said = said.json()
    assert (said["reason"], said["scope"], said["max"], said["asked"]) == \
        ("limit", over.split(":")[0], most, 1)
    assert said["have"] == most
    stranger = rig.booker(f"Bob-{season['n']}")
    assert stranger.hold(lines=lines(season, too_many)).status_code == 201
    assert rig.booker().hold(
        lines=lines(season, too_many)).status_code == 201


@pytest.mark.parametrize("per", ["order", "booker"])
def test_a_wish_is_counted_as_a_whole(per, rig, season):
    rig.limit(per, f"series:s{season['n']}", "places", 5)
    booker = rig.booker(f"Ann-{season['n']}")
    said = booker.hold(lines=lines(season, {"a1": 3, "b1": 3})).json()
    assert (said["reason"], said["have"], said["asked"]) == ("limit", 0, 6)
    assert booker.hold(lines=lines(season, {"a1": 3, "b1": 2})
                       ).status_code == 201


def test_of_nested_limits_each_holds(rig, season):
    n, name = season["n"], f"Ann-{season['n']}"
    rig.limit("booker", f"slot:{season['a1']}", "places", 2)
    rig.limit("booker", f"resource:a{n}", "places", 3)
    rig.limit("booker", f"series:s{n}", "places", 4)
    rig.limit("booker", "all:", "places", 5)

    def ask(**wish):
        answer = rig.booker(name).hold(lines=lines(season, wish))
        return answer.json().get("scope", answer.status_code)

    told = [ask(a1=3), ask(a1=2), ask(a1=1), ask(a2=2), ask(a2=1), ask(a2=1),
            ask(b1=2), ask(b1=1), ask(b1=1), ask(c1=2), ask(c1=1), ask(c1=1)]
    assert told == ["slot", 201, "slot", "resource", 201, "resource",
                    "series", 201, "series", "all", 201, "all"]


@pytest.mark.parametrize("leave", ["release", "remove", "exchange", "expire"])
def test_what_is_given_back_may_be_had_again(leave, rig, season):
    rig.limit("booker", f"slot:{season['a1']}", "places", 2)
    name = f"Ann-{season['n']}"
    first = rig.booker(name)
    first.hold(lines=lines(season, {"a1": 2, "b1": 1}))
    again = rig.booker(name)
    assert again.hold(lines=lines(season, {"a1": 1})).status_code == 409
    if leave == "exchange":
        assert first.exchange([{"line": 1, "quantity": 1}],
                              lines(season, {"b2": 1})).status_code == 200
    elif leave == "remove":
        assert first.remove(1).status_code == 200
    elif leave == "release":
        assert first.release().status_code == 200
    else:
        rig.advance(601)
    assert again.hold(lines=lines(season, {"a1": 1})).status_code == 201


def test_an_exchange_is_counted_by_its_net(rig, season):
    rig.limit("booker", f"series:s{season['n']}", "places", 3)
    booker = rig.booker(f"Ann-{season['n']}")
    booker.hold(lines=lines(season, {"a1": 3}))
    assert booker.exchange([{"line": 1}], lines(season, {"b1": 3})
                           ).status_code == 200
    said = booker.exchange([{"line": 2, "quantity": 1}],
                           lines(season, {"a2": 2})).json()
    assert said["reason"] == "limit", said


# ---- grades and tariffs ----

def test_each_seat_pays_the_price_of_its_own_grade(rig):
    rows = ["section,row,place,x,y,grade,guid"] + [
        f"Stalls,1,{i},{10 * i},10,{'A' if i <= 2 else 'B'},g{i}"
        for i in range(1, 7)]
    hall = rig.hall(csv="\n".join(rows) + "\n")
    for mode in ("placed", "assigned"):
        slot = rig.slot(hall=hall, areas={"Stalls": mode})
        rig.price(slot, "adult", "30.00", grade="A")
        rig.price(slot, "adult", "20.00", grade="B", quota=3)
        rig.price(slot, "child", "5.00", grade="B")
        what = ({"places": ["g1", "g2", "g3"]} if mode == "placed"
                else {"area": "Stalls", "quantity": 3})
        said = rig.hold(slot, tariff="adult", **what)[1].json()
        prices = {line["place"]: line["price"] for line in said["lines"]}
        assert all(prices[place] == ("30.00" if place in ("g1", "g2")
                                     else "20.00") for place in prices), said
        if mode == "placed":
            assert said["total"] == "80.00"
            wrong = rig.hold(slot, ["g1"], tariff="child")[1].json()
            assert wrong["reason"] in ("tariff_not_offered", "taken")


# ---- parties ----

def seats_of(answer):
    return [(line["row"], int(line["seat"]))
            for line in answer.json()["lines"]]


def adjacent(seats):
    rows, numbers = {row for row, _ in seats}, sorted(n for _, n in seats)
    return len(rows) == 1 and numbers == list(range(numbers[0],
                                                    numbers[0] + len(seats)))


def test_a_party_sits_together_and_leaves_no_single_seat(rig):
    """A row of five of which a party of four would leave one: the row of four
    is theirs though it comes later."""
    slot = rig.slot(hall=rig.hall(csv="section,row,place,x,y,grade,guid\n" +
                                  "".join(f"Pit,1,{i},{10 * i},10,A,f{i}\n"
                                          for i in range(1, 6)) +
                                  "".join(f"Pit,2,{i},{10 * i},20,A,s{i}\n"
                                          for i in range(1, 5))),
                    areas={"Pit": "assigned"})
    first = rig.hold(slot, area="Pit", quantity=4)[1]
    assert first.json()["together"] is True
    assert {row for row, _ in seats_of(first)} == {"2"}
    assert adjacent(seats_of(first))
    # then four of five, because nothing better is left
    second = rig.hold(slot, area="Pit", quantity=4)[1]
    assert second.json()["together"] is True and adjacent(seats_of(second))


def test_an_aisle_separates_though_the_numbers_go_on(rig):
    slot = rig.slot(hall=rig.hall(csv="section,row,place,x,y,grade,guid\n" +
                                  "".join(f"Pit,1,{i},{10 * i + 40 * (i > 2)},"
                                          f"10,A,a{i}\n"
                                          for i in range(1, 5))),
                    areas={"Pit": "assigned"})
    said = rig.hold(slot, area="Pit", quantity=3, together=True)[1].json()
    assert said["reason"] == "not_together"
    spread = rig.hold(slot, area="Pit", quantity=3)[1]
    assert spread.json()["together"] is False


def test_seats_that_are_numbered_wrongly_are_still_neighbours(rig):
    slot = rig.slot(hall=rig.hall(csv="section,row,place,x,y,grade,guid\n" +
                                  "".join(f"Pit,1,{n},{x},10,A,w{n}\n"
                                          for n, x in ((1, 10), (7, 20),
                                                       (3, 30), (99, 40)))),
                    areas={"Pit": "assigned"})
    said = rig.hold(slot, area="Pit", quantity=4, together=True)[1]
    assert said.status_code == 201 and said.json()["together"] is True


def test_a_split_party_is_counted_by_tariff(rig):
    slot = rig.slot({"Pit": (2, 6)}, areas={"Pit": "assigned"},
                    prices={"adult": "20.00", "child": "8.00"})
    said = rig.hold(lines=[{"slot": slot, "area": "Pit",
                            "tariffs": {"adult": 2, "child": 3}}])[1].json()
    assert said["total"] == "64.00" and said["together"] is True
    tariffs = sorted(line["tariff"] for line in said["lines"])
    assert tariffs == ["adult"] * 2 + ["child"] * 3
