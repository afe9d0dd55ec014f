# SPDX-License-Identifier: Apache-2.0
"""What everybody may see: the list, a slot, its plan and its availability."""
import gzip
import itertools

import pytest

from servers import until


@pytest.fixture
def house(rig):
    return rig, rig.slot({"Stalls": (2, 5), "Circle": (1, 4), "Loge": (1, 3)},
                         areas={"Circle": "assigned", "Loge": "closed"},
                         prices={"adult": "20.00"})


def board(rig, slot, **headers):
    return rig.host.get(f"/yoyaku/slots/{slot}/availability",
                        headers={name.replace("_", "-"): value
                                 for name, value in headers.items()})


def test_a_board_has_a_character_for_every_place(house):
    rig, slot = house
    said = board(rig, slot).json()
    assert [(section["section"], section["mode"], section["free"],
             section["places"]) for section in said["sections"]] == [
        ("Stalls", "placed", 10, "0" * 10),
        ("Circle", "assigned", 4, "0000"),
        ("Loge", "closed", 0, "333")]
    assert (said["slot"], said["free"]) == (slot, 14)
    assert len(said["plan"]) == 64 and said["epoch"] and said["generation"]


def test_a_board_shows_what_is_held_and_booked(house):
    rig, slot = house
    rig.hold(slot, ["Stalls-1-2"])
    booker, _ = rig.hold(slot, ["Stalls-2-5"])
    attempt = booker.checkout().json()["attempt"]
    rig.shop().confirm(booker.number, attempt, "20.00", "EUR")
    rig.hold(slot, area="Circle", quantity=2)
    said = board(rig, slot).json()
    assert said["sections"][0]["places"] == "0100000002"
    assert (said["sections"][0]["free"], said["sections"][1]["free"]) == (8, 2)
    assert sorted(said["sections"][1]["places"]) == ["0", "0", "1", "1"]
    rig.advance(601)
    # a board estimates the database's clock from its last reading
    until(lambda: board(rig, slot).json()["sections"][0]["places"] ==
          "0000000002", 5, "the holds' end on the board")


def test_a_board_of_pools_counts(rig):
    slot = rig.slot(pools={"Floor": 10, "Bar": 5})
    rig.hold(slot, area="Bar", quantity=2)
    said = board(rig, slot).json()
    assert said["plan"] is None and said["free"] == 13
    assert said["sections"] == [
        {"section": "Floor", "mode": "pooled", "free": 10},
        {"section": "Bar", "mode": "pooled", "free": 3}]


# ---- tags ----

@pytest.mark.parametrize("path", ["", "/{slot}", "/{slot}/availability",
                                  "/{slot}/plan"])
def test_what_is_known_is_not_sent_again(path, house):
    rig, slot = house
    path = "/yoyaku/slots" + path.format(slot=slot)
    plain = {"Accept-Encoding": "identity"}
    first = rig.host.get(path, headers=plain)
    tag = first.headers["ETag"]
    assert tag.startswith('"') and tag.endswith('"')
    assert first.headers["Cache-Control"].startswith("public, max-age=")
    bare = tag.strip('"')
    for known in (tag, f"W/{tag}", f'"x", {tag}', "*", f'"{bare}-gz"',
                  f'"{bare}-gzip"', f'W/"{bare}-br"'):
        answer = rig.host.get(path, headers={**plain, "If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b""), known
        assert answer.headers["ETag"] == tag
        assert answer.headers["Vary"] == first.headers["Vary"]
        assert answer.headers["Cache-Control"] == \
            first.headers["Cache-Control"]
    for other in ('"x"', bare, f'"{bare[::-1]}"', f'"{bare}x"', f'"{bare}-zz"', '""'):
        answer = rig.host.get(path, headers={**plain, "If-None-Match": other})
        assert answer.status_code == 200, other
    for name in ("Accept", "Accept-Encoding"):
        assert name in first.headers["Vary"]


@pytest.mark.parametrize("path", ["", "/{slot}", "/{slot}/availability",
                                  "/{slot}/plan"])
def test_a_head_is_a_get_without_its_body(path, house):
    rig, slot = house
    path = "/yoyaku/slots" + path.format(slot=slot)
    plain = {"Accept-Encoding": "identity"}
    got = rig.host.get(path, headers=plain)
    head = rig.booker().ask("HEAD", path, headers=plain)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("ETag", "Content-Type", "Cache-Control", "Vary"):
        assert head.headers[name] == got.headers[name]
    assert int(head.headers["Content-Length"]) == len(got.content)


def test_a_tag_is_of_the_content(house):
    """Every change changes it, and what was before brings it back."""
    rig, slot = house
    empty = board(rig, slot).headers["ETag"]
    booker, _ = rig.hold(slot, ["Stalls-1-1"])
    one = board(rig, slot).headers["ETag"]
    booker.release()
    assert board(rig, slot).headers["ETag"] == empty
    other, _ = rig.hold(slot, ["Stalls-1-2"])
    two = board(rig, slot).headers["ETag"]
    other.release()
    rig.hold(slot, area="Circle", quantity=1)
    three = board(rig, slot).headers["ETag"]
    assert len({empty, one, two, three}) == 4
    pool = rig.slot(pools={"Floor": 9})
    tags = []
    for _ in range(4):
        tags.append(board(rig, pool).headers["ETag"])
        rig.hold(pool, area="Floor", quantity=1)
    assert len(set(tags)) == 4


def test_the_tag_is_the_same_on_every_host(house):
    rig, slot = house
    rig.hold(slot, ["Stalls-1-1"])
    host = rig.add_host()
    try:
        theirs = host.get(f"/yoyaku/slots/{slot}/availability")
        ours = board(rig, slot)
        assert theirs.headers["ETag"] == ours.headers["ETag"]
        assert theirs.json()["epoch"] != ours.json()["epoch"]
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_a_board_is_compressed_by_us_alone(rig):
    """mod_deflate would change the tag; -gz is ours."""
    slot = rig.slot({"Stalls": (20, 40)})
    host = rig.add_host(conf='SetOutputFilter DEFLATE\n')
    path = f"/yoyaku/slots/{slot}/availability"
    try:
        plain = host.get(path, headers={"Accept-Encoding": "identity"})
        packed = host.get(path, headers={"Accept-Encoding": "gzip"}, stream=True)
        raw = packed.raw.read(decode_content=False)
        assert packed.headers["Content-Encoding"] == "gzip"
        tag = plain.headers["ETag"].strip('"')
        assert packed.headers["ETag"] == f'"{tag}-gz"'
        assert len(raw) < 400
        told = gzip.decompress(raw)
        assert b'"places":"' + b"0" * 800 in told
        again = host.get(path, headers={"Accept-Encoding": "gzip",
                                        "If-None-Match": f'"{tag}-gz"'})
        assert again.status_code == 304
        said = plain.json()
        part = host.get(f"{path}?since={said['epoch']}.{said['generation']}",
                        headers={"Accept-Encoding": "gzip"})
        assert "Content-Encoding" not in part.headers
        assert "-gzip" not in part.headers["ETag"]
        none = host.get(path, headers={"Accept-Encoding": "gzip;q=0, br"})
        assert "Content-Encoding" not in none.headers
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_a_tag_that_mod_deflate_made_is_known(house):
    """A section of the plan is compressed by whoever is there."""
    rig, slot = house
    host = rig.add_host(conf='SetOutputFilter DEFLATE\n')
    path = f"/yoyaku/slots/{slot}/plan?section=Stalls"
    try:
        first = host.get(path)
        assert first.headers["ETag"].endswith('-gzip"')
        again = host.get(path, headers={"If-None-Match": first.headers["ETag"]})
        assert again.status_code == 304
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_looking_ignores_the_order_in_hand(house):
    rig, slot = house
    booker = rig.booker(cookies=True)
    booker.hold(slot, ["Stalls-1-1"])
    for path in ("", f"/{slot}", f"/{slot}/availability", f"/{slot}/plan"):
        answer = booker.get("/yoyaku/slots" + path)
        assert answer.headers["Cache-Control"].startswith("public")
        assert "Set-Cookie" not in answer.headers
        assert "Cookie" not in answer.headers["Vary"]


def test_behind_a_password_it_is_nobody_elses(rig):
    answer = rig.booker().http.get(f"{rig.url}/yoyaku/slots",
                                   auth=("shop", "shop"))
    assert answer.headers["Cache-Control"].startswith("private")


# ---- the drawing ----

def test_the_plan_is_for_ever(house):
    rig, slot = house
    answer = rig.host.get(f"/yoyaku/slots/{slot}/plan")
    assert answer.headers["Cache-Control"] == \
        "public, max-age=31536000, immutable"
    said = answer.json()
    assert said["hash"] == board(rig, slot).json()["plan"]
    guids = [place["guid"] for section in said["sections"]
             for row in section["rows"] for place in row["places"]]
    assert len(guids) == 17 and guids[0] == "Stalls-1-1"
    shown = board(rig, slot).json()["sections"]
    assert [section["places"] for section in said["sections"]] == \
        [len(section["places"]) for section in shown]


def test_a_slot_of_pools_has_no_plan(rig):
    slot = rig.slot(pools={"Floor": 3})
    answer = rig.host.get(f"/yoyaku/slots/{slot}/plan")
    assert (answer.status_code, answer.json()["reason"]) == (404, "unknown")


# ---- slots ----

def test_a_slot_says_all_that_is_for_sale(rig):
    slot = rig.slot({"Stalls": (1, 4), "Circle": (1, 4)},
                    areas={"Circle": "assigned"}, resource="play", series="s1")
    rig.price(slot, "adult", "20.00")
    rig.price(slot, "child", "9.50", area="Circle", quota=2)
    rig.limit("booker", f"slot:{slot}", "places", 4)
    rig.hold(slot, ["Stalls-1-1"], tariff="adult")
    said = rig.host.get(f"/yoyaku/slots/{slot}").json()
    assert (said["slot"], said["resource"], said["series"], said["state"]) == \
        (slot, "play", "s1", "open")
    assert (said["free"], said["places"]) == (7, 8)
    assert said["areas"][0] == {"area": "Stalls", "mode": "placed", "free": 3,
                                "places": 4}
    assert {"tariff": "child", "grade": None, "area": "Circle",
            "price": "9.50", "currency": "EUR", "quota": 2} in said["prices"]
    assert {"per": "booker", "over": "slot", "key": slot, "count": "places",
            "max": 4} in said["limits"]


def test_a_new_price_is_seen_soon(rig):
    """A slot's document is made once in YoyakuBoardAge."""
    slot = rig.slot(pools={"Floor": 3}, prices={"adult": "20.00"})
    path = f"/yoyaku/slots/{slot}"
    assert rig.host.get(path).json()["prices"][0]["price"] == "20.00"
    rig.price(slot, "adult", "25.00")
    until(lambda: rig.host.get(path).json()["prices"][0]["price"] == "25.00",
          3, "the new price")


def test_the_list_is_walked_page_by_page(rig):
    series = f"walk-{next(rig.numbers)}"
    keys = []
    for i in range(103):
        keys.append(rig.slot(
            key=f"{series}-{i:03}", pools={"Floor": 3}, series=series,
            opened=i % 2 == 0, starts=f"2039-01-{1 + i // 10:02}T20:00Z"))
    path, seen, pages = f"/yoyaku/slots?series={series}", [], 0
    for pages in itertools.count(1):
        said = rig.host.get(path).json()
        seen += [slot["slot"] for slot in said["slots"]]
        path = said["next"]
        if path is None:
            break
        assert path.startswith("/yoyaku/slots?") and f"series={series}" in path
    assert (seen, pages) == (keys, 2)
    said = rig.host.get(f"/yoyaku/slots?series={series}&state=open").json()
    assert [slot["slot"] for slot in said["slots"]] == keys[::2]
    said = rig.host.get(f"/yoyaku/slots?series={series}&resource=none").json()
    assert said == {"slots": [], "next": None}


def test_an_empty_filter_is_none(rig):
    slot = rig.slot(pools={"Floor": 3}, starts="2001-01-01T20:00Z")
    said = rig.host.get("/yoyaku/slots?resource=&series=&state=&after=").json()
    assert said["slots"][0]["slot"] == slot
    assert said["slots"][0]["state"] == "over"


def test_the_index_says_where_things_are(rig):
    for path in ("/yoyaku", "/yoyaku/"):
        said = rig.host.get(path).json()
        assert said["slots"] == "/yoyaku/slots"
        assert rig.host.get(said["slots"]).status_code == 200


def test_since_another_epoch_answers_the_whole_board(house):
    rig, slot = house
    said = board(rig, slot).json()
    again = rig.host.get(f"/yoyaku/slots/{slot}/availability?since="
                         f"0123456789abcdef.{said['generation']}")
    assert again.status_code == 200
    assert again.json()["sections"] == said["sections"]


# ---- the sweep ----

def test_the_sweep_settles_what_is_past_its_end(house):
    rig, slot = house
    for place in ("Stalls-1-1", "Stalls-1-2"):
        assert rig.hold(slot, [place])[1].status_code == 201
    rig.advance(601)
    until(lambda: not rig.rows(
        "SELECT o.order_id FROM yoyaku_order o JOIN yoyaku_booking b "
        "USING (order_id) JOIN yoyaku_slot s USING (slot_id) "
        "WHERE s.slot_key = %s AND o.state IN (1, 2)", (slot,)), 15,
        "the sweep has settled both")
