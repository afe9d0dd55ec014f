# SPDX-License-Identifier: Apache-2.0
"""Two houses in one database with equal names for everything: neither sees,
holds or counts anything of the other."""
import itertools
import json

import pytest

from yk.exact import crowd

OTHER = "tenant-b"
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def theirs(_house):
    """A host of another tenant on the same database."""
    _house.ctl("setup", "--tenant", OTHER)
    line = f"YoyakuTenant {OTHER}"
    host = _house.add_host(location=line, shop=line)
    yield host
    host.stop()
    _house.hosts.remove(host)


class House:
    """What a tenant's operator types and its web host is asked."""

    def __init__(self, rig, host, tenant):
        self.rig, self.host, self.tenant = rig, host, tenant

    def ctl(self, *args):
        return self.rig.ctl(*args, "--tenant", self.tenant)

    def free(self, slot):
        answer = self.host.get(f"/yoyaku/slots/{slot}/availability")
        return answer.json().get("free")


@pytest.fixture
def houses(rig, theirs):
    """Both, with a hall, a slot, prices, a quota and a limit of equal names."""
    made = [House(rig, rig.host, "default"), House(rig, theirs, OTHER)]
    n = next(numbers)
    hall, slot = f"twins-{n}", f"twin-{n}"
    for house, seats in zip(made, (6, 9)):
        path = f"{rig.folder}/{hall}-{house.tenant}.csv"
        with open(path, "w") as file:
            file.write("section,row,place,x,y,grade,guid\n" + "".join(
                f"Stalls,1,{i},{10 * i},10,A,S-{i}\n"
                for i in range(1, seats + 1)))
        house.ctl("hall", "import", path, "--name", hall)
        house.ctl("slot", "add", "--key", slot, "--title", house.tenant,
                  "--starts", "2039-01-01T20:00Z", "--hall", hall,
                  "--resource", f"play-{n}", "--series", f"run-{n}")
        house.ctl("price", "set", "--slot", slot, "--tariff", "adult",
                  "10.00", "EUR", "--quota", str(seats - 2))
        house.ctl("limit", "add", "--per", "booker", "--over", "all:",
                  "--count", "places", "--max", str(seats - 3))
        house.ctl("slot", "open", slot)
    rig.slots.append(slot)
    yield made[0], made[1], slot
    for house in made:  # this one would count in every later test
        house.ctl("limit", "add", "--per", "booker", "--over", "all:",
                  "--count", "places", "--max", "100000")
        house.ctl("verify", "--slot", slot)


def hold(house, slot, *seats, name="", key=None, **more):
    booker = house.host.booker(name)
    return booker, booker.hold(slot, [f"S-{seat}" for seat in seats], key=key,
                               **more)


def test_equal_names_are_two_things(houses):
    ours, others, slot = houses
    for house, seats in ((ours, 6), (others, 9)):
        said = house.host.get(f"/yoyaku/slots/{slot}").json()
        assert (said["title"], said["places"]) == (house.tenant, seats)
        plan = house.host.get(f"/yoyaku/slots/{slot}/plan").json()
        assert json.dumps(plan).count('"S-') == seats
        listed = house.host.get("/yoyaku/slots", params={
            "resource": said["resource"]}).json()["slots"]
        assert [one["title"] for one in listed] == [house.tenant]
    one, two = hold(ours, slot, 1, 2)[1], hold(others, slot, 1, 2)[1]
    assert (one.status_code, two.status_code) == (201, 201)
    assert (ours.free(slot), others.free(slot)) == (4, 7)
    assert hold(ours, slot, 9)[1].json()["reason"] == "unknown_place"


def test_quotas_and_limits_count_their_own(houses):
    """One of ours and one of theirs with one name, each to his own bound."""
    ours, others, slot = houses
    name = f"Ann-{slot}"
    for house, most in ((ours, 3), (others, 6)):
        seats = range(1, most + 1)
        assert hold(house, slot, *seats, name=name)[1].status_code == 201
        said = hold(house, slot, most + 1, name=name)[1].json()
        assert (said["reason"], said["max"], said["have"]) == \
            ("limit", most, most)
        assert hold(house, slot, most + 1)[1].status_code == 201
        said = hold(house, slot, most + 2)[1].json()
        assert (said["reason"], said["free"]) == ("sold_out", 0), said


def test_a_key_of_one_is_free_for_the_other(houses):
    ours, others, slot = houses
    key, name = f"tenant-key-{slot}-0123456789", f"Bob-{slot}"
    numbers_seen = set()
    for house in (ours, others):
        for _ in range(2):
            answer = hold(house, slot, 1, name=name, key=key)[1]
            assert answer.status_code == 201, answer.text
        numbers_seen.add(answer.json()["number"])
    assert len(numbers_seen) == 2
    for house in (ours, others):
        for _ in range(2):
            answer = hold(house, slot, 2, key=key)[1]
            assert answer.status_code == 201, answer.text


def test_an_order_of_one_is_nobodys_at_the_other(houses):
    ours, others, slot = houses
    booker, answer = hold(ours, slot, 1, name="Zoe")
    number, attempt = booker.number, booker.checkout().json()["attempt"]
    foreign = others.host.booker("Zoe")
    foreign.token = booker.token
    for said in (foreign.order(), foreign.checkout(), foreign.release(),
                 foreign.reopen(), foreign.confirm(), foreign.remove(1),
                 foreign.patch(reference="x"),
                 foreign.exchange([{"line": 1}], []),
                 foreign.hold(slot, ["S-5"])):
        assert (said.status_code, said.json()["reason"]) == (404, "unknown")
    shop = others.host.shop()
    for said in (shop.order(number), shop.cancel(number), shop.release(number),
                 shop.confirm(number, attempt, "10.00", "EUR"),
                 shop.exchange(number, [{"line": 1}], [])):
        assert (said.status_code, said.json()["reason"]) == (404, "unknown")
    found = shop.orders(booker="Zoe").json()["orders"]
    assert number not in [order["number"] for order in found]
    assert booker.order().json()["state"] == "locked"
    assert others.free(slot) == 9


def test_closing_and_pricing_touch_ones_own(houses):
    ours, others, slot = houses
    others.ctl("slot", "close", slot)
    others.ctl("price", "set", "--slot", slot, "--tariff", "adult", "99.00",
               "EUR")
    answer = hold(ours, slot, 1)[1]
    assert (answer.status_code, answer.json()["total"]) == (201, "10.00")
    assert hold(others, slot, 1)[1].json()["reason"] == "not_on_sale"


def test_in_a_crowd_each_sells_its_own_exactly(houses):
    """Both hosts at once (both tenants in one lane: test_lane_mixed.py)."""
    ours, others, slot = houses

    def journey(i):
        house, most = ((ours, 4), (others, 7))[i % 2]
        return i % 2, sum(hold(house, slot, seat)[1].status_code == 201
                          for seat in range(1, most + 3))

    told = crowd(16, journey)
    assert sum(n for which, n in told if which == 0) == 4  # its quota
    assert sum(n for which, n in told if which == 1) == 7
    for house, left in ((ours, 2), (others, 2)):
        assert house.free(slot) == left
