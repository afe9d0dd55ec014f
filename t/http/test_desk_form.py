# SPDX-License-Identifier: Apache-2.0
"""A page without script: forms in, 303 out."""
from urllib.parse import urlencode

import pytest

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
           "Sec-Fetch-Site": "same-origin"}

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Visitor:
    """A browser with a cookie, forms only."""

    def __init__(self, host):
        self.booker = host.booker(cookies=True)

    def send(self, path, method=None, **fields):
        query = f"?method={method}" if method else ""
        return self.booker.ask(
            "POST", f"/yoyaku{path}{query}", headers={**BROWSER, **FORM},
            allow_redirects=False,
            data=urlencode({name.replace("__", "."): value
                            for name, value in fields.items()}, doseq=True))

    def order(self):
        return self.booker.get("/yoyaku/order").json()


@pytest.fixture
def house(rig):
    slot = rig.slot({"Stalls": (2, 10), "Circle": (2, 10)},
                    areas={"Circle": "assigned"},
                    prices={"adult": "20.00", "child": "10.00"})
    return rig, slot, Visitor(rig.host)


def went(answer, where="/yoyaku/order"):
    assert answer.status_code == 303, answer.text
    assert answer.headers["Location"] == where
    assert answer.headers["Cache-Control"] == "no-store"
    return answer


def test_places_are_held_by_a_form(house):
    rig, slot, visitor = house
    answer = went(visitor.send(f"/slots/{slot}/holds",
                               places=["Stalls-1-1", "Stalls-1-2"],
                               tariff="adult", new="", reference="r"))
    token = answer.headers["Set-Cookie"].split("=")[1].split(";")[0]
    assert token not in answer.headers["Location"] + answer.text
    order = visitor.order()
    assert [line["place"] for line in order["lines"]] == \
        ["Stalls-1-1", "Stalls-1-2"]
    assert (order["total"], order["reference"]) == ("40.00", "r")


def test_a_party_is_seated_by_a_form(house):
    _, slot, visitor = house
    went(visitor.send(f"/slots/{slot}/holds", area="Circle", tariffs__adult="2",
                      tariffs__child="1", tariffs__other="0", together="on"))
    assert sorted(line["tariff"] for line in visitor.order()["lines"]) == \
        ["adult", "adult", "child"]


def test_lines_over_slots_come_by_a_form(house):
    rig, slot, visitor = house
    other = rig.slot(pools={"Floor": 5})
    went(visitor.send("/holds", **{
        "lines[0].slot": slot, "lines[0].place": "Stalls-1-1",
        "lines[0].tariff": "child", "lines[1].slot": other,
        "lines[1].area": "Floor", "lines[1].quantity": "2"}))
    assert [line["slot"] for line in visitor.order()["lines"]] == [slot, other]


def test_the_way_of_an_order_by_forms(house):
    rig, slot, visitor = house
    went(visitor.send(f"/slots/{slot}/holds", places=["Stalls-1-1",
                                                      "Stalls-1-2"],
                      tariff="adult"))
    went(visitor.send("/order", "PATCH", contact="a@b", reference=""))
    assert visitor.order()["contact"] == "a@b"
    went(visitor.send("/order/lines/1", "DELETE"))
    assert [line["line"] for line in visitor.order()["lines"]] == [2]
    went(visitor.send("/order/checkout"))
    assert visitor.order()["state"] == "locked"
    went(visitor.send("/order/reopen"))
    assert visitor.order()["state"] == "held"
    went(visitor.send("/order", "DELETE"))
    assert visitor.order()["state"] == "released"
    assert rig.availability(slot).json()["free"] == 40


def test_a_checkout_leads_to_the_shop(rig):
    host = rig.add_host(
        location="YoyakuCheckoutURL https://pay.example/start?house=1")
    slot = rig.slot({"Stalls": (1, 4)}, prices={"adult": "20.00"})
    visitor = Visitor(host)
    try:
        went(visitor.send(f"/slots/{slot}/holds", places="Stalls-1-1"))
        number = visitor.order()["number"]
        url = (f"https://pay.example/start?house=1&number={number}&attempt=1")
        went(visitor.send("/order/checkout"), url)
        told = visitor.booker.checkout()
        assert told.json()["url"] == url
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_a_refused_form_is_told_why(house):
    rig, slot, visitor = house
    rig.booker().hold(slot, ["Stalls-1-1"], "adult")
    answer = visitor.send(f"/slots/{slot}/holds", places="Stalls-1-1",
                          tariff="adult")
    assert (answer.status_code, answer.json()["reason"]) == (409, "taken")
    answer = visitor.send(f"/slots/{slot}/holds", area="Circle", quantity="x")
    assert answer.json()["field"] == "quantity"


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_only_a_form_says_its_method_in_the_query(kind, house):
    _, slot, visitor = house
    went(visitor.send(f"/slots/{slot}/holds", places="Stalls-1-1",
                      tariff="adult"))
    answer = visitor.booker.ask("POST", "/yoyaku/order?method=DELETE",
                                data="{}", headers={"Content-Type": kind})
    assert answer.status_code == 405
    assert visitor.order()["state"] == "held"


@pytest.mark.parametrize("method", ["GET", "PUT", "delete", "DELETE&x=1", ""])
def test_no_other_method_stands_in_a_query(method, house):
    _, slot, visitor = house
    went(visitor.send(f"/slots/{slot}/holds", places="Stalls-1-1",
                      tariff="adult"))
    assert visitor.send("/order", method or "").status_code == 405
    assert visitor.order()["state"] == "held"


def test_looking_never_changes(house):
    _, slot, visitor = house
    went(visitor.send(f"/slots/{slot}/holds", places="Stalls-1-1",
                      tariff="adult"))
    visitor.booker.get("/yoyaku/order?method=DELETE", headers={
        "Content-Type": "application/x-www-form-urlencoded"})
    assert visitor.order()["state"] == "held"


def test_a_form_of_another_site_is_refused(house):
    _, slot, visitor = house
    answer = visitor.booker.ask(
        "POST", f"/yoyaku/slots/{slot}/holds", data={"places": "Stalls-1-1"},
        headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.json()["reason"] == "forbidden"
