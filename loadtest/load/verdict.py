# SPDX-License-Identifier: Apache-2.0
"""Was it right? What the database says, against itself and against what the
driver was told. A run that is not right has no speed.
"""
import collections
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
    """What somebody believes of an order."""

    def __init__(self, state, places=(), slot=None):
        self.state, self.places, self.slot = state, set(places), slot
        self.doubt = False


def believed(rows):
    """The driver's record: {number: Order}, [doubts without an order]."""
    orders, lost = {}, []
    for row in rows:
        order = orders.get(row["number"])
        if row["what"] == "doubt":
            if order is not None:
                order.doubt = True
            else:
                lost.append(row)
            continue
        if order is None:
            order = orders[row["number"]] = Order(row["state"],
                                                  slot=row["slot"])
        order.state = row["state"]
        if "places" in row:
            order.places = set(row["places"])
    return orders, lost


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
                "p.guid FROM yoyaku_booking b "
                "JOIN yoyaku_order o ON o.order_id = b.order_id "
                "JOIN yoyaku_slot s ON s.slot_id = b.slot_id "
                "LEFT JOIN yoyaku_place p ON p.hall_id = s.hall_id "
                "AND p.place_no = b.place_no WHERE s.slot_key IN %s",
                (list(slots),))
            rows = cursor.fetchall()
            cursor.execute(
                "SELECT s.slot_key, SUM(p.state = 0 OR (p.state = 1 AND "
                "p.until_us <= %s)), COUNT(*) FROM yoyaku_slot_place p "
                "JOIN yoyaku_slot s ON s.slot_id = p.slot_id "
                "WHERE s.slot_key IN %s GROUP BY s.slot_key",
                (now, list(slots)))
            free = {key.decode(): (int(n), all_) for key, n, all_ in
                    cursor.fetchall()}
    finally:
        db.close()
    orders = {}
    for order_id, state, until, slot, live, guid in rows:
        name = STATES[state]
        if state in (1, 2) and until <= now:
            name = "expired"
        order = orders.setdefault(number(order_id),
                                  Order(name, slot=slot.decode()))
        if live and guid is not None:
            order.places.add(guid.decode())
    return orders, free


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
            free = {key: (int(n), all_) for key, n, all_ in cursor.fetchall()}
    finally:
        db.close()
    orders = {}
    for order_id, state, slot, guid in rows:
        order = orders.setdefault(str(order_id), Order(state, slot=slot))
        if guid is not None:
            order.places.add(guid)
    return orders, free


class Verdict:
    def __init__(self):
        self.checks = []

    def check(self, name, wrong, good):
        """`wrong`: sentences, none when it is right."""
        wrong = list(wrong)
        self.checks.append({"check": name, "right": not wrong,
                            "said": wrong[:10] if wrong else [good],
                            "faults": len(wrong)})

    @property
    def right(self):
        return all(check["right"] for check in self.checks)

    def lines(self):
        for check in self.checks:
            yield ("right" if check["right"] else "WRONG") + \
                f"  {check['check']}: " + "; ".join(check["said"]) + \
                (f"; and {check['faults'] - 10} more"
                 if check["faults"] > 10 else "")

    def said(self):
        return {"right": self.right, "checks": self.checks}


def _accounted(told, book, lost):
    """Every answered change is in the book as it was answered."""
    for name, order in told.items():
        found = book.get(name)
        if found is None:
            if order.doubt:
                continue
            yield f"order {name} was answered and is not in the database"
            continue
        if order.doubt:
            continue
        if found.state != order.state and not (
                order.state in ("held", "locked") and
                found.state == "expired"):
            yield (f"order {name} was answered as {order.state}, the "
                   f"database says {found.state}")
        elif found.state in HAVE and found.places != order.places:
            yield (f"order {name} was answered with {len(order.places)} "
                   f"places, the database says {len(found.places)}")


def _answered_for(told, book, lost):
    """Every order of the book was answered, or is one whose answer was lost."""
    doubts = collections.Counter()
    for row in lost:
        doubts[frozenset(row["asked"])] += 1
    for name, order in book.items():
        if name in told:
            continue
        key = frozenset(order.places)
        if doubts[key] > 0:
            doubts[key] -= 1
        elif not (order.state not in HAVE and sum(doubts.values()) > 0):
            yield (f"order {name} ({order.state}, {len(order.places)} places) "
                   "is in the database and nobody was told of it")


def _once(told):
    """No place was answered to two orders that have it."""
    owners = {}
    for name, order in told.items():
        if order.state not in HAVE or order.doubt:
            continue
        for place in order.places:
            key = order.slot, place
            if key in owners:
                yield (f"{place} in {order.slot} was given to {owners[key]} "
                       f"and to {name}")
            owners[key] = name


def _sold_out(result, free, given_back):
    """Sold out exactly where more was wanted than there was."""
    for row in result["slots"]:
        left, places = free.get(row["slot"], (None, None))
        if left is None:
            continue
        back = given_back[row["slot"]]
        if row["unmet"] and left > back:
            yield (f"{row['slot']}: {row['unmet']} places were wanted and not "
                   f"to be had, yet {left} are free")
        if row["wanted"] <= places and row["unmet"]:
            yield (f"{row['slot']}: {row['wanted']} of {places} were wanted "
                   f"and {row['unmet']} were not to be had")


def _given_back(rows):
    """Places that came free again in each slot: they may be free at the end
    although somebody had left because there was none."""
    last, back = {}, collections.Counter()
    for row in rows:
        if row["what"] == "doubt":
            back[row["slot"]] += len(row["asked"])
            continue
        before = last.get(row["number"], set())
        now = set(row.get("places", before))
        if row["what"] == "release":
            now = set()
        back[row["slot"]] += len(before - now)
        last[row["number"]] = now
    return back


def _statuses(result):
    for kind in ("broken", "bad"):
        n = result.count(outcome=(kind,))
        if n:
            odd = {status: count for status, count in
                   result["statuses"].items()
                   if int(status) >= 400 and int(status) not in
                   (404, 409, 410, 422, 503)}
            yield (f"{n} answers were " +
                   ("5xx that nobody meant" if kind == "broken"
                    else "4xx for a mistake of the driver's") + f": {odd}")


def _silence(result):
    """Nothing seen is nothing proved."""
    if not result.answers:
        yield f"nothing was answered: {result.failures}"


def of_run(stand, slots, result, rows, arm="yoyaku"):
    """The verdict on a run whose database is at hand."""
    verdict = Verdict()
    if arm == "yoyaku":
        book, free = yoyaku_book(stand, slots)
        done = stand.ctl("verify", "--json", check=False)
        said = json.loads(done.stdout) if done.stdout else \
            {"agrees": False, "faults": 1,
             "findings": [{"kind": "verify", "slot": "",
                           "text": done.stderr.strip()}]}
        verdict.check(
            "the book agrees with itself",
            [f"{one['kind']}: {one['slot']} {one['text']}"
             for one in said["findings"]]
            + ["..."] * (said["faults"] - len(said["findings"])),
            f"{said.get('places')} places, {said.get('lines')} lines, "
            f"{said.get('journal')} rows of the journal")
    else:
        book, free = slotrow_book(stand, slots)
    told, lost = believed(rows)
    verdict.check("sold at most once", _once(told),
                  f"{sum(o.state in HAVE for o in told.values())} orders have "
                  "places")
    verdict.check("every answer is in the book", _accounted(told, book, lost),
                  f"{len(told)} orders were answered")
    verdict.check("every row was answered", _answered_for(told, book, lost),
                  f"{len(book)} orders in the database, {result['unknown']} "
                  "answers were lost for good")
    verdict.check("sold out exactly where demand exceeded supply",
                  _sold_out(result, free, _given_back(rows)),
                  ", ".join(f"{key}: {n} of {all_} free" for key, (n, all_)
                            in sorted(free.items())[:4]))
    verdict.check("somebody was answered", _silence(result),
                  f"{result.answers} answers")
    verdict.check("no 5xx but deliberate 503s", _statuses(result),
                  f"{result.count(outcome=('busy',))} deliberate")
    return verdict


def of_target(result, rows):
    """The part that can be seen from outside."""
    told, _ = believed(rows)
    verdict = Verdict()
    verdict.check("sold at most once, as answered", _once(told),
                  f"{len(told)} orders were answered")
    verdict.check("somebody was answered", _silence(result),
                  f"{result.answers} answers")
    verdict.check("no 5xx but deliberate 503s", _statuses(result),
                  f"{result.count(outcome=('busy',))} deliberate")
    return verdict
