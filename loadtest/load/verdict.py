# SPDX-License-Identifier: Apache-2.0
"""Was it right? What the database says, against itself and against what the
driver was told. A run that is not right has no speed.
"""
import collections

from .book import (HAVE, Order, slotrow_book, slotrow_findings, yoyaku_book,
                   yoyaku_findings)


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
            order.places, order.count = set(row["places"]), row["count"]
    return orders, lost


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
        elif found.state in HAVE and (found.places != order.places or
                                      found.count != order.count):
            yield (f"order {name} was answered with {order.size} places, the "
                   f"database says {found.size}")


def _answered_for(told, book, lost):
    """Every order of the book was answered, or is one whose answer was lost."""
    doubts = collections.Counter()
    for row in lost:
        doubts[frozenset(row["asked"]) or row["quantity"]] += 1
    for name, order in book.items():
        if name in told:
            continue
        key = frozenset(order.places)
        if key not in doubts:
            key = order.size  # a count was asked for, or the house seated them
        if doubts[key] > 0:
            doubts[key] -= 1
        elif not (order.state not in HAVE and sum(doubts.values()) > 0):
            yield (f"order {name} ({order.state}, {order.size} places) "
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
        where = row["slot"], row["area"]
        left, places = free.get(where, (None, None))
        if left is None:
            continue
        back = given_back[where]
        name = " ".join(filter(None, where))
        if row["unmet"] and left > back:
            yield (f"{name}: {row['unmet']} places were wanted and not "
                   f"to be had, yet {left} are free")
        if row["wanted"] <= places and row["unmet"]:
            yield (f"{name}: {row['wanted']} of {places} were wanted "
                   f"and {row['unmet']} were not to be had")


def _given_back(rows):
    """Places that came free again in each slot and area: they may be free at
    the end although somebody had left because there was none."""
    last, back = {}, collections.Counter()
    for row in rows:
        where = row["slot"], row["area"]
        if row["what"] == "doubt":
            back[where] += row["quantity"]
            continue
        places, count = last.get(row["number"], (set(), 0))
        now = set(row.get("places", places)), row.get("count", count)
        if row["what"] == "release":
            now = set(), 0
        back[where] += len(places - now[0]) + max(0, count - now[1])
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
        found = yoyaku_findings(stand)
    else:
        book, free = slotrow_book(stand, slots)
        found = slotrow_findings(stand)
    verdict.check("the book agrees with itself", *found)
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
                  ", ".join(f"{' '.join(filter(None, key))}: {n} of {all_} free"
                            for key, (n, all_) in sorted(free.items())[:4]))
    verdict.check("somebody was answered", _silence(result),
                  f"{result.answers} answers")
    verdict.check("no 5xx but deliberate 503s", _statuses(result),
                  f"{result.count(outcome=('busy',))} deliberate")
    return verdict


def of_books(stand, slots=(None,)):
    """What can be said without a record of each answer, after ladders and
    measures: nothing was sold twice and all counts agree.

    slots    of mod_yoyaku's book; (None,): all of it
    """
    verdict = Verdict()
    books = {arm.book for arm in stand.arms}
    if "yoyaku" in books:
        verdict.check("the book agrees with itself",
                      *yoyaku_findings(stand, slots))
    if "slotrow" in books:
        verdict.check("the reference model's book agrees with itself",
                      *slotrow_findings(stand))
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
