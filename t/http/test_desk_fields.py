# SPDX-License-Identifier: Apache-2.0
"""Every field of every body, given every wrong value: 422 that names it, and no
database is asked. (The host's database is not there: 503 would tell.)"""
import copy
import json

import pytest
from servers import free_port

LINE = {"slot": "s-1", "place": "p-1", "tariff": "adult"}
PARTY = {"slot": "s-1", "area": "Stalls", "quantity": 2}
SPLIT = {"slot": "s-1", "area": "Stalls", "tariffs": {"adult": 1, "child": 1}}
HOLD = {"lines": [LINE, PARTY, SPLIT], "together": True, "confirm": False,
        "new": True, "reference": "r"}
# (who, method, path, a body that is right)
BODIES = {
    "hold": ("booker", "POST", "/yoyaku/holds", HOLD),
    "short": ("booker", "POST", "/yoyaku/slots/s-1/holds",
              {"places": ["p-1", "p-2"], "tariff": "adult",
               "reference": "r"}),
    "party": ("booker", "POST", "/yoyaku/slots/s-1/holds",
              {"area": "Stalls", "quantity": 4, "tariff": "adult",
               "together": False}),
    "exchange": ("booker", "POST", "/yoyaku/order/exchange",
                 {"give": [{"line": 1, "quantity": 1}],
                  "take": {"lines": [LINE, PARTY]}}),
    "patch": ("booker", "PATCH", "/yoyaku/order",
              {"reference": "r", "contact": "c", "data": "d",
               "holders": [{"line": 1, "holder": "Ann"}]}),
    "confirm": ("shop", "POST", "/yoyaku-shop/orders/0000000000001/confirm",
                {"attempt": 1, "amount": "1.00", "currency": "EUR",
                 "payment": "p"}),
    "cancel": ("shop", "POST", "/yoyaku-shop/orders/0000000000001/cancel",
               {"reason": "ill"}),
    "release": ("shop", "POST", "/yoyaku-shop/orders/0000000000001/release",
                {"reason": "ill"}),
    "shop exchange": ("shop", "POST",
                      "/yoyaku-shop/orders/0000000000001/exchange",
                      {"give": [{"line": 1}], "take": {"lines": [LINE]},
                       "amount": "1.00", "currency": "EUR", "reason": "r"}),
    "shop hold": ("shop", "POST", "/yoyaku-shop/holds",
                  {"booker": "Ann", "lines": [LINE, PARTY]}),
}
# None of them is right anywhere; {} and [] are not for the few that are empty.
WRONG = [None, {}, {"x": 1}, [], [[]], -1, 0, 1.5, 10**40, -10**40, 1e300,
         "\ud800", "x" * 5000, "a\x00b"]
OTHER = {str: [True, 7], bool: ["yes", 1, "true"], int: ["1", True, 2**31],
         list: ["x", True, 7], dict: ["x", True, 7]}


def leaves(body, path=()):
    """Every value of it, by its path, the whole first."""
    if path:
        yield path
    if isinstance(body, dict):
        for key in body:
            yield from leaves(body[key], (*path, key))
    elif isinstance(body, list):
        for i in range(len(body)):
            yield from leaves(body[i], (*path, i))


def changed(body, path, value):
    made = copy.deepcopy(body)
    at = made
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return made


def value_at(body, path):
    for step in path:
        body = body[step]
    return body


@pytest.fixture(scope="module")
def deaf(_house):
    host = _house.add_host(params=_house.params(port=free_port()))
    host.announce(r"dbd", r"YK0\d\d\d")
    yield host
    host.stop()
    _house.hosts.remove(host)


@pytest.fixture(scope="module")
def send(deaf):
    """A function: (status, what was said) of a body at its place."""
    people = {"booker": deaf.booker(), "shop": deaf.shop()}
    people["booker"].token = "A" * 26 + "Q"

    def ask(name, text):
        who, method, path, _ = BODIES[name]
        if who == "shop":
            http, head = people[who].http, {}
        else:
            http = people[who].http
            head = {"Yoyaku-Order": people[who].token} if "order" in path \
                else {}
        answer = http.request(method, deaf.url + path, data=text, headers={
            **head, "Content-Type": "application/json"}, timeout=60)
        return answer.status_code, answer.json()
    return ask


@pytest.mark.parametrize("name", BODIES)
def test_what_is_right_goes_to_the_database(name, send):
    """Else the rest would prove nothing."""
    status, said = send(name, json.dumps(BODIES[name][3]))
    assert (status, said["reason"]) == (503, "away"), said


@pytest.mark.parametrize("name", BODIES)
def test_every_wrong_value_is_named(name, send):
    body = BODIES[name][3]
    wrong = []
    for path in leaves(body):
        right = value_at(body, path)
        kind = type(right)
        for value in WRONG + OTHER[kind]:
            if _may_be(kind, path, value):
                continue
            status, said = send(name, json.dumps(changed(body, path, value)))
            if status not in (400, 422) or (status == 422 and not said.get(
                    "field")):
                wrong.append((path, str(value)[:20], status, said["reason"]))
    assert not wrong, wrong[:20]


def _may_be(kind, path, value):
    """Values of the lists above that are right where they stand."""
    last = path[-1]
    if last == "tariffs":
        return value == {"x": 1}
    if kind is str and isinstance(value, str):
        return False
    if kind is int and value == 0:
        return last in ("attempt",)
    if kind is int and value == 2**31:
        return last in ("attempt", "line")
    if kind is list and value == []:
        return last in ("give", "holders")
    return False


NEEDED = {("hold", "lines"), ("hold", "slot"), ("hold", "quantity"),
          ("hold", "area"), ("short", "places"), ("party", "area"),
          ("party", "quantity"), ("exchange", "slot"), ("exchange", "line"),
          ("exchange", "area"), ("exchange", "quantity"), ("exchange", "lines"),
          ("patch", "line"), ("patch", "holder"), ("confirm", "attempt"),
          ("confirm", "amount"), ("shop exchange", "line"),
          ("shop exchange", "slot"), ("shop exchange", "lines"),
          ("shop exchange", "place"), ("exchange", "place"),
          ("hold", "place"), ("shop hold", "place"), ("shop hold", "slot"),
          ("shop hold", "area"), ("shop hold", "quantity"),
          ("shop hold", "lines"), ("shop hold", "booker"), ("hold", "tariffs"),
          ("confirm", "currency"), ("shop exchange", "currency")}


@pytest.mark.parametrize("name", BODIES)
def test_every_field_that_is_missing_is_named(name, send):
    body, wrong = BODIES[name][3], []
    for path in leaves(body):
        if not isinstance(path[-1], str):
            continue
        less = copy.deepcopy(body)
        del value_at(less, path[:-1])[path[-1]]
        status, said = send(name, json.dumps(less))
        # the quantity of a line given may be left out: all of it
        needed = (name, path[-1]) in NEEDED and path[0] != "give" or \
            path[-1] == "line"
        if needed != (status == 422 and "field" in said):
            wrong.append((path, status, said))
    assert not wrong, wrong


@pytest.mark.parametrize("name", BODIES)
def test_a_field_nobody_knows_and_one_that_comes_twice_are_named(name, send):
    body = BODIES[name][3]
    status, said = send(name, json.dumps({**body, "extra": 1}))
    assert (status, said["field"]) == (422, "extra")
    for member in body:
        text = json.dumps(body)[:-1] + f', "{member}": ' + \
            json.dumps(body[member]) + "}"
        status, said = send(name, text)
        assert status == 400 and said["reason"] == "unreadable", (member, said)


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_object_is_refused(name, send):
    if name not in ("cancel", "release"):  # these may say nothing
        status, said = send(name, "")
        assert (status, said["reason"]) == (400, "unreadable")
    for text in ("null", "[]", "7", '"x"', "{", "{}x", "\x00", "{'a':1}",
                 '{"a":1,}', "[" * 60000, '{"a":' * 8000, "NaN"):
        status, said = send(name, text)
        assert status in (400, 413, 422), (text[:20], said)
