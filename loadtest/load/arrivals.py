# SPDX-License-Identifier: Apache-2.0
"""The documents of an arrival: what they take once a worker has the request,
and how long the request lay waiting for one.

In the server is from the request's first byte in a worker's hands to the end
of its answer (httpd's %D). Seen outside is from the moment it was sent; what is
more is the listen backlog and the loopback, and belongs to no document.
"""
from .hdr import ms

PATHS = {"slot": "GET /yoyaku/slots/*", "plan": "GET /yoyaku/slots/*/plan",
         "board": "GET /yoyaku/slots/*/availability"}
HEAD = ("document", "answers", "in the server p50 ms", "p95 ms",
        "seen outside p50 ms", "p95 ms", "waiting for a worker, percent")


def rows(result, paths):
    """One a document that was asked for; [] for arms that have none."""
    served = {row["path"]: row for row in paths or []}
    found = []
    for name, path in PATHS.items():
        hdr = result.hdr((name,), since="from_send")
        here = served.get(path)
        if here is None or not hdr.total:
            continue
        outside = hdr.sum_us()
        waiting = max(0, outside - here["sum_us"])
        found.append({
            "document": name, "n": here["n"],
            "server": {"p50": here["p50_us"], "p95": here["p95_us"]},
            "outside": {"p50": hdr.at(50), "p95": hdr.at(95)},
            "waiting_percent": round(100 * waiting / outside, 1)
            if outside else 0})
    return found


def cells(found):
    """For a table under HEAD."""
    return [(row["document"], row["n"], ms(row["server"]["p50"]),
             ms(row["server"]["p95"]), ms(row["outside"]["p50"]),
             ms(row["outside"]["p95"]), row["waiting_percent"])
            for row in found]


def lines(found):
    """For a terminal."""
    if not found:
        return []
    return ["arrival: " + "; ".join(
        f"{row['document']} p95 {ms(row['server']['p95'])} ms in the server, "
        f"{ms(row['outside']['p95'])} ms seen outside, "
        f"{row['waiting_percent']} % of all its time waiting for a worker"
        for row in found)]
