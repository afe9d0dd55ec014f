# SPDX-License-Identifier: Apache-2.0
"""The table of reasons, each one provoked; the shop; who may confirm what."""
import pytest

BOTH = {"adult": "20.00", "child": "10.00"}


def problem(answer, status, reason, *members):
    assert answer.status_code == status, answer.text
    said = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert (said["reason"], said["status"]) == (reason, status)
    assert [name for name in members if name not in said] == []
    if status == 503:
        assert int(answer.headers["Retry-After"]) == said["retry_after"] > 0
    return said


@pytest.fixture
def house(rig):
    return rig, rig.slot({"Stalls": (4, 10)}, prices=BOTH)


def places(*numbers):
    return [f"Stalls-1-{number}" for number in numbers]


# ---- a hold ----

def test_a_hold_answers_with_all_that_it_took(house):
    rig, slot = house
    answer = rig.booker("Ann").hold(slot, places(1, 2), "adult",
                                    reference="r-1")
    assert answer.status_code == 201
    assert answer.headers["Location"] == "/yoyaku/order"
    assert answer.headers["Cache-Control"] == "no-store"
    said = answer.json()
    assert set(said) == {"number", "token", "state", "expires", "seconds_left",
                         "total", "currency", "lines", "reference"}
    assert said["state"] == "held" and said["seconds_left"] in (599, 600)
    assert (said["total"], said["currency"]) == ("40.00", "EUR")
    assert said["lines"][0] == {
        "line": 1, "slot": slot, "section": "Stalls", "row": "1", "seat": "1",
        "place": "Stalls-1-1", "grade": "A", "tariff": "adult",
        "price": "20.00"}


def test_a_slot_without_prices_is_free_of_charge(rig):
    slot = rig.slot(pools={"Floor": 9})
    said = rig.booker().hold(slot, area="Floor", quantity=3).json()
    assert (said["total"], said["currency"]) == ("0.00", None)
    assert said["lines"] == [{"line": 1, "slot": slot, "area": "Floor",
                              "quantity": 3, "tariff": None, "price": "0.00"}]


def test_a_party_is_told_whether_it_sits_together(rig):
    slot = rig.slot({"Pit": (1, 5)}, areas={"Pit": "assigned"})
    said = rig.booker().hold(slot, area="Pit", quantity=3).json()
    assert said["together"] is True
    _, single = rig.hold(slot, area="Pit", quantity=1)
    assert single.status_code == 201


def test_adding_is_200_and_naming_ones_own_takes_nothing(house):
    rig, slot = house
    booker, first = rig.hold(slot, places(1), tariff="adult")
    more = booker.hold(slot, places(2), "child")
    assert more.status_code == 200 and "Location" not in more.headers
    assert more.json()["number"] == first.json()["number"]
    again = booker.hold(slot, places(1, 2), "adult")
    assert again.status_code == 200, again.text
    assert [line["line"] for line in again.json()["lines"]] == [1, 2]
    assert again.json()["total"] == "30.00"


# ---- refusals of a hold ----

def test_taken_names_the_places(house):
    rig, slot = house
    rig.hold(slot, places(1, 3), tariff="adult")
    said = problem(rig.hold(slot, places(1, 2, 3), tariff="adult")[1], 409,
                   "taken", "places", "complete")
    assert said["places"] == [{"slot": slot, "place": place}
                              for place in places(1, 3)]
    assert said["complete"] is True
    assert rig.availability(slot).json()["free"] == 38


def test_sold_out_says_how_many_are_left(rig):
    slot = rig.slot(pools={"Floor": 5})
    rig.hold(slot, area="Floor", quantity=3)
    said = problem(rig.hold(slot, area="Floor", quantity=3)[1], 409, "sold_out",
                   "area", "free")
    assert (said["area"], said["free"], said["slot"]) == ("Floor", 2, slot)


def test_not_together_is_said_only_to_who_wants_to_sit_together(rig):
    slot = rig.slot({"Pit": (3, 2)}, areas={"Pit": "assigned"})
    problem(rig.hold(slot, area="Pit", quantity=3, together=True)[1], 409,
            "not_together")
    said = rig.hold(slot, area="Pit", quantity=3)[1].json()
    assert said["together"] is False and len(said["lines"]) == 3


def test_a_limit_of_an_order_is_told(house):
    rig, slot = house
    said = problem(
        rig.hold(slot, places(*range(1, 10)), tariff="adult")[1], 409, "limit",
        "limit", "scope", "max", "have", "asked")
    assert (said["scope"], said["max"], said["have"], said["asked"]) == \
        ("order", 8, 0, 9)


def test_a_limit_of_a_booker_is_told(rig):
    slot = rig.slot({"Stalls": (1, 10)}, resource="play-of-limits")
    rig.limit("booker", "resource:play-of-limits", "places", 2)
    assert rig.hold(slot, places(1, 2), name="Zoe")[1].status_code == 201
    said = problem(rig.hold(slot, places(3), name="Zoe")[1], 409, "limit")
    assert (said["scope"], said["max"], said["have"], said["asked"]) == \
        ("resource", 2, 2, 1)
    assert rig.hold(slot, places(3), name="Ann")[1].status_code == 201
    assert rig.hold(slot, places(4))[1].status_code == 201


def test_not_on_sale_says_what_it_is_now(rig):
    early = rig.slot({"Stalls": (1, 4)}, opens=rig.after(3600))
    said = problem(rig.hold(early, places(1))[1], 409, "not_on_sale", "state",
                   "opens", "closes")
    assert said["state"] == "before" and said["opens"] and not said["closes"]
    late = rig.slot({"Stalls": (1, 4)}, closes=rig.after(-3600))
    said = problem(rig.hold(late, places(1))[1], 409, "not_on_sale")
    assert said["state"] == "over" and said["closes"]
    shut = rig.slot({"Stalls": (1, 4)}, opened=False)
    said = problem(rig.hold(shut, places(1))[1], 409, "not_on_sale")
    assert said["state"] == "closed"


def test_a_closed_area_is_not_on_sale(rig):
    slot = rig.slot({"Stalls": (1, 4), "Loge": (1, 4)},
                    areas={"Loge": "closed"})
    said = problem(rig.hold(slot, ["Loge-1-1"])[1], 409, "not_on_sale", "area")
    assert said["area"] == "Loge"


def test_a_tariff_has_to_be_one_that_is_offered(house):
    rig, slot = house
    said = problem(rig.hold(slot, places(1))[1], 422, "tariff_not_offered",
                   "field", "allowed")
    assert "adult" in said["allowed"] and "child" in said["allowed"]
    problem(rig.hold(slot, places(1), tariff="senior")[1], 422,
            "tariff_not_offered")


def test_all_or_nothing_over_slots(house):
    rig, slot = house
    other = rig.slot(pools={"Floor": 1})
    rig.hold(other, area="Floor", quantity=1)
    answer = rig.hold(lines=[
        {"slot": slot, "place": "Stalls-1-1", "tariff": "adult"},
        {"slot": other, "area": "Floor", "quantity": 1}])[1]
    problem(answer, 409, "sold_out")
    assert rig.availability(slot).json()["free"] == 40


# ---- the way of an order ----

def test_the_states_an_order_refuses_in(house):
    rig, slot = house
    booker, _ = rig.hold(slot, places(1), tariff="adult")
    assert booker.checkout().json()["attempt"] == 1
    for answer in (booker.hold(slot, places(2), "adult"), booker.remove(1),
                   booker.exchange([{"line": 1}], [])):
        assert problem(answer, 409, "state", "state", "number")["state"] == \
            "locked"
    assert booker.release().json()["state"] == "released"
    assert booker.release().status_code == 200
    assert problem(booker.checkout(), 409, "state")["state"] == "released"


def test_an_order_past_its_end_is_expired(house):
    rig, slot = house
    booker, _ = rig.hold(slot, places(1), tariff="adult")
    rig.advance(601)
    said = booker.order().json()
    assert (said["state"], said["seconds_left"], said["expires"]) == \
        ("expired", 0, None)
    for answer in (booker.checkout(), booker.reopen(), booker.remove(1),
                   booker.hold(slot, places(2), "adult")):
        said = problem(answer, 410, "expired", "number")
        assert said["number"] == booker.number
    assert booker.release().status_code == 200


def test_a_checkout_says_what_is_to_be_paid(house):
    rig, slot = house
    booker, _ = rig.hold(slot, places(1, 2), tariff="adult")
    said = booker.checkout().json()
    assert (said["attempt"], said["total"], said["currency"]) == \
        (1, "40.00", "EUR")
    assert booker.checkout().json() == said
    assert booker.reopen().json()["state"] == "held"
    again = booker.checkout().json()
    assert (again["attempt"], again["expires"]) == (2, said["expires"])


def test_nobody_but_the_shop_confirms_what_costs_something(house):
    rig, slot = house
    booker, _ = rig.hold(slot, places(1), tariff="adult")
    problem(booker.confirm(), 403, "forbidden")
    problem(rig.hold(slot, places(2), tariff="adult", confirm=True)[1], 403,
            "forbidden")
    attempt = booker.checkout().json()["attempt"]
    problem(booker.confirm(), 403, "forbidden")
    for path in (f"/yoyaku-shop/orders/{booker.number}/confirm",
                 "/yoyaku-shop/orders"):
        assert booker.post(path, {"attempt": attempt}).status_code == 401
    assert booker.post("/yoyaku/order/confirm", {
        "attempt": attempt, "amount": "20.00", "currency": "EUR",
        "payment": "x"}).status_code == 422
    assert booker.order().json()["state"] == "locked"


def test_what_costs_nothing_is_confirmed_by_its_booker(rig):
    slot = rig.slot({"Stalls": (1, 9)})
    booker, _ = rig.hold(slot, places(1))
    assert booker.confirm().json()["state"] == "confirmed"
    assert booker.confirm().json()["state"] == "confirmed"
    said = problem(booker.release(), 409, "state")
    assert said["state"] == "confirmed"
    answer = rig.hold(slot, places(2), confirm=True)[1]
    assert (answer.status_code, answer.json()["state"]) == (201, "confirmed")


@pytest.mark.parametrize("word, priced, free", [
    ("booker", "confirmed", "confirmed"), ("shop", None, None)])
def test_the_configuration_says_who_confirms(word, priced, free, rig):
    host = rig.add_host(location=f"YoyakuConfirm {word}")
    slots = [(rig.slot({"Stalls": (1, 4)}, prices={"adult": "20.00"}), priced),
             (rig.slot({"Stalls": (1, 4)}), free)]
    try:
        for slot, state in slots:
            booker = host.booker()
            booker.hold(slot, places(1))
            answer = booker.confirm()
            if state:
                assert answer.json()["state"] == state
            else:
                problem(answer, 403, "forbidden")
    finally:
        host.stop()
        rig.hosts.remove(host)


# ---- the shop ----

@pytest.fixture
def locked(house):
    rig, slot = house
    booker, _ = rig.hold(slot, places(1, 2), name="Ann", tariff="adult",
                         reference=f"ref-{slot}")
    return rig, slot, booker, booker.checkout().json()["attempt"]


def test_the_shop_confirms_once_what_was_checked_out(locked):
    rig, _, booker, attempt = locked
    shop = rig.shop()
    said = problem(shop.confirm(booker.number, attempt + 1, "40.00", "EUR"),
                   409, "attempt", "attempt")
    assert said["attempt"] == attempt
    said = problem(shop.confirm(booker.number, attempt, "39.99", "EUR"), 409,
                   "amount", "amount", "currency")
    assert (said["amount"], said["currency"]) == ("40.00", "EUR")
    problem(shop.confirm(booker.number, attempt, "40.00", "USD"), 409, "amount")
    answers = [shop.confirm(booker.number, attempt, "40.00", "EUR", "p-1")
               for _ in range(2)]
    assert [answer.json()["state"] for answer in answers] == ["confirmed"] * 2
    problem(shop.confirm(booker.number, attempt, "40.00", "EUR", "p-2"), 409,
            "state")


def test_the_shop_sees_more_than_the_booker(locked):
    rig, slot, booker, attempt = locked
    rig.shop().confirm(booker.number, attempt, "40.00", "EUR", "p-1")
    said = rig.shop().order(booker.number).json()
    assert (said["booker"], said["payment"]) == ("Ann", "p-1")
    assert "token" not in said
    assert not {"booker", "payment"} & set(booker.order().json())
    found = rig.shop().orders(reference=f"ref-{slot}", booker="Ann").json()
    assert [order["number"] for order in found["orders"]] == [booker.number]
    assert rig.shop().orders(reference="none").json() == {"orders": []}
    assert rig.shop().orders(refrence="x").json()["field"] == "refrence"


def test_paid_late_is_late_or_due_back(house):
    rig, slot = house
    one, _ = rig.hold(slot, places(1), tariff="adult")
    two, _ = rig.hold(slot, places(2), tariff="adult")
    attempts = [booker.checkout().json()["attempt"] for booker in (one, two)]
    rig.advance(36 * 60)
    rig.hold(slot, places(2), tariff="adult")
    said = rig.shop().confirm(one.number, attempts[0], "20.00", "EUR")
    assert (said.status_code, said.json()["late"]) == (200, True)
    said = problem(rig.shop().confirm(two.number, attempts[1], "20.00", "EUR"),
                   409, "refund_due", "number")
    assert two.order().json()["state"] == "refund_due"
    problem(two.release(), 409, "state")


def test_paid_after_release_is_due_back(locked):
    rig, slot, booker, attempt = locked
    booker.release()
    problem(rig.shop().confirm(booker.number, attempt, "40.00", "EUR"), 409,
            "refund_due")
    assert rig.availability(slot).json()["free"] == 40


def test_the_shop_cancels_and_releases(locked):
    rig, slot, booker, attempt = locked
    shop = rig.shop()
    problem(shop.cancel(booker.number), 409, "state")
    shop.confirm(booker.number, attempt, "40.00", "EUR")
    problem(shop.release(booker.number), 409, "state")
    said = shop.cancel(booker.number, "ill").json()
    assert said["state"] == "cancelled"
    assert rig.availability(slot).json()["free"] == 40
    other, _ = rig.hold(slot, places(5), tariff="child")
    assert shop.release(other.number, "late").json()["state"] == "released"


def test_the_shop_exchanges_for_the_difference(locked):
    rig, slot, booker, attempt = locked
    shop = rig.shop()
    shop.confirm(booker.number, attempt, "40.00", "EUR")
    take = [{"slot": slot, "place": place, "tariff": "adult"}
            for place in places(5, 6)]
    said = problem(shop.exchange(booker.number, [{"line": 1}], take), 409,
                   "amount", "amount")
    assert said["amount"] == "20.00"
    said = shop.exchange(booker.number, [{"line": 1}], take, amount="20.00",
                         currency="EUR").json()
    assert (said["state"], said["difference"], said["total"]) == \
        ("confirmed", "20.00", "60.00")
    said = shop.exchange(booker.number, [{"line": 2}], []).json()
    assert said["difference"] == "-20.00"
    problem(booker.exchange([{"line": 3}], []), 409, "state")


def test_the_shop_holds_for_a_booker(house):
    rig, slot = house
    answer = rig.shop().hold("Bob", [{"slot": slot, "place": "Stalls-1-1",
                                      "tariff": "adult"}])
    said = answer.json()
    assert (answer.status_code, said["booker"]) == (201, "Bob")
    assert answer.headers["Location"] == f"/yoyaku-shop/orders/{said['number']}"
    assert "Set-Cookie" not in answer.headers
    booker = rig.booker()
    booker.token = said["token"]
    assert booker.order().json()["number"] == said["number"]


def test_an_order_nobody_made_is_unknown(rig):
    problem(rig.shop().order("0000000000001"), 404, "unknown")
    problem(rig.shop().confirm("0000000000001"), 404, "unknown")


# ---- 503 ----

def test_busy_means_that_nothing_was_written(house):
    rig, slot = house
    host = rig.add_host(location="YoyakuHoldWait 500ms")
    line = rig.connect(autocommit=False)
    try:
        with line.cursor() as cursor:
            cursor.execute(
                "SELECT p.place_no FROM yoyaku_slot_place p JOIN yoyaku_slot s "
                "ON s.slot_id = p.slot_id WHERE s.slot_key = %s FOR UPDATE",
                (slot,))
            said = problem(host.booker().hold(slot, places(1), "adult"), 503,
                           "busy")
        assert said["retry_after"] <= 5
        line.rollback()
        assert rig.availability(slot).json()["free"] == 40
        assert host.booker().hold(slot, places(1), "adult").status_code == 201
    finally:
        line.close()
        host.stop()
        rig.hosts.remove(host)


def test_an_error_document_does_not_take_the_place_of_a_reason(rig):
    host = rig.add_host(conf="".join(
        f'ErrorDocument {status} "another text"\n'
        for status in (400, 403, 404, 405, 406, 409, 410, 413, 415, 422, 503)))
    slot = rig.slot(pools={"Floor": 1})
    try:
        answers = [host.get("/yoyaku/slots/none"),
                   host.booker().post("/yoyaku/holds", {}),
                   host.booker().post("/yoyaku/slots", {}),
                   host.booker().ask("POST", "/yoyaku/holds", data="x"),
                   host.booker().hold(slot, area="Floor", quantity=2)]
        assert [answer.status_code for answer in answers] == \
            [404, 422, 405, 415, 409]
        for answer in answers:
            assert answer.json()["reason"]
    finally:
        host.stop()
        rig.hosts.remove(host)
