# SPDX-License-Identifier: Apache-2.0
"""Nobody but the shop turns a priced order into a confirmed one, whatever a
booker has in hand; and a token is read nowhere."""
import base64
import os
import pathlib

import pytest

from servers import PAGES
from yk.exact import crowd

PRICED = {"adult": "20.00"}


@pytest.fixture
def priced(rig):
    """A priced order, checked out: (rig, slot, booker, what is to be paid)."""
    slot = rig.slot({"Stalls": (1, 8)}, prices=PRICED)
    booker, answer = rig.hold(slot, ["Stalls-1-1"], tariff="adult", name="Ann")
    assert answer.status_code == 201
    return rig, slot, booker, {
        "attempt": booker.checkout().json()["attempt"], "amount": "20.00",
        "currency": "EUR", "payment": "forged"}


def basic(name, password):
    word = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {word}"}


def test_no_way_of_a_booker_leads_to_confirmed(priced):
    rig, slot, booker, paid = priced
    rig.announce("AH01617")  # a wrong password is told by httpd
    number = booker.number
    shop_path = f"/yoyaku-shop/orders/{number}/confirm"
    tries = {
        "confirm": lambda: booker.post("/yoyaku/order/confirm", {}),
        "with the payment": lambda: booker.post("/yoyaku/order/confirm", paid),
        "for nothing": lambda: booker.post("/yoyaku/order/confirm",
                                           {"amount": "0.00"}),
        "in the query": lambda: booker.post(
            "/yoyaku/order/confirm?amount=20.00&currency=EUR&attempt=1", {}),
        "by a form": lambda: booker.ask(
            "POST", "/yoyaku/order/confirm", data={"attempt": "1"}),
        "a state": lambda: booker.patch(state="confirmed"),
        "by method": lambda: booker.ask(
            "POST", "/yoyaku/order?method=CONFIRM", data={}),
        "another method": lambda: booker.ask("PUT", "/yoyaku/order/confirm"),
        "the shop's door": lambda: booker.post(shop_path, paid),
        "a wrong password": lambda: booker.post(
            shop_path, paid, headers=basic("shop", "guess")),
        "the shop's name": lambda: booker.post(
            shop_path, paid, headers={"X-Remote-User": "shop",
                                      "X-Booker": "shop"}),
        "around the corner": lambda: booker.post(
            f"/yoyaku/../yoyaku-shop/orders/{number}/confirm", paid),
        "below the desk": lambda: booker.post(
            f"/yoyaku/orders/{number}/confirm", paid),
        "a doubled slash": lambda: booker.post("/" + shop_path, paid),
        "path of another": lambda: booker.post(
            f"/yoyaku/yoyaku-shop/orders/{number}/confirm", paid),
        "a new hold": lambda: booker.hold(
            slot, ["Stalls-1-2"], "adult", confirm=True, new=True),
    }
    for name, attempt in tries.items():
        answer = attempt()
        assert 400 <= answer.status_code < 500, (name, answer.text)
        assert booker.order().json()["state"] == "locked", name
    assert rig.value("SELECT COUNT(*) FROM yoyaku_slot_place t JOIN yoyaku_slot"
                     " s USING (slot_id) WHERE s.slot_key = %s AND t.state = 2",
                     (slot,)) == 0
    # and the shop can: what was refused was right
    said = rig.shop().confirm(number, paid["attempt"], "20.00", "EUR")
    assert said.json()["state"] == "confirmed"


def test_a_total_of_nought_cannot_be_borrowed(rig):
    """Confirmed for nothing, an order never gets hold of what costs."""
    free, dear = rig.slot({"Stalls": (1, 4)}), \
        rig.slot({"Stalls": (1, 4)}, prices=PRICED)
    costs = {"slot": dear, "place": "Stalls-1-1", "tariff": "adult"}
    mixed = rig.booker()
    answer = mixed.hold(lines=[{"slot": free, "place": "Stalls-1-1"}, costs])
    if answer.status_code == 201:  # else they may not stand in one order at all
        assert mixed.confirm().status_code == 403
        assert mixed.remove(2).status_code == 200
        assert mixed.confirm().json()["state"] == "confirmed"
    else:
        assert answer.json()["reason"] == "invalid"
    done, _ = rig.hold(free, ["Stalls-1-2"], confirm=True)
    assert done.order().json()["state"] == "confirmed"
    for answer in (done.hold(lines=[costs]),
                   done.exchange([{"line": 1}], [costs]),
                   done.exchange([], [costs])):
        assert answer.status_code in (403, 409, 422), answer.text
    late, _ = rig.hold(free, ["Stalls-1-3"])
    late.exchange([{"line": 1}], [costs])
    assert late.confirm().status_code in (403, 409)
    assert rig.availability(dear).json()["sections"][0]["places"].count("2") \
        == 0


def test_a_price_raised_after_the_hold_is_the_old_one_for_it(priced):
    rig, slot, booker, paid = priced
    rig.price(slot, "adult", "0.00")
    assert booker.confirm().status_code == 403
    assert booker.order().json()["total"] == "20.00"
    late, _ = rig.hold(slot, ["Stalls-1-5"], tariff="adult")
    assert late.confirm().json()["state"] == "confirmed"


def test_confirmed_at_the_very_moment_by_booker_and_shop_is_the_shops(priced):
    rig, _, booker, paid = priced

    def deed(i):
        if i % 4 == 0:
            return rig.shop().confirm(booker.number, paid["attempt"], "20.00",
                                      "EUR", "p").status_code
        one = rig.booker("Ann")
        one.token = booker.token
        return one.post("/yoyaku/order/confirm", {}).status_code

    told = crowd(16, deed)
    assert [told[i] for i in range(0, 16, 4)] == [200] * 4
    # afterwards it is confirmed, and saying so again is no confirming
    assert set(told[1:4] + told[5:8]) <= {403, 200}
    assert rig.shop().order(booker.number).json()["payment"] == "p"


NOTED = PAGES + """
LogLevel debug yoyaku:trace8 dbd:trace8
"""


def test_a_token_is_read_in_no_page_no_log_and_no_table(rig):
    """Journeys at LogLevel debug (httpd itself writes every header at trace4, which
    is its own affair), successful and refused, by header and
    cookie; then every page of status is read, while a hold is under way too."""
    slot = rig.slot({"Stalls": (2, 8)}, prices=PRICED)
    host = rig.add_host(conf=NOTED)
    tokens, seen = set(), {}
    try:
        for cookies in (False, True):
            booker = host.booker(cookies=cookies)
            for seat in (1, 2):
                answer = booker.hold(slot, [f"Stalls-{1 + cookies}-{seat}"],
                                     "adult", key=f"token-key-{slot}-{cookies}-{seat}")
                assert answer.status_code in (200, 201), answer.text
            tokens.add(booker.token)
            booker.hold(slot, ["Stalls-1-1"], "adult")
            booker.hold(slot, ["nowhere"])
            booker.patch(reference=f"seek-{slot}")
            booker.ask("POST", "/yoyaku/holds", data="{broken")
            booker.remove(1)
            booker.exchange([{"line": 9}], [])
            booker.checkout()
            booker.confirm()
            booker.release()
            booker.order()
            stranger = host.booker()
            stranger.token = "B" * 21 + "Q"
            tokens.add(stranger.token)
            assert stranger.order().status_code == 404
        for path in ("/yoyaku-status", "/yoyaku-status?json",
                     "/yoyaku-status?auto", "/yoyaku-metrics",
                     "/yoyaku-health", "/server-status",
                     "/server-status?auto", "/yoyaku/slots",
                     f"/yoyaku/slots/{slot}", f"/yoyaku/slots/{slot}/plan",
                     f"/yoyaku/slots/{slot}/availability"):
            answer = host.get(path)
            assert answer.status_code == 200, path
            seen[path] = answer.text + str(answer.headers)
        for table in [next(iter(row.values())) for row in
                      rig.rows("SHOW TABLES")]:
            seen[table] = str(rig.rows(f"SELECT * FROM {table}"))
    finally:
        host.stop()
        rig.hosts.remove(host)
    for path in pathlib.Path(host.folder).rglob("*"):
        if path.is_file():
            seen[str(path)] = path.read_bytes().decode("latin1")
    # what is there is found: in a table, and in the log of requests
    assert f"seek-{slot}" in seen["yoyaku_order"]
    assert any(f"/yoyaku/slots/{slot}/holds" in text
               for name, text in seen.items() if name.endswith("access.log"))
    assert any(os.path.basename(name) == "error.log" and ":debug]" in text
               for name, text in seen.items())
    for where, text in seen.items():
        for token in tokens:
            assert token not in text, f"a token stands in {where}"
