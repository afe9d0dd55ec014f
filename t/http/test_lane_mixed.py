# SPDX-License-Identifier: Apache-2.0
"""One lane for everything: in one batch are wishes for other slots, of another
house, under other terms. Each is answered as if it were alone."""
import itertools
import re
import threading
import time

import pytest

from yk import POOL_ROW, Rig
from yk.exact import crowd

OTHER = "mixed-b"
ONE = {"area": "Floor", "quantity": 1}
MOMENT = 0.4  # from a worker's hands into the lane
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
keys = (f"mixed-lane-key-{n:020d}" for n in itertools.count())

CONF = f"""
YoyakuLane 1
<Location "/b">
    SetHandler yoyaku
    YoyakuTenant {OTHER}
    YoyakuBooker "%{{req:X-Other}}"
    YoyakuHoldTTL 77s
    YoyakuConfirm free
    YoyakuHoldPlaces 2
</Location>
<Location "/short">
    SetHandler yoyaku
    YoyakuHoldWait 1s
</Location>
<Location "/lane-status">
    SetHandler yoyaku-status
</Location>
<Location "/server-status">
    SetHandler server-status
</Location>
"""


@pytest.fixture(scope="module")
def own(folder, build, mpm, database):
    """A schema of its own: limits over everything would count elsewhere."""
    made = Rig(f"{folder}/mixed", build, mpm, database, "yoyaku_mixed")
    try:
        made.start(conf=CONF, workers=24, location="YoyakuHoldTTL 300s\n"
                   "YoyakuConfirm shop\nYoyakuHoldPlaces 5")
        made.ctl("setup", "--tenant", OTHER)
        made.host.await_children(20 if mpm == "prefork" else 1)
        yield made
    finally:
        made.stop()


@pytest.fixture
def rig(own):
    with own.one_test():
        yield own


def hold(rig, slot, body, path="/yoyaku", key=None, **headers):
    if key:
        headers["Idempotency-Key"] = key
    return rig.host.booker().post(f"{path}/slots/{slot}/holds", body,
                                  headers=headers)


def in_one_batch(rig, n, journey):
    """The first one waits for its pool, in a batch of its own; those who come
    meanwhile are the next batch."""
    slot = rig.slot(pools={"Floor": 9})
    assert hold(rig, slot, ONE).status_code == 201

    def batches():
        return rig.host.get("/lane-status?json").json()["lanes"]["batches"]

    def at_work():
        """Workers with a request in hand, but the one that tells us this."""
        board = rig.host.get("/server-status?auto").text
        return re.search(r"Scoreboard: (.*)", board).group(1).count("W") - 1

    def lead(line):
        rig.until(lambda: at_work() == 1, 5, "the first one")
        time.sleep(MOMENT)
        first_waits.set()
        rig.until(lambda: len(answered) + at_work() > n, 5, "the others")
        time.sleep(MOMENT)
        line.rollback()

    def run(i):
        if i == n + 1:
            return lead(line)
        if i == n:
            return hold(rig, slot, ONE)
        assert first_waits.wait(60)
        answered.append(journey(i))
        return answered[-1]

    before, answered, first_waits = batches(), [], threading.Event()
    with rig.locked(POOL_ROW, (slot,)) as line:
        told = crowd(n + 2, run)
    assert batches() - before == 2
    return told[:n]


def test_each_is_served_under_its_own_terms(rig):
    slot, shut = f"terms-{next(keys)[-6:]}", rig.slot(pools={"Floor": 9})
    for tenant, places in (("default", 20), (OTHER, 9)):
        rig.ctl("slot", "add", "--key", slot, "--title", slot, "--starts",
                "2039-01-01T20:00Z", "--pool", f"Floor={places}", "--tenant",
                tenant)
        rig.ctl("slot", "open", slot, "--tenant", tenant)
    rig.ctl("slot", "close", shut)
    rig.slots.append(slot)
    wishes = [("/yoyaku", slot, {"quantity": 3}, "held"),
              ("/b", slot, {"quantity": 1, "confirm": True}, "confirmed"),
              ("/yoyaku", slot, {"confirm": True}, "forbidden"),
              ("/b", slot, {"quantity": 3}, "limit"),
              ("/yoyaku", shut, {}, "not_on_sale"),
              ("/b", slot, {"quantity": 2}, "held")]

    def journey(i):
        path, where, more, _ = wishes[i % 6]
        return hold(rig, where, {**ONE, **more}, path,
                    **{"X-Booker": f"ann{i}", "X-Other": f"bob{i}"})

    for i, answer in enumerate(in_one_batch(rig, 18, journey)):
        said = answer.json()
        assert said.get("reason", said.get("state")) == wishes[i % 6][3], said
    orders = rig.rows(
        "SELECT DISTINCT t.name, LEFT(o.booker, 3) AS booker, o.state, "
        "IF(o.state = 1, (o.until_us - o.begun_us) DIV 1000000, 0) AS ttl "
        "FROM yoyaku_order o JOIN yoyaku_booking b USING (order_id) JOIN "
        "yoyaku_slot s USING (slot_id) JOIN yoyaku_tenant t ON t.tenant_id = "
        "o.tenant_id WHERE slot_key = %s AND s.tenant_id = o.tenant_id "
        "ORDER BY 1, 3", (slot,))
    assert [tuple(order.values()) for order in orders] == [
        (b"default", b"ann", 1, 300), (OTHER.encode(), b"bob", 1, 77),
        (OTHER.encode(), b"bob", 3, 0)]
    assert [rig.host.get(f"{path}/slots/{slot}/availability").json()["free"]
            for path in ("/yoyaku", "/b")] == [20 - 9, 9 - 9]


@pytest.mark.parametrize("over, count, most", [
    ("all:", "places", 5), ("series:s", "slots", 2),
    ("series:s", "resources", 1), ("all:", "resources", 3)])
def test_a_booker_is_limited_over_the_slots_of_a_batch(over, count, most, rig):
    tag = next(keys)[-6:]
    resources, outside = [0, 0, 1, 2, 3, 4], 4  # the last two in no series
    slots = [rig.slot(pools={"Floor": 9}, resource=f"r{tag}-{resource}",
                      **({"series": f"s{tag}"} if n < outside else {}))
             for n, resource in enumerate(resources)]
    rig.limit("booker", over if over == "all:" else over + tag, count, most)
    told = in_one_batch(rig, 6, lambda i: hold(
        rig, slots[i], {**ONE, "quantity": 2}, **{"X-Booker": f"eve{tag}"}))
    rig.rows("DELETE FROM yoyaku_limit")
    rig.ctl("limit", "add", "--per", "order", "--over", "all:", "--count",
            "places", "--max", "100000")  # the catalogue learns of it
    assert {answer.json().get("reason") for answer in told} == {None, "limit"}
    won = [i for i, answer in enumerate(told) if answer.status_code == 201]
    if over != "all:":
        assert won[-2:] == [4, 5]
        won = won[:-2]
    have = {"places": 2 * len(won), "slots": len(won),
            "resources": len({resources[i] for i in won})}[count]
    assert have == (4 if count == "places" else most)


def all_but_one_give_up(rig, slot, own_keys):
    assert hold(rig, slot, ONE).status_code == 201
    with rig.locked(POOL_ROW, (slot,)) as line:
        gave_up = itertools.count(1)

        def journey(i):
            answer = hold(rig, slot, ONE, "/short", own_keys[i])
            if next(gave_up) == 7:  # all but the one who leads
                line.rollback()
            return answer

        return in_one_batch(rig, 8, journey)


@pytest.mark.parametrize("key", [True, False], ids=["key", "no key"])
def test_who_gave_up_what_was_done_after_all_has_a_good_token(key, rig):
    # On a busy machine some gave up before anybody had taken them.
    for _ in range(10):
        slot = rig.slot(pools={"Floor": 50})
        own_keys = [next(keys) if key else None for _ in range(8)]
        told = all_but_one_give_up(rig, slot, own_keys)
        said = [answer.json() for answer in told]
        if [one.get("reason") for one in said].count("unresolved") >= 7:
            break
    else:
        pytest.fail(str(said))
    numbers = set()
    for one, own_key in zip(said, own_keys):
        booker = rig.booker()
        booker.token = one["token"]
        rig.until(lambda: booker.order().status_code == 200, 3, "its order")
        number = booker.order().json()["number"]
        numbers.add(number)
        assert one.get("number", number) == number
        if key:
            again = hold(rig, slot, ONE, "/short", own_key)
            assert (again.status_code, again.json()["token"],
                    again.json()["number"]) == (201, one["token"], number)
    assert len(numbers) == 8
    assert rig.availability(slot).json()["free"] == 50 - 9


def test_only_the_token_that_was_given_out_opens_an_order(rig):
    """Not with other last bits, which say nothing; nor its time alone."""
    booker = rig.booker()
    token = booker.hold(rig.slot(pools={"Floor": 9}), **ONE).json()["token"]
    last = ALPHABET.index(token[-1])
    wrong = {token[:-1] + ALPHABET[last ^ bits] for bits in (1, 2, 3)}
    wrong |= {token[:i] + ALPHABET[ALPHABET.index(token[i]) ^ 4] +
              token[i + 1:] for i in range(27)}
    wrong |= {token.swapcase(), token[:-1], token + "A", token + "=",
              token[:6] + "A" * 21}
    for one in wrong:
        for head in ({"Yoyaku-Order": one}, {"Cookie": f"yoyaku_order={one}"}):
            answer = rig.booker().get("/yoyaku/order", headers=head)
            assert answer.status_code in (400, 404), (one, token, answer.text)
    assert booker.order().json()["state"] == "held"
