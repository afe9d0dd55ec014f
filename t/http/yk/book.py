# SPDX-License-Identifier: Apache-2.0
"""Does the book agree with itself? Looked at in one snapshot.

A place row says who owns the place, a line says what an order has of it, an
anchor how much is used, the journal what was done. Each says the same in its
own words; here every pair of them is compared.
"""
import collections
import json

import pymysql

FREE, HELD, BOOKED, NOT_FOR_SALE = range(4)
ORDER_HELD, ORDER_LOCKED, ORDER_CONFIRMED = 1, 2, 3
ALIVE = (ORDER_HELD, ORDER_LOCKED, ORDER_CONFIRMED)
ASSIGNED, POOLED = 2, 3
ANCHOR_AREA, ANCHOR_QUOTA = 2, 3
NO_PLACE = 4294967295

CLOCK = "SELECT CAST(1000000 * UNIX_TIMESTAMP(SYSDATE(6)) AS SIGNED) AS now_us"


class Snapshot:
    """Everything about some slots, as of one moment."""

    def __init__(self, line, keys=None):
        self.line = line
        with line.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL "
                           "REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        self.now = self.rows(CLOCK)[0]["now_us"]
        slots = self.rows("SELECT slot_id, slot_key FROM yoyaku_slot")
        self.slots = {row["slot_id"]: row["slot_key"].decode()
                      for row in slots
                      if keys is None or row["slot_key"].decode() in keys}
        self.places = {(row["slot_id"], row["place_no"]): row
                       for row in self.of_slots("yoyaku_slot_place")}
        self.areas = self.of_slots("yoyaku_area")
        self.prices = self.of_slots("yoyaku_price")
        self.lines = self.of_slots("yoyaku_booking")
        self.journal = self.of_slots("yoyaku_journal")
        self.anchors = {(row["kind"], row["owner"], row["no"]): row
                        for row in self.of_slots("yoyaku_lock_anchor", "owner")
                        if row["kind"] in (ANCHOR_AREA, ANCHOR_QUOTA)}
        self.orders = self._orders()
        with line.cursor() as cursor:
            cursor.execute("ROLLBACK")

    def rows(self, sql, args=()):
        with self.line.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(sql, args)
            return list(cursor.fetchall())

    def of_slots(self, table, column="slot_id"):
        if not self.slots:
            return []
        return self.rows(f"SELECT * FROM {table} WHERE {column} IN %s",
                         (list(self.slots),))

    def _orders(self):
        ids = {row["order_id"] for row in self.lines}
        ids |= {row["order_id"] for row in self.places.values()}
        ids = sorted(ids - {0})
        found = {}
        for start in range(0, len(ids), 1000):
            for row in self.rows(
                    "SELECT order_id, state, until_us, version FROM "
                    "yoyaku_order WHERE order_id IN %s",
                    (ids[start:start + 1000],)):
                found[row["order_id"]] = row
        return found

    def where(self, slot_id, place_no):
        return f"{self.slots[slot_id]} place {place_no}"


def faults(rig, slots=None):
    """Sentences about what does not agree; [] when all does."""
    line = rig.connect()
    try:
        snap = Snapshot(line, None if slots is None else set(slots))
    finally:
        line.close()
    wrong = []
    for look in (_places, _lines, _counts, _maps, _journal):
        wrong += look(snap)
    return wrong


def _places(snap):
    """Each taken place belongs to an alive order's live line."""
    live = {(row["slot_id"], row["place_no"], row["order_id"])
            for row in snap.lines if row["live"]}
    for (slot, no), row in snap.places.items():
        where, order_id = snap.where(slot, no), row["order_id"]
        if row["state"] in (FREE, NOT_FOR_SALE):
            if order_id or row["until_us"]:
                yield f"{where} is not taken but names order {order_id}"
            continue
        order = snap.orders.get(order_id)
        if order is None:
            yield f"{where} is taken by order {order_id}, which is not there"
            continue
        if (slot, no, order_id) not in live:
            yield f"{where} is taken by order {order_id} without a live line"
        fits = ((ORDER_HELD, ORDER_LOCKED) if row["state"] == HELD
                else (ORDER_CONFIRMED,))
        if order["state"] not in fits:
            yield (f"{where} has state {row['state']}, its order "
                   f"{order['state']}")
        until = order["until_us"] if row["state"] == HELD else 0
        if row["until_us"] != until:
            yield f"{where} ends {row['until_us']}, its order {until}"


def _lines(snap):
    """Live lines are of alive orders and have their places."""
    owners = collections.defaultdict(list)
    for row in snap.lines:
        if not row["live"]:
            continue
        order = snap.orders.get(row["order_id"])
        what = f"order {row['order_id']} line {row['line']}"
        if order is None:
            yield f"{what} has no order"
            continue
        if order["state"] not in ALIVE:
            yield f"{what} is live, its order {order['state']}"
            continue
        if row["place_no"] == NO_PLACE:
            continue
        in_time = (order["state"] == ORDER_CONFIRMED or
                   order["until_us"] > snap.now)
        if not in_time:
            continue
        owners[row["slot_id"], row["place_no"]].append(row["order_id"])
        place = snap.places.get((row["slot_id"], row["place_no"]))
        if place is None or place["order_id"] != row["order_id"]:
            yield (f"{what} has not got "
                   f"{snap.where(row['slot_id'], row['place_no'])}")
    for (slot, no), ids in owners.items():
        if len(ids) > 1:
            yield f"{snap.where(slot, no)} is sold {len(ids)} times: {ids}"


def _counts(snap):
    """Pools and quotas have used what the live lines say."""
    used = collections.Counter()
    for row in snap.lines:
        if row["live"]:
            if row["place_no"] == NO_PLACE:
                used[ANCHOR_AREA, row["slot_id"], row["area_no"]] += \
                    row["quantity"]
            if row["price_no"]:
                used[ANCHOR_QUOTA, row["slot_id"], row["price_no"]] += \
                    row["quantity"]
    bounds = {(ANCHOR_AREA, row["slot_id"], row["area_no"]): row["max"]
              for row in snap.areas if row["mode"] == POOLED}
    bounds.update({(ANCHOR_QUOTA, row["slot_id"], row["price_no"]):
                   row["quota"] for row in snap.prices if row["counted"]})
    for key, bound in bounds.items():
        what = (f"{snap.slots[key[1]]} "
                f"{'pool' if key[0] == ANCHOR_AREA else 'quota'} {key[2]}")
        anchor = snap.anchors.get(key)
        if anchor is None:
            yield f"{what} has no anchor"
        elif anchor["used"] != used[key]:
            yield (f"{what} has used {anchor['used']}, its live lines "
                   f"{used[key]}")
        elif 0 <= bound < used[key]:
            yield f"{what} has used {used[key]} of {bound}"


def _maps(snap):
    """An assigned area's map says of each place what its row says."""
    for area in snap.areas:
        if area["mode"] != ASSIGNED:
            continue
        slot = area["slot_id"]
        anchor = snap.anchors.get((ANCHOR_AREA, slot, area["area_no"]))
        if anchor is None or anchor["map"] is None:
            yield f"{snap.slots[slot]} area {area['area_no']} has no map"
            continue
        bits = anchor["map"]
        for i in range(area["places"]):
            no = area["first_place"] + i
            free = bool(bits[i // 8] >> (i % 8) & 1)
            state = snap.places[slot, no]["state"]
            if free != (state == FREE):
                yield (f"{snap.where(slot, no)} has state {state}, its map "
                       f"says {'free' if free else 'gone'}")


def _journal(snap):
    """Replayed, the journal gives the places and the pools as they are."""
    last, moved = {}, collections.Counter()
    for row in snap.journal:
        change = json.loads(row["change"])
        for no, state, version in change.get("places", []):
            key = row["slot_id"], no
            if key not in last or version > last[key][1]:
                last[key] = state, version
        for kind, no, delta, *_ in change.get("counts", []):
            moved[kind, row["slot_id"], no] += delta
    for key, (state, version) in last.items():
        row = snap.places[key]
        if (row["state"], row["version"]) != (state, version):
            yield (f"{snap.where(*key)} has state {row['state']} version "
                   f"{row['version']}, the journal {state} version {version}")
    for key, row in snap.places.items():
        if row["state"] in (HELD, BOOKED) and key not in last:
            yield f"{snap.where(*key)} was taken behind the journal's back"
    for area in snap.areas:
        key = ANCHOR_AREA, area["slot_id"], area["area_no"]
        anchor = snap.anchors.get(key)
        if area["mode"] == POOLED and anchor and \
                anchor["used"] != moved[key]:
            yield (f"{snap.slots[key[1]]} pool {key[2]} has used "
                   f"{anchor['used']}, the journal says {moved[key]}")
