# SPDX-License-Identifier: Apache-2.0
"""Texts of every kind, everywhere a text can stand: they stay what they are, and
those that differ stay different."""
import itertools

import pytest

# Pairs that a collation or a careless comparison would call the same.
ALIKE = [("a", "a "), ("a", "A"), ("é", "e\u0301"), ("🎭", "🎪"), ("ß", "ss"),
         ("a'b", "a''b"), ("a\\b", "a\\\\b"), ("ı", "i"), ("K", "\u212a"),
         ("%", "_"), (" a", "a"), ("a\u200b", "a"), ("0", "00"), ("1e1", "10")]
TEXTS = ["x" * 250, "é" * 125, "🎭" * 62, 'quote " and \' and `', "tab\tin it",
         "back\\slash \\' \\\" \\0", "-- ; DROP TABLE yoyaku_order; /*",
         "trailing  ", "  leading", "Zoe\u0308 Zo\u0308e\u0308", "\u202eabc",
         "${jndi:x} %s%n {{7*7}} <script>", "👩‍👩‍👧‍👦 🏳️‍🌈", "\u00a0", "'"]
numbers = itertools.count(1)


def header(text):
    """A name as a client puts its bytes into a header."""
    return text.encode().decode("latin1")


def csv(rows):
    """Rows of (section, row, place, guid, grade) as a drawing."""
    def quoted(text):
        return '"' + text.replace('"', '""') + '"'
    lines = ["section,row,place,x,y,grade,guid"]
    for i, (section, row, place, guid, grade) in enumerate(rows):
        lines.append(",".join([quoted(section), quoted(row), quoted(place),
                               str(10 * i), "10", quoted(grade),
                               quoted(guid)]))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def alike():
    return [text for pair in ALIKE for text in pair]


def test_places_whose_names_look_alike_are_different_places(rig, alike):
    names = sorted(set(alike))
    slot = rig.slot(hall=rig.hall(csv=csv(
        [("Stalls", "1", str(i), name, "A") for i, name in enumerate(names)])))
    for name in names:
        answer = rig.hold(slot, [name])[1]
        assert answer.status_code == 201, (name, answer.text)
        assert answer.json()["lines"][0]["place"] == name
    assert rig.availability(slot).json()["free"] == 0
    for name in names:
        said = rig.hold(slot, [name])[1].json()
        assert said["places"] == [{"slot": slot, "place": name}]


@pytest.mark.parametrize("one, other", ALIKE)
def test_sections_and_tariffs_that_look_alike_are_different(one, other, rig):
    slot = rig.slot(hall=rig.hall(csv=csv(
        [(one, "1", "1", "p1", one), (other, "1", "1", "p2", other)])),
        areas={one: "pooled:1", other: "pooled:2"}
        if not {"=", ":"} & set(one + other) else {})
    rig.price(slot, one, "10.00", area=one)
    rig.price(slot, other, "20.00", area=other)
    for area, total, free in ((one, "10.00", 1), (other, "20.00", 2)):
        for _ in range(free):
            answer = rig.hold(slot, area=area, quantity=1, tariff=area)[1]
            assert answer.status_code == 201, answer.text
            line = answer.json()["lines"][0]
            assert (line["area"], line["tariff"], line["price"]) == \
                (area, area, total)
        refused = rig.hold(slot, area=area, quantity=1, tariff=area)[1].json()
        assert (refused["reason"], refused["area"]) == ("sold_out", area)
    wrong = rig.hold(slot, area=one, quantity=1, tariff=other)[1].json()
    assert wrong["reason"] == "tariff_not_offered", wrong


@pytest.mark.parametrize("one, other", [
    pair for pair in ALIKE if not any(text != text.strip() for text in pair)])
def test_bookers_who_look_alike_are_different_people(one, other, rig):
    """A limit, a repeated key and the shop's search know them apart."""
    slot = rig.slot(pools={"Floor": 9})
    rig.limit("booker", f"slot:{slot}", "places", 1)
    key, held = f"text-{next(numbers)}", {}
    for name in (one, other):
        booker = rig.booker(header(name))
        answer = booker.hold(slot, area="Floor", quantity=1, key=key)
        assert answer.status_code == 201, answer.text
        held[name] = answer.json()["number"]
        again = rig.booker(header(name)).hold(slot, area="Floor", quantity=1)
        assert again.json()["reason"] == "limit"
    assert held[one] != held[other]
    for name, number in held.items():
        found = [order for order in
                 rig.shop().orders(booker=name).json()["orders"]
                 if order["lines"][0]["slot"] == slot]
        assert [order["number"] for order in found] == [number]
        assert found[0]["booker"] == name


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_stays_what_it_is_wherever_it_stands(text, rig):
    name = text.replace("\t", " ")  # names of a drawing have no control bytes
    guid = name.encode()[:60].decode(errors="ignore") + str(next(numbers))
    section = name.encode()[:200].decode(errors="ignore")
    slot = rig.slot(hall=rig.hall(csv=csv(
        [(section, "r", "s", guid, "g"), ("Other", "r", "s", "o1", "g")])))
    booker, answer = rig.hold(slot, [guid], reference=text)
    assert answer.status_code == 201, answer.text
    line = answer.json()["lines"][0]
    assert (line["place"], line["section"]) == (guid, section)
    patched = booker.patch(reference=text, contact=text,
                           data=(text * 200)[:1000],
                           holders=[{"line": 1, "holder": text}])
    assert patched.status_code == 200, patched.text
    for said in (booker.order().json(), rig.shop().order(booker.number).json()):
        assert said["reference"] == said["contact"] == text
        assert said["data"] == (text * 200)[:1000]
        assert said["lines"][0]["holder"] == text
    plan = rig.host.get(f"/yoyaku/slots/{slot}/plan").json()
    assert section in [part["section"] for part in plan["sections"]]
    found = rig.shop().orders(contact=text).json()["orders"]
    assert booker.number in [order["number"] for order in found]


def test_keys_that_look_alike_are_different_keys(rig):
    slot = rig.slot(pools={"Floor": 9})
    base = f"text-key-{slot}-abcdefgh"
    seen = {rig.hold(slot, area="Floor", quantity=1, key=key)[1].json()["number"]
            for key in (base, base.upper(), base + ".", base + "'",
                        base + "\\")}
    assert len(seen) == 5


def test_slots_whose_keys_differ_in_case_are_different(rig):
    n = next(numbers)
    one, other = rig.slot(key=f"Case-{n}", pools={"Floor": 1}), \
        rig.slot(key=f"case-{n}", pools={"Floor": 2})
    for slot, free in ((one, 1), (other, 2)):
        assert rig.availability(slot).json()["free"] == free
        assert rig.hold(slot, area="Floor", quantity=free)[1].status_code == 201


def test_251_bytes_and_4097_are_too_many_and_250_and_4096_are_not(rig):
    """Bytes are counted, not characters."""
    slot = rig.slot(pools={"Floor": 9})
    booker, _ = rig.hold(slot, area="Floor", quantity=1)
    for member, most in (("reference", 250), ("contact", 250), ("data", 4096)):
        for text in ("x" * most, "é" * (most // 2),
                     "🎭" * (most // 4) + "x" * (most % 4)):
            assert booker.patch(**{member: text}).status_code == 200
            assert booker.order().json()[member] == text
            said = booker.patch(**{member: text + "x"})
            assert (said.status_code, said.json()["field"]) == (422, member)
            assert booker.order().json()[member] == text
    assert rig.booker("x" * 250).hold(
        slot, area="Floor", quantity=1).status_code == 201
