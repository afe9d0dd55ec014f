# SPDX-License-Identifier: Apache-2.0
"""What the databases of the arms say: of each order, of what is free, and
whether they agree with themselves."""
import json

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base32
STATES = {1: "held", 2: "locked", 3: "confirmed", 4: "released", 5: "expired",
          6: "cancelled", 7: "refund_due"}
HAVE = ("held", "locked", "confirmed")


def number(order_id):
    """As the module writes an order's id."""
    return "".join(DIGITS[order_id >> (5 * i) & 31]
                   for i in range(12, -1, -1))


class Order:
    """What somebody believes of an order: its places by name, and how many it
    has where they have none."""

    def __init__(self, state, places=(), slot=None):
        self.state, self.places, self.slot = state, set(places), slot
        self.count = 0
        self.doubt = False

    @property
    def size(self):
        return len(self.places) + self.count


def yoyaku_book(stand, slots):
    """What the database says: {number: Order}; due holds are "expired"."""
    db = stand.connect()
    try:
        with db.cursor() as cursor:
            cursor.execute("SELECT CAST(1000000*UNIX_TIMESTAMP(SYSDATE(6)) AS "
                           "SIGNED)")
            now = cursor.fetchone()[0]
            cursor.execute(
                "SELECT o.order_id, o.state, o.until_us, s.slot_key, b.live, "
                "p.guid, b.quantity FROM yoyaku_booking b "
                "JOIN yoyaku_order o ON o.order_id = b.order_id "
                "JOIN yoyaku_slot s ON s.slot_id = b.slot_id "
                "LEFT JOIN yoyaku_place p ON p.hall_id = s.hall_id "
                "AND p.place_no = b.place_no AND b.area_no NOT IN (SELECT "
                "a.area_no FROM yoyaku_area a WHERE a.slot_id = b.slot_id AND "
                "a.mode = 3) WHERE s.slot_key IN %s", (list(slots),))
            rows = cursor.fetchall()
            free = _yoyaku_free(cursor, slots, now)
    finally:
        db.close()
    orders = {}
    for order_id, state, until, slot, live, guid, quantity in rows:
        name = STATES[state]
        if state in (1, 2) and until <= now:
            name = "expired"
        order = orders.setdefault(number(order_id),
                                  Order(name, slot=slot.decode()))
        if live and guid is not None:
            order.places.add(guid.decode())
        elif live:
            order.count += quantity
    return orders, free


def _yoyaku_free(cursor, slots, now):
    """{(slot, area): (free, all)}; "" stands for all places that are named.
    What a due order that nobody has settled still counts is free."""
    cursor.execute(
        "SELECT s.slot_key, IF(a.mode = 1, '', a.name), SUM(p.state = 0 OR "
        "(p.state = 1 AND p.until_us <= %s)), COUNT(*) FROM yoyaku_slot s "
        "JOIN yoyaku_area a ON a.slot_id = s.slot_id AND a.mode IN (1, 2) "
        "JOIN yoyaku_slot_place p ON p.slot_id = s.slot_id AND p.place_no "
        ">= a.first_place AND p.place_no < a.first_place + a.places "
        "WHERE s.slot_key IN %s GROUP BY 1, 2", (now, list(slots)))
    rows = list(cursor.fetchall())
    cursor.execute(
        "SELECT s.slot_key, a.name, a.max - (SELECT COALESCE(SUM(b.quantity), "
        "0) FROM yoyaku_booking b JOIN yoyaku_order o ON o.order_id = "
        "b.order_id WHERE b.slot_id = a.slot_id AND b.area_no = a.area_no AND "
        "b.live = 1 AND NOT (o.state IN (1, 2) AND o.until_us <= %s)), a.max "
        "FROM yoyaku_slot s JOIN yoyaku_area a ON a.slot_id = s.slot_id AND "
        "a.mode = 3 WHERE s.slot_key IN %s", (now, list(slots)))
    rows += cursor.fetchall()
    return {(_text(slot), _text(area)): (int(n), int(all_))
            for slot, area, n, all_ in rows}


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


def slotrow_book(stand, slots):
    db = stand.connect()
    try:
        with db.cursor() as cursor:
            cursor.execute(
                "SELECT o.order_id, o.state, o.slot_key, p.guid FROM "
                "slotrow_order o LEFT JOIN slotrow_line l ON l.order_id = "
                "o.order_id LEFT JOIN slotrow_place p ON p.slot_key = "
                "l.slot_key AND p.place_no = l.place_no WHERE o.slot_key IN "
                "%s", (list(slots),))
            rows = cursor.fetchall()
            cursor.execute(
                "SELECT slot_key, SUM(state = 0), COUNT(*) FROM slotrow_place "
                "WHERE slot_key IN %s GROUP BY slot_key", (list(slots),))
            free = {(key, ""): (int(n), all_)
                    for key, n, all_ in cursor.fetchall()}
    finally:
        db.close()
    orders = {}
    for order_id, state, slot, guid in rows:
        order = orders.setdefault(str(order_id), Order(state, slot=slot))
        if guid is not None:
            order.places.add(guid)
    return orders, free


# ---- does it agree with itself? ----

def yoyaku_findings(stand, slots=(None,)):
    """What `yoyakuctl verify` finds: (sentences, what was looked at)."""
    wrong, looked = [], {"places": 0, "lines": 0, "journal": 0}
    for slot in slots:
        done = stand.ctl("verify", "--json", *(["--slot", slot] if slot else
                                               []), check=False)
        if not done.stdout:
            wrong.append(f"verify: {done.stderr.strip()}")
            continue
        said = json.loads(done.stdout)
        wrong += [f"{one['kind']}: {one['slot']} {one['text']}"
                  for one in said["findings"]]
        wrong += ["..."] * (said["faults"] - len(said["findings"]))
        for what in looked:
            looked[what] += said.get(what, 0)
    return wrong, "{places} places, {lines} lines, {journal} rows of the " \
        "journal".format(**looked)


# A place is taken by whoever has its one line, or by nobody.
SLOTROW = """
SELECT CONCAT(p.slot_key, ' ', p.guid, ': state ', p.state, ', lines ',
              COALESCE(l.n, 0))
FROM slotrow_place p LEFT JOIN
     (SELECT slot_key, place_no, COUNT(*) n, MAX(order_id) owner
      FROM slotrow_line GROUP BY slot_key, place_no) l
  ON l.slot_key = p.slot_key AND l.place_no = p.place_no
WHERE COALESCE(l.n, 0) <> (p.state <> 0)
   OR (p.state <> 0 AND l.owner <> p.order_id)
UNION ALL
SELECT CONCAT(s.slot_key, ': ', s.free, ' free is counted')
FROM slotrow_slot s
WHERE s.free <> (SELECT COUNT(*) FROM slotrow_place p
                 WHERE p.slot_key = s.slot_key AND p.state = 0)
"""


def slotrow_findings(stand):
    """The same of the reference model."""
    wrong = stand.database.sql(SLOTROW, stand.database.name)
    rows = stand.database.sql("SELECT COUNT(*) FROM slotrow_place",
                              stand.database.name)[0]
    return wrong, f"{rows} places"
