# SPDX-License-Identifier: Apache-2.0
"""The order in hand: header and cookie, keys that make a POST happen once, and
tokens that stand nowhere they could be read."""
import os
import pathlib
import re

import pytest

KEY = "0123456789abcdefghijklmn"


@pytest.fixture
def house(rig):
    return rig, rig.slot({"Stalls": (4, 10)}, prices={"adult": "20.00"})


def places(*numbers):
    return [f"Stalls-1-{number}" for number in numbers]


# ---- cookie and header ----

def test_the_cookie_is_for_this_site_alone(house):
    rig, slot = house
    _, answer = rig.hold(slot, places(1))
    cookie = answer.headers["Set-Cookie"]
    token = answer.json()["token"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{27}", token)
    assert cookie == (f"yoyaku_order={token}; Path=/yoyaku; HttpOnly; "
                      "SameSite=Lax")


def test_the_cookie_is_secure_where_the_site_is(rig, house):
    _, slot = house
    host = rig.add_host(conf="ServerName https://house.example")
    try:
        answer = host.booker().hold(slot, places(1))
        assert answer.headers["Set-Cookie"].endswith("; Secure")
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_a_cookie_is_as_good_as_a_header(house):
    rig, slot = house
    booker = rig.booker(cookies=True)
    assert booker.hold(slot, places(1)).status_code == 201
    again = booker.hold(slot, places(2))
    assert again.status_code == 200, again.text
    assert "token" not in again.json() and "Set-Cookie" not in again.headers
    assert len(booker.order().json()["lines"]) == 2
    assert booker.remove(1).status_code == 200
    assert booker.release().json()["state"] == "released"


def test_the_header_wins_over_the_cookie(house):
    rig, slot = house
    one, two = rig.booker(), rig.booker(cookies=True)
    one.hold(slot, places(1))
    two.hold(slot, places(2))
    answer = two.get("/yoyaku/order", headers={"Yoyaku-Order": one.token})
    assert answer.json()["number"] == one.number
    assert two.order().json()["number"] == two.number
    answer = two.get("/yoyaku/order", headers={"Yoyaku-Order": "nonsense"})
    assert answer.status_code == 404


def test_the_cookie_is_found_among_others(house):
    rig, slot = house
    booker, _ = rig.hold(slot, places(1))
    for text in ("a=1; yoyaku_order={}; b=2", "yoyaku_order={};a=1",
                 "xyoyaku_order=AAAAAAAAAAAAAAAAAAAAAAAAAAA; yoyaku_order={}",
                 "yoyaku_order=old; yoyaku_order={}"):
        answer = rig.host.get("/yoyaku/order", headers={
            "Cookie": text.format(booker.token)})
        assert answer.json().get("number") == booker.number, text


def test_a_cookie_whose_order_has_ended_counts_as_absent(house):
    rig, slot = house
    booker = rig.booker(cookies=True)
    first = booker.hold(slot, places(1)).json()
    booker.release()
    assert booker.order().json()["state"] == "released"
    answer = booker.hold(slot, places(1))
    assert answer.status_code == 201
    assert answer.json()["number"] != first["number"]
    assert answer.json()["token"] in answer.headers["Set-Cookie"]


def test_a_header_whose_order_has_ended_is_told_so(house):
    rig, slot = house
    booker, _ = rig.hold(slot, places(1))
    booker.release()
    answer = booker.hold(slot, places(2))
    assert (answer.status_code, answer.json()["reason"]) == (409, "state")
    other, _ = rig.hold(slot, places(3))
    rig.advance(601)
    answer = other.hold(slot, places(4))
    assert (answer.status_code, answer.json()["reason"]) == (410, "expired")
    assert answer.json()["number"] == other.number


def test_new_begins_an_order_of_its_own(house):
    rig, slot = house
    booker = rig.booker(cookies=True)
    first = booker.hold(slot, places(1)).json()
    second = booker.hold(slot, places(2), new=True)
    assert second.status_code == 201
    assert second.json()["number"] != first["number"]


def test_a_token_nobody_has_names_no_order(house):
    rig, slot = house
    booker = rig.booker()
    booker.token = "A" * 26 + "Q"
    assert booker.order().status_code == 404
    assert booker.hold(slot, places(1)).status_code == 404
    assert rig.availability(slot).json()["free"] == 40


# ---- idempotency ----

def test_a_hold_repeated_with_its_key_happens_once(house):
    rig, slot = house
    first = rig.booker().hold(slot, places(1, 2), key=KEY)
    again = rig.booker().hold(slot, places(1, 2), key=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    for name in ("number", "token", "lines", "total"):
        assert again.json()[name] == first.json()[name]
    assert again.headers["Set-Cookie"] == first.headers["Set-Cookie"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert rig.availability(slot).json()["free"] == 38


def test_a_token_that_came_meanwhile_does_not_make_it_another_hold(house):
    rig, slot = house
    booker = rig.booker(cookies=True)
    first = booker.hold(slot, places(1), key=KEY)
    again = booker.hold(slot, places(1), key=KEY)
    assert again.json()["number"] == first.json()["number"]
    assert len(booker.order().json()["lines"]) == 1


def test_a_key_used_for_something_else_is_refused(house):
    rig, slot = house
    rig.booker().hold(slot, places(1), key=KEY)
    answer = rig.booker().hold(slot, places(2), key=KEY)
    assert (answer.status_code, answer.json()["reason"]) == (422, "key_reused")
    assert rig.availability(slot).json()["free"] == 39


def test_bookers_do_not_meet_in_their_keys(house):
    rig, slot = house
    one = rig.booker("Ann").hold(slot, places(1), key="1")
    two = rig.booker("Bob").hold(slot, places(2), key="1")
    assert (one.status_code, two.status_code) == (201, 201)
    again = rig.booker("Ann").hold(slot, places(1), key="1")
    assert again.json()["number"] == one.json()["number"]


def test_orders_do_not_meet_in_their_keys(house):
    rig, slot = house
    one, _ = rig.hold(slot, places(1))
    two, _ = rig.hold(slot, places(2))
    for booker in (one, two, one, two):
        answer = booker.checkout(key=KEY)
        assert (answer.status_code, answer.json()["attempt"]) == (200, 1)
        assert answer.json()["number"] == booker.number
    assert one.reopen(key=KEY).json()["state"] == "held"
    # the first checkout again: what it answered, though the order is held
    assert one.checkout(key=KEY).status_code == 200
    assert one.order().json()["state"] == "held"


def test_a_refusal_is_decided_again(house):
    rig, slot = house
    holder, _ = rig.hold(slot, places(1))
    answer = rig.booker().hold(slot, places(1), key=KEY)
    assert answer.json()["reason"] == "taken"
    holder.release()
    assert rig.booker().hold(slot, places(1), key=KEY).status_code == 201


def test_the_shop_repeats_itself_once(house):
    rig, slot = house
    booker, _ = rig.hold(slot, places(1))
    attempt = booker.checkout().json()["attempt"]
    answers = [rig.shop().confirm(booker.number, attempt, "20.00", "EUR",
                                  key="k1").json() for _ in range(3)]
    assert [answer["state"] for answer in answers] == ["confirmed"] * 3
    # another till is another user: its key is another one
    answer = rig.shop("till").cancel(booker.number, key="k1")
    assert answer.json()["state"] == "cancelled"


# ---- tokens are secrets ----

def test_a_token_stands_in_no_log_and_no_status(rig, house):
    """A whole journey at LogLevel debug, with the notes in the access log."""
    _, slot = house
    folder = os.path.join(rig.folder, "secrets")
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, "notes.log")
    host = rig.add_host(conf=f"""
LogLevel debug yoyaku:trace8
CustomLog "{log}" "%r %>s %{{yoyaku-outcome}}n %{{yoyaku-order}}n \
%{{yoyaku-slot}}n %{{yoyaku-store-ms}}n %{{Location}}o %q"
""")
    try:
        booker = host.booker()
        assert booker.hold(slot, places(1, 2)).status_code == 201
        token = booker.token
        booker.hold(slot, places(3))
        booker.hold(slot, ["Nowhere-1-1"])
        booker.hold(slot, [])
        booker.patch(reference="ref", holders=[{"line": 1, "holder": "Ann"}])
        booker.order()
        booker.remove(1)
        booker.checkout()
        booker.reopen()
        form = booker.ask("POST", "/yoyaku/order?method=PATCH",
                          data={"contact": "a@b"}, allow_redirects=False)
        assert form.status_code == 303
        status = host.get("/server-status").text
        number = booker.number
        booker.release()
        rows = rig.rows("SELECT * FROM yoyaku_order") + \
            rig.rows("SELECT * FROM yoyaku_journal")
    finally:
        host.stop()
        rig.hosts.remove(host)
    read = {name: pathlib.Path(path).read_text(errors="replace")
            for name, path in (("errors", host.error_log),
                               ("access", host.access_log), ("notes", log))}
    assert "YK0430" in read["errors"] and number in read["notes"]
    for name, text in (*read.items(), ("status", status), ("book", str(rows))):
        assert token not in text, f"the token stands in {name}"
    for line in read["notes"].splitlines():
        if "/yoyaku/" in line and "server-status" not in line:
            assert re.search(r" (held|ok|unknown_place|invalid) ", line), line


def test_the_notes_say_what_came_of_it(rig, house):
    _, slot = house
    log = os.path.join(rig.folder, "outcome.log")
    host = rig.add_host(conf=f"""
CustomLog "{log}" "%{{yoyaku-outcome}}n|%{{yoyaku-order}}n|%{{yoyaku-slot}}n|\
%{{yoyaku-store-ms}}n"
""")
    try:
        one = host.booker()
        one.hold(slot, places(1))
        host.booker().hold(slot, places(1))
        host.booker().hold(slot, [])
    finally:
        host.stop()
        rig.hosts.remove(host)
    # a line is written once its answer has gone out, maybe after the next one
    notes = {line.split("|")[0]: line.split("|") for line in
             pathlib.Path(log).read_text().splitlines()}
    held, taken, bad = (notes[key] for key in ("held", "taken", "invalid"))
    assert held[:3] == ["held", one.number, slot] and 0 < float(held[3]) < 9999
    assert taken[:3] == ["taken", "-", slot] and float(taken[3]) > 0
    assert bad == ["invalid", "-", slot, "-"]
