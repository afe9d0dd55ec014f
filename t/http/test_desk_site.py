# SPDX-License-Identifier: Apache-2.0
"""Who may ask: pages of this site, origins allowed by name, no browsers."""
import pytest

OTHER = "https://tickets.example.org"
CHANGES = [("POST", "/yoyaku/holds"), ("PATCH", "/yoyaku/order"),
           ("DELETE", "/yoyaku/order"), ("POST", "/yoyaku/order/checkout"),
           ("POST", "/yoyaku/order/confirm")]


@pytest.fixture(scope="module")
def house(_house):
    """A host that allows one other origin, on the run's database."""
    host = _house.add_host(location=f"YoyakuAllowOrigin {OTHER}")
    slot = _house.slot(pools={"Floor": 1000})
    yield _house, host, slot
    host.stop()
    _house.hosts.remove(host)


def hold(host, slot, cookies=False, **headers):
    return host.booker(cookies=cookies).hold(
        slot, area="Floor", quantity=1,
        headers={name.replace("_", "-"): value
                 for name, value in headers.items()})


def is_taken(answer):
    return answer.status_code == 201


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_page_of_this_site_may_hold(site, house):
    _, host, slot = house
    assert is_taken(hold(host, slot, Sec_Fetch_Site=site))
    assert is_taken(hold(host, slot, Sec_Fetch_Site=site,
                         Origin="https://elsewhere.example"))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "x",
                                  "same-origin, cross-site", "Same-Origin"])
def test_a_page_of_another_site_may_not(site, house):
    _, host, slot = house
    answer = hold(host, slot, Sec_Fetch_Site=site)
    assert answer.status_code == 403, answer.text
    assert answer.json()["reason"] == "forbidden"
    assert answer.json()["field"] == "Sec-Fetch-Site"


@pytest.mark.parametrize("origin, host_header, may", [
    ("http://{host}", None, True),
    ("https://{host}", None, True),
    ("http://HOUSE.example", "house.example", True),
    ("http://house.example:80", "house.example", True),
    ("http://house.example", "house.example:80", True),
    ("https://house.example:443", "house.example", True),
    ("https://house.example", "house.example:443", True),
    ("https://house.example:80", "house.example", False),
    ("http://house.example:8080", "house.example", False),
    ("http://house.example", "house.example:8080", False),
    ("http://house.example.evil.example", "house.example", False),
    ("http://evil.example/house.example", "house.example", False),
    ("http://xhouse.example", "house.example", False),
    ("ftp://house.example", "house.example", False),
    ("house.example", "house.example", False),
    ("null", None, False),
    ("", None, False),
    ("http://house.example, http://house.example", "house.example", False)])
def test_without_fetch_metadata_the_origin_must_be_the_host(
        origin, host_header, may, house):
    _, host, slot = house
    headers = {"Origin": origin.format(host=f"127.0.0.1:{host.port}")}
    if host_header:
        headers["Host"] = host_header
    answer = hold(host, slot, **headers)
    assert answer.status_code == (201 if may else 403), answer.text
    if not may:
        assert answer.json()["field"] == "Origin"


def test_what_is_no_browser_says_neither(house):
    _, host, slot = house
    assert is_taken(hold(host, slot))


@pytest.mark.parametrize("method, path", CHANGES)
def test_every_change_is_guarded(method, path, house):
    _, host, _ = house
    answer = host.booker().ask(method, path, json={}, headers={
        "Sec-Fetch-Site": "cross-site"})
    assert answer.json()["reason"] == "forbidden"


def test_the_shop_is_guarded_too(house):
    _, host, _ = house
    host.shop().http.headers["Sec-Fetch-Site"] = "cross-site"
    shop = host.shop()
    shop.http.headers["Sec-Fetch-Site"] = "cross-site"
    answer = shop.confirm("0000000000001")
    assert answer.json()["reason"] == "forbidden"


def test_looking_is_for_everybody(house):
    _, host, slot = house
    for path in ("/yoyaku/slots", f"/yoyaku/slots/{slot}",
                 f"/yoyaku/slots/{slot}/availability"):
        answer = host.get(path, headers={"Sec-Fetch-Site": "cross-site",
                                         "Origin": "https://else.example"})
        assert answer.status_code == 200
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert "Origin" in answer.headers["Vary"]


# ---- an origin allowed by name ----

def test_an_allowed_origin_may_hold_without_cookies(house):
    _, host, slot = house
    answer = hold(host, slot, cookies=True, Origin=OTHER,
                  Sec_Fetch_Site="cross-site")
    assert is_taken(answer)
    assert answer.headers["Access-Control-Allow-Origin"] == OTHER
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert "Set-Cookie" not in answer.headers
    assert answer.json()["token"]


def test_a_cookie_does_not_count_from_an_allowed_origin(house):
    _, host, slot = house
    booker = host.booker(cookies=True)
    assert is_taken(booker.hold(slot, area="Floor", quantity=1))
    assert booker.order().status_code == 200
    away = {"Origin": OTHER, "Sec-Fetch-Site": "same-site"}
    for method, path in (("GET", "/yoyaku/order"), ("DELETE", "/yoyaku/order")):
        answer = booker.ask(method, path, headers=away)
        assert answer.status_code == 404, answer.text
        assert answer.headers["Access-Control-Allow-Origin"] == OTHER
    answer = booker.ask("DELETE", "/yoyaku/order", headers={
        **away, "Yoyaku-Order": booker.token})
    assert answer.json()["state"] == "released"


@pytest.mark.parametrize("origin", [OTHER + ":444", OTHER + ".evil.example",
                                    OTHER.replace("https", "http"),
                                    OTHER.upper()])
def test_only_that_origin_is_allowed(origin, house):
    _, host, slot = house
    answer = hold(host, slot, Origin=origin, Sec_Fetch_Site="cross-site")
    assert answer.status_code == 403
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_preflight_tells_what_an_allowed_origin_may(house):
    _, host, slot = house
    ask = {"Access-Control-Request-Method": "POST",
           "Access-Control-Request-Headers": "content-type, yoyaku-order"}
    for path in ("/yoyaku/holds", f"/yoyaku/slots/{slot}/holds",
                 "/yoyaku/order"):
        answer = host.booker().ask("OPTIONS", path,
                                   headers={"Origin": OTHER, **ask})
        assert (answer.status_code, answer.text) == (204, "")
        assert answer.headers["Access-Control-Allow-Origin"] == OTHER
        assert "PATCH" in answer.headers["Access-Control-Allow-Methods"]
        for name in ("Content-Type", "Idempotency-Key", "Yoyaku-Order"):
            assert name in answer.headers["Access-Control-Allow-Headers"]
        assert "Access-Control-Allow-Credentials" not in answer.headers
        answer = host.booker().ask("OPTIONS", path, headers={
            "Origin": "https://evil.example", **ask})
        assert answer.status_code == 204
        assert not [name for name in answer.headers
                    if name.startswith("Access-Control")]


def test_a_host_that_allows_nobody_speaks_of_no_origins(rig):
    slot = rig.slot(pools={"Floor": 5})
    answer = hold(rig.host, slot, Origin=OTHER, Sec_Fetch_Site="cross-site")
    assert answer.status_code == 403
    answer = rig.host.get("/yoyaku/slots", headers={"Origin": OTHER})
    assert "Origin" not in answer.headers["Vary"]


# ---- accept ----

@pytest.mark.parametrize("accept, status", [
    ("application/json", 200), ("*/*", 200), ("application/*", 200),
    ("text/html, application/json", 200), ("text/html;q=0.9, */*;q=0.1", 200),
    ("application/json;q=0.001", 200), ("application/problem+json", 200),
    ("TEXT/HTML;q=0.5,Application/JSON;Q=0.6", 200),
    ("text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", 200),
    ("text/html", 406), ("image/webp, image/*;q=0.5", 406),
    ("application/json;q=0, text/html", 406), ("*/*;q=0", 406),
    ("application/json;q=0, */*", 406)])
def test_the_weights_of_accept_are_weighed(accept, status, rig):
    answer = rig.host.get("/yoyaku/slots", headers={"Accept": accept})
    assert answer.status_code == status, answer.text
    assert status == 406 or "Accept" in answer.headers["Vary"]


def test_no_accept_is_json(rig):
    answer = rig.host.get("/yoyaku/slots", headers={"Accept": None})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"


# ---- YoyakuBooker and where it is said ----

def test_the_innermost_section_says_who_asks(rig):
    host = rig.add_host(conf="""
<Location "/yoyaku">
    YoyakuBookerRequired on
</Location>
<Location "/yoyaku/slots">
    YoyakuBooker none
</Location>
""")
    slot = rig.slot(pools={"Floor": 9})
    line = [{"slot": slot, "area": "Floor", "quantity": 1}]
    try:
        assert is_taken(host.booker("Ann").hold(lines=line))
        answer = host.booker("Ann").hold(slot, area="Floor", quantity=1)
        assert answer.status_code == 403
        assert answer.json()["field"] == "booker"
        answer = host.booker().hold(lines=line)
        assert answer.json()["reason"] == "forbidden"
        assert host.get(f"/yoyaku/slots/{slot}").status_code == 200
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_a_desk_may_live_at_any_address(rig):
    """The base is the <Location>'s, also where inner ones are, a pattern's is
    found by our own words."""
    host = rig.add_host(conf="""
<Location "/a/b">
    SetHandler yoyaku
</Location>
<Location "/a/b/holds">
    YoyakuHoldPlaces 3
</Location>
<LocationMatch "^/(de|fr)/karten">
    SetHandler yoyaku
</LocationMatch>
""")
    slot = rig.slot(pools={"Floor": 9})
    line = {"lines": [{"slot": slot, "area": "Floor", "quantity": 1}]}
    try:
        for base in ("/a/b", "/de/karten", "/fr/karten"):
            assert host.get(f"{base}/slots/{slot}").status_code == 200
            answer = host.booker().post(f"{base}/holds", line)
            assert answer.status_code == 201, answer.text
            assert answer.headers["Location"] == f"{base}/order"
            assert f"Path={base};" in answer.headers["Set-Cookie"]
    finally:
        host.stop()
        rig.hosts.remove(host)
