# SPDX-License-Identifier: Apache-2.0
"""Bad input is answered 4xx, names its field, and costs the database nothing."""
import json
import os
import re
import socket

import pytest

from servers import Httpd
from yk import Booker, Host

PROBLEM = "application/problem+json"
PLACE = {"slot": "hamlet", "place": "Stalls-1-1"}
KEY = "k" * 22


@pytest.fixture(scope="module")
def deaf(folder, build, mpm):
    """A host whose database is not there: whatever it does ask of it shows as
    an error of mod_dbd in the log."""
    host = Host(os.path.join(folder, "deaf"), build,
                "host=127.0.0.1,port=9,user=x,pass=x,dbname=x", mpm,
                location="YoyakuAllowOrigin none",
                conf="YoyakuSweepInterval 1min\nLogLevel yoyaku:debug\n",
                workers=4)
    host.start()
    yield host
    host.stop()


@pytest.fixture
def refused(deaf):
    """A function that asks for something bad; gives the problem."""
    deaf.complaints()

    def ask(path="/yoyaku/holds", status=422, reason="invalid", method="POST",
            token=None, headers=None, **body):
        answer = Booker(deaf.url).ask(method, path, token=token,
                                      headers=headers, **body)
        assert answer.status_code == status, answer.text
        assert answer.headers["Content-Type"] == PROBLEM
        assert answer.headers["Cache-Control"] == "no-store"
        said = answer.json()
        assert (said["reason"], said["status"]) == (reason, status), said
        assert said["title"]
        return said

    yield ask
    assert deaf.complaints() == [], "it went to the database"


def raw(deaf, text, shut=False):
    """Bytes as they are; gives (status, body)."""
    with socket.create_connection(("127.0.0.1", deaf.port), 30) as line:
        line.sendall(text)
        if shut:
            line.shutdown(socket.SHUT_WR)
        got = b""
        while True:
            try:
                more = line.recv(65536)
            except ConnectionResetError:
                break
            if not more:
                break
            got += more
    head, _, body = got.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else None), head, body


def test_good_input_does_go_to_the_database(deaf):
    """Else the tests below would prove nothing."""
    deaf.complaints()
    answer = Booker(deaf.url).hold(lines=[PLACE])
    assert answer.status_code == 503
    assert answer.json()["reason"] == "away"
    assert any("dbd:error" in line for line in deaf.complaints())


def test_bad_input_stands_in_the_log_at_debug_only(deaf, refused):
    read = len(deaf.read_log())
    said = refused(json={})
    assert said["field"] == "lines"
    lines = deaf.read_log()[read:].splitlines()
    assert [line for line in lines if "YK0430" in line]
    assert [line for line in lines if ":debug]" not in line] == []


# ---- the body as such ----

@pytest.mark.parametrize("text", [
    "", "{", "[]", "null", "7", '"text"', "{}x", "{'lines':[]}", '{"lines":[],}',
    '{"a":1,"a":2}', '{"lines":[NaN]}', '{"a":01}', '{"a":+1}', "\x00", "{}\x00",
    '{"a":"\\u0000"}', '{"a":"\\ud800"}', "[" * 5000, '{"a":' * 40 + "1" +
    "}" * 40, "/**/{}"])
def test_what_is_no_json_is_unreadable(text, refused):
    refused(status=400, reason="unreadable", data=text,
            headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("data", [b'{"a":"\xff"}', b'{"a":"\xc0\xaf"}',
                                  b'{"a":"\xed\xa0\x80"}', b"\xef\xbb\xbf{}"])
def test_json_that_is_no_utf8_is_unreadable(data, refused):
    refused(status=400, reason="unreadable", data=data,
            headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("data", [b"a=%ff", b"a=%00", b"a=%zz", b"a=%4"])
def test_a_form_that_is_no_utf8_is_unreadable(data, refused):
    refused(status=400, reason="unreadable", data=data, headers={
        "Content-Type": "application/x-www-form-urlencoded"})


@pytest.mark.parametrize("path", [
    "/yoyaku/holds", "/yoyaku/slots/hamlet/holds"])
def test_a_missing_body_is_unreadable(path, refused):
    refused(path, 400, "unreadable")


@pytest.mark.parametrize("kind", [
    "text/plain", "application/xml", "multipart/form-data; boundary=x",
    "application/json; charset=latin1", "application/jsonx", "x", ""])
def test_a_body_of_another_kind_is_unsupported(kind, refused):
    said = refused(status=415, reason="unsupported", data=b'{"lines":[]}',
                   headers={"Content-Type": kind})
    assert said["field"] == "Content-Type"
    assert "application/json" in said["allowed"]


def test_a_compressed_body_is_unsupported(refused):
    refused(status=415, reason="unsupported", data=b"x", headers={
        "Content-Type": "application/json", "Content-Encoding": "gzip"})


@pytest.mark.parametrize("kind", [
    "application/json", "Application/JSON", "application/json;charset=utf-8",
    'application/json; charset="UTF-8"', "application/json ; odata=x"])
def test_json_by_any_of_its_names_is_read(kind, refused):
    refused(data=b"{}", headers={"Content-Type": kind})


def test_64_kib_are_read_and_one_byte_more_is_not(refused):
    blank = json.dumps({"lines": [PLACE], "x": 1})
    kind = {"Content-Type": "application/json"}
    fits = blank + " " * (65536 - len(blank))
    assert refused(data=fits, headers=kind)["field"] == "x"
    refused(status=413, reason="too_large", data=fits + " ", headers=kind)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_megabyte_is_refused_without_being_read(chunked, deaf, refused):
    length = (b"Transfer-Encoding: chunked" if chunked else
              b"Content-Length: 1048576")
    head = (b"POST /yoyaku/holds HTTP/1.1\r\nHost: x\r\n" + length +
            b"\r\nContent-Type: application/json\r\n\r\n")
    # a first chunk of 66,000 bytes, and the rest of the megabyte never comes
    body = b"101d0\r\n" + b" " * 66000 if chunked else b""
    status, answer, said = raw(deaf, head + body, shut=True)
    assert status == 413
    assert b"connection: close" in answer.lower()
    assert json.loads(said)["reason"] == "too_large"


@pytest.mark.parametrize("line", [
    "GET /yoyaku/", "OPTIONS /yoyaku/holds", "PUT /yoyaku/order",
    "POST /yoyaku/x", "HEAD /yoyaku/"])
def test_a_body_nobody_asked_for_is_not_read(line, deaf, refused):
    """The connection ends with the answer, though the megabyte never comes."""
    _, head, _ = raw(deaf, f"{line} HTTP/1.1\r\nHost: x\r\n"
                     "Content-Length: 1048576\r\n\r\n".encode())
    assert b"connection: close" in head.lower()
    _, head, _ = raw(deaf, f"{line} HTTP/1.1\r\nHost: x\r\n"
                     "Content-Length: 0\r\n\r\n".encode(), shut=True)
    assert b"connection: close" not in head.lower()


def test_a_chunked_body_is_read_like_another(refused):
    said = refused(data=(part for part in (b'{"li', b'nes":', b'7}')),
                   headers={"Content-Type": "application/json"})
    assert said["field"] == "lines"


def test_a_chunked_body_without_a_byte_is_a_missing_one(refused):
    refused(status=400, reason="unreadable", data=(part for part in ()),
            headers={"Content-Type": "application/json"})


def test_a_length_that_promises_too_much_is_unreadable(deaf, refused):
    status, _, said = raw(
        deaf, b"POST /yoyaku/holds HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n"
        b'Content-Type: application/json\r\n\r\n{"lines":[', shut=True)
    assert status == 400
    assert b'"reason":"unreadable"' in said


def test_what_stands_behind_a_short_length_is_another_request(deaf, refused):
    status, _, said = raw(
        deaf, b"POST /yoyaku/holds HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
        b'Content-Type: application/json\r\n\r\n{}{"lines":[]}', shut=True)
    assert status == 422
    assert b'"field":"lines"' in said.split(b"HTTP/1.1")[0]


@pytest.mark.parametrize("length", ["-1", "1e3", "99999999999999999999", "0x10"])
def test_a_length_that_is_none_is_refused(length, deaf, refused):
    status, _, _ = raw(
        deaf, f"POST /yoyaku/holds HTTP/1.1\r\nHost: x\r\nContent-Length: {length}"
        "\r\nContent-Type: application/json\r\n\r\n{}".encode(), shut=True)
    assert status in (400, 413)


def test_who_expects_100_continue_is_refused_before_he_sends(deaf, refused):
    status, head, _ = raw(
        deaf, b"POST /yoyaku/holds HTTP/1.1\r\nHost: x\r\nContent-Length: 70000"
        b"\r\nExpect: 100-continue\r\nContent-Type: application/json\r\n\r\n",
        shut=True)
    assert status == 413
    assert b"100 Continue" not in head


# ---- members of a hold ----

def line(**change):
    made = {**PLACE, **change}
    return {"lines": [{k: v for k, v in made.items() if v is not ...}]}


@pytest.mark.parametrize("body, field", [
    ({}, "lines"),
    ({"lines": []}, "lines"),
    ({"lines": {}}, "lines"),
    ({"lines": None}, "lines"),
    ({"lines": "Stalls-1-1"}, "lines"),
    ({"lines": [PLACE["place"]]}, "lines[0]"),
    ({"lines": [None]}, "lines[0]"),
    ({"lines": [{}]}, "lines[0].slot"),
    ({"lines": [PLACE] * 2}, "lines[1]"),
    ({"lines": [{**PLACE, "place": str(i)} for i in range(257)]}, "lines"),
    (line(slot=...), "lines[0].slot"),
    (line(slot=None), "lines[0].slot"),
    (line(slot=7), "lines[0].slot"),
    (line(slot=""), "lines[0].slot"),
    (line(slot="a/b"), "lines[0].slot"),
    (line(slot="x" * 65), "lines[0].slot"),
    (line(place=...), "lines[0].area"),
    (line(place=None), "lines[0].place"),
    (line(place=7), "lines[0].place"),
    (line(place=""), "lines[0].place"),
    (line(place="x" * 65), "lines[0].place"),
    (line(place=["Stalls-1-1"]), "lines[0].place"),
    (line(area="Stalls"), "lines[0].area"),
    (line(quantity=2), "lines[0].quantity"),
    (line(tariff=""), "lines[0].tariff"),
    (line(tariff=None), "lines[0].tariff"),
    (line(tariff="x" * 65), "lines[0].tariff"),
    (line(tarif="adult"), "lines[0].tarif"),
    (line(place=..., area="Stalls"), "lines[0].quantity"),
    (line(place=..., area="Stalls", quantity=0), "lines[0].quantity"),
    (line(place=..., area="Stalls", quantity=-1), "lines[0].quantity"),
    (line(place=..., area="Stalls", quantity=257), "lines[0].quantity"),
    (line(place=..., area="Stalls", quantity=10**30), "lines[0].quantity"),
    (line(place=..., area="Stalls", quantity=1.5), "lines[0].quantity"),
    (line(place=..., area="Stalls", quantity="4"), "lines[0].quantity"),
    (line(place=..., area="Stalls", quantity=True), "lines[0].quantity"),
    (line(place=..., area="Stalls", quantity=None), "lines[0].quantity"),
    (line(place=..., area="x" * 251, quantity=1), "lines[0].area"),
    (line(place=..., area="Stalls", tariffs={}), "lines[0].tariffs"),
    (line(place=..., area="Stalls", tariffs=[1]), "lines[0].tariffs"),
    (line(place=..., area="Stalls", tariffs={"adult": 0}),
     "lines[0].tariffs.adult"),
    (line(place=..., area="Stalls", tariffs={"adult": "2"}),
     "lines[0].tariffs.adult"),
    ({"lines": [PLACE], "together": "yes"}, "together"),
    ({"lines": [PLACE], "together": 1}, "together"),
    ({"lines": [PLACE], "confirm": None}, "confirm"),
    ({"lines": [PLACE], "new": 0}, "new"),
    ({"lines": [PLACE], "reference": 7}, "reference"),
    ({"lines": [PLACE], "reference": "x" * 251}, "reference"),
    ({"lines": [PLACE], "reference": None}, "reference"),
    ({"lines": [PLACE], "token": "x"}, "token"),
])
def test_a_hold_names_the_member_that_is_wrong(body, field, refused):
    said = refused(json=body)
    assert said["field"] == field, said
    assert said.get("allowed") or said.get("detail")


@pytest.mark.parametrize("body, field", [
    ({}, None),
    ({"places": []}, "places"),
    ({"places": "A-1"}, "places"),
    ({"places": [7]}, "places[0]"),
    ({"places": ["a", "b", "a"]}, "places[2]"),
    ({"places": ["a"], "area": "Stalls"}, None),
    ({"places": ["a"], "quantity": 2}, "quantity"),
    ({"area": "Stalls"}, "quantity"),
    ({"quantity": 3}, None),
    ({"lines": [{"slot": "other", "place": "a"}]}, "lines[0].slot"),
])
def test_the_short_form_names_the_member_that_is_wrong(body, field, refused):
    said = refused("/yoyaku/slots/hamlet/holds", json=body)
    if field:
        assert said["field"] == field, said


# ---- headers ----

@pytest.mark.parametrize("key", ["k" * 21, "k" * 256, "with blank" + "k" * 20,
                                 "ü" * 30, ""])
def test_a_key_nobody_signs_is_22_to_255_visible_characters(key, refused):
    said = refused(json=line(), headers={
        "Idempotency-Key": key.encode("utf-8")})
    assert said["field"] == "Idempotency-Key"
    assert "255" in said["allowed"]


@pytest.mark.parametrize("token", ["x", "A" * 26, "A" * 28,
                                   "A" * 25 + "==", "A" * 5000])
@pytest.mark.parametrize("method, path, body", [
    ("GET", "/yoyaku/order", None), ("DELETE", "/yoyaku/order", None),
    ("POST", "/yoyaku/order/checkout", None), ("POST", "/yoyaku/holds", line())])
def test_a_token_that_can_be_none_names_no_order(token, method, path, body,
                                                 refused):
    refused(path, 404, "unknown", method, token=token, json=body)


def test_without_a_token_there_is_no_order(refused):
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/checkout"),
                         ("POST", "/reopen"), ("POST", "/confirm"),
                         ("DELETE", "/lines/1")):
        said = refused(f"/yoyaku/order{path}", 404, "unknown", method)
        assert said["field"] == "Yoyaku-Order"


def test_a_booker_longer_than_250_bytes_is_refused(refused):
    said = refused(json=line(), headers={"X-Booker": "b" * 251})
    assert said["field"] == "booker"


# ---- paths, methods, queries ----

@pytest.mark.parametrize("path", [
    "/yoyaku/x", "/yoyaku/slots/", "/yoyaku/slots/a%20b",
    "/yoyaku/slots/" + "x" * 65, "/yoyaku/order/", "/yoyaku/order/lines/0",
    "/yoyaku/order/lines/-1", "/yoyaku/order/lines/1x",
    "/yoyaku/order/lines/99999999999", "/yoyaku/slots/hamlet/holds/x"])
def test_there_is_nothing_at_another_address(path, refused):
    refused(path, 404, "unknown", "GET")


@pytest.mark.parametrize("method, path, allowed", [
    ("POST", "/yoyaku/slots", "GET, HEAD, OPTIONS"),
    ("DELETE", "/yoyaku/slots/hamlet", "GET, HEAD, OPTIONS"),
    ("GET", "/yoyaku/holds", "POST, OPTIONS"),
    ("PUT", "/yoyaku/order", "GET, HEAD, PATCH, DELETE, OPTIONS"),
    ("GET", "/yoyaku/order/checkout", "POST, OPTIONS"),
    ("BREW", "/yoyaku/order", "GET, HEAD, PATCH, DELETE, OPTIONS")])
def test_another_method_is_told_which_ones_there_are(method, path, allowed,
                                                     deaf, refused):
    refused(path, 405, "method", method)
    answer = Booker(deaf.url).ask(method, path)
    assert answer.headers["Allow"] == allowed


@pytest.mark.parametrize("query, field", [
    ("state=sold", "state"), ("after=a/b", "after"), ("resource=" + "x" * 65,
                                                      "resource"),
    ("order=asc", "order"), ("state=open&state=over", "state")])
def test_a_list_is_not_asked_for_what_there_is_not(query, field, refused):
    said = refused(f"/yoyaku/slots?{query}", method="GET")
    assert said["field"].startswith(field)


@pytest.mark.parametrize("since", ["x", "1", ".1", "abc.", "ABC.1", "a.b"])
def test_a_board_is_not_asked_since_nonsense(since, refused):
    said = refused(f"/yoyaku/slots/hamlet/availability?since={since}",
                   method="GET")
    assert said["field"] == "since"


@pytest.mark.parametrize("accept", ["text/html", "image/png", "text/*",
                                    "application/json;q=0"])
def test_who_takes_no_json_gets_none(accept, refused):
    refused("/yoyaku/slots", 406, "not_acceptable", "GET",
            headers={"Accept": accept})


# ---- the shop's bodies ----

def test_a_shop_hold_says_for_whom(deaf):
    shop = deaf.shop()
    for body, field in (({"lines": [PLACE]}, "booker"),
                        ({"lines": [PLACE], "booker": None}, "booker"),
                        ({"lines": [PLACE], "booker": "b" * 251}, "booker"),
                        ({"booker": "Bo"}, "lines")):
        answer = shop.ask("POST", "/holds", body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["field"] == field


@pytest.mark.parametrize("body, field", [
    ({}, "attempt"),
    ({"attempt": "1", "amount": "1.00", "currency": "EUR"}, "attempt"),
    ({"attempt": -1, "amount": "1.00", "currency": "EUR"}, "attempt"),
    ({"attempt": 1, "currency": "EUR"}, "amount"),
    ({"attempt": 1, "amount": 1.00, "currency": "EUR"}, "amount"),
    ({"attempt": 1, "amount": "1.001", "currency": "EUR"}, "amount"),
    ({"attempt": 1, "amount": "-1.00", "currency": "EUR"}, "amount"),
    ({"attempt": 1, "amount": "1.00", "currency": "eur"}, "currency"),
    ({"attempt": 1, "amount": "1.00", "currency": "EUR", "paid": 1}, "paid"),
])
def test_a_payment_names_the_member_that_is_wrong(body, field, deaf):
    answer = deaf.shop().ask("POST", "/orders/0000000000001/confirm", body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == field


def test_an_order_number_that_can_be_none_names_no_order(deaf):
    deaf.complaints()
    for number in ("x", "1", "U" * 13, "Z" * 13, "0" * 14):
        answer = deaf.shop().order(number)
        assert answer.status_code == 404, answer.text
    assert deaf.complaints() == []


def test_the_shop_is_nobody_without_a_name(deaf):
    assert deaf.shop(user="").order("0000000000001").status_code == 401


# ---- what only the book can refuse: 4xx, and nothing is held ----

@pytest.fixture
def house(rig):
    return rig, rig.slot({"Stalls": (2, 5), "Circle": (1, 4)},
                         areas={"Circle": "assigned"})


@pytest.mark.parametrize("body, status, reason, field", [
    ({"places": ["Nowhere-1-1"]}, 422, "unknown_place", "places[0]"),
    ({"places": ["Stalls-1-1", "Balcony-9-9"]}, 422, "unknown_place",
     "places[1]"),
    ({"places": ["stalls-1-1"]}, 422, "unknown_place", "places[0]"),
    ({"area": "Nowhere", "quantity": 1}, 422, "unknown_area", "area"),
    ({"area": "Stalls", "quantity": 1}, 422, "invalid", "area"),
    ({"places": ["Circle-1-1"]}, 422, "invalid", "places[0]"),
    ({"places": ["Stalls-1-1"], "tariff": "adult"}, 422, "tariff_not_offered",
     None),
])
def test_the_book_refuses_what_it_does_not_have(body, status, reason, field,
                                                house):
    rig, slot = house
    answer = rig.booker().hold(slot, **body)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason), \
        answer.text
    if field:
        assert answer.json()["field"].startswith(field)
    assert rig.availability(slot).json()["free"] == 14


def test_a_place_of_another_hall_is_unknown(house):
    rig, slot = house
    other = rig.slot({"Pit": (1, 3)})
    answer = rig.booker().hold(lines=[{"slot": slot, "place": "Stalls-1-1"},
                                      {"slot": other, "place": "Stalls-1-1"}])
    assert answer.status_code == 422
    assert answer.json()["reason"] == "unknown_place"
    assert answer.json()["field"].startswith("lines[1]")
    assert rig.availability(slot).json()["free"] == 14


def test_an_unknown_slot_is_not_there(house):
    rig, _ = house
    for answer in (rig.booker().hold("no-such-slot", ["Stalls-1-1"]),
                   rig.host.get("/yoyaku/slots/no-such-slot"),
                   rig.host.get("/yoyaku/slots/no-such-slot/plan"),
                   rig.host.get("/yoyaku/slots/no-such-slot/availability")):
        assert (answer.status_code, answer.json()["reason"]) == \
            (404, "unknown"), answer.text


def test_strange_names_stay_what_they_are(rig):
    """250 bytes, quotes, trailing blanks, combining marks, emoji."""
    slot = rig.slot(pools={"Floor": 50})
    booker = rig.booker("Zoë 'O\"B\\ien' %00;--  ".encode().decode("latin1"))
    texts = ["x" * 250, "Zoe\u0308", "Zoë", "🎭🎟️", "a ", "a", "'; DROP TABLE",
             "\\", "\t<b>&amp;"]
    assert booker.hold(slot, area="Floor", quantity=1).status_code == 201
    for text in texts:
        answer = booker.patch(reference=text, contact=text, data=text * 16)
        assert answer.status_code == 200, answer.text
        said = booker.order().json()
        assert (said["reference"], said["contact"], said["data"]) == \
            (text, text, text * 16)
        found = rig.shop().orders(reference=text).json()["orders"]
        assert [order["number"] for order in found] == [booker.number]
    assert re.fullmatch(r"[0-9A-Z]{13}", booker.number)
    assert booker.patch(data="x" * 4097).json()["field"] == "data"
