# SPDX-License-Identifier: Apache-2.0
"""Boards as a client keeps them, and as the book has them."""


def get(host, slot, since=None, **headers):
    path = f"/yoyaku/slots/{slot}/availability"
    if since:
        path += f"?since={since[0]}.{since[1]}"
    return host.get(path, headers={name.replace("_", "-"): value
                                   for name, value in headers.items()})


def name_of(document):
    """What ?since= wants."""
    return document["epoch"], document["generation"]


def content(document):
    """{section: its characters, or what a pool has left}"""
    return {section["section"]: section.get("places", section["free"])
            for section in document["sections"]}


def patched(old, document):
    """A content with what changed since put on top of it."""
    if "since" not in document:
        return content(document)
    made = dict(old)
    for section in document["sections"]:
        name = section["section"]
        if "changes" not in section:
            made[name] = section["free"]
            continue
        places = list(made[name])
        for at, state in section["changes"]:
            places[at] = state
        made[name] = "".join(places)
        assert made[name].count("0") == section["free"]
    return made


def in_book(rig, slot):
    """The same from the rows themselves."""
    row, = rig.rows("SELECT slot_id FROM yoyaku_slot WHERE slot_key=%s",
                    [slot.encode()])
    slot_id, now = row["slot_id"], rig.now_us()
    places = "".join(
        "0" if row["state"] == 1 and row["until_us"] <= now
        else str(row["state"]) for row in rig.rows(
            "SELECT state, until_us FROM yoyaku_slot_place WHERE slot_id=%s"
            " ORDER BY place_no", [slot_id]))
    made = {}
    for row in rig.rows(
            "SELECT a.name, a.mode, a.first_place, a.places, k.max-k.used AS"
            " free FROM yoyaku_area a LEFT JOIN yoyaku_lock_anchor k ON"
            " k.kind=2 AND k.owner=a.slot_id AND k.no=a.area_no"
            " WHERE a.slot_id=%s ORDER BY a.area_no", [slot_id]):
        first, count = row["first_place"], row["places"]
        made[row["name"].decode()] = (row["free"] if row["mode"] == 3
                                      else places[first:first + count])
    return made


def number_of(order_id):
    """Base32 as the module writes it."""
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    return "".join(digits[order_id >> 5 * i & 31] for i in range(12, -1, -1))
