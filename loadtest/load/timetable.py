# SPDX-License-Identifier: Apache-2.0
"""Where the time of all answers went: one ranked table.

Three sources. The driver knows what each answer took and which was the first
on its connection; httpd's log knows what it took inside and how long it stood
in throttle, lane and store; the sampler knows what a commit, a new connection
and a look into memcached cost while the load ran (its own, a few a second), and
the servers count how many there were of each. So flush, connection and cache
are estimates, never more than the time they are taken from.
"""
import collections
import re

NOT_LOAD = ("/server-status", "/yoyaku-metrics")
FIELDS = 12  # of stand.LOG


def number(text):
    try:
        return float(text)
    except ValueError:
        return 0.0


def _rows(stand, log_from):
    return [row for row in stand.log_rows(log_from)
            if len(row) >= FIELDS and not row[3].startswith(NOT_LOAD)]


class Inside:
    """What httpd's log says, seconds."""

    def __init__(self, rows):
        self.throttle = sum(number(row[8]) for row in rows) / 1e3
        self.lane = sum(number(row[9]) for row in rows) / 1e3
        self.store = sum(number(row[10]) for row in rows) / 1e3
        first = [number(row[6]) for row in rows if row[11] == "0"]
        again = [number(row[6]) for row in rows if row[11] != "0"]
        self.first, self.nfirst = sum(first) / 1e6, len(first)
        self.again, self.nagain = sum(again) / 1e6, len(again)

    @property
    def served(self):
        return self.first + self.again


def outside(result, inside):
    """(backlog, network): whoever is first on a connection has waited for a
    worker; the rest has only travelled."""
    sent = sum(_sum(row["hdr"]) for row in result["from_send"]) / 1e6
    opened = result["opened_us"] / 1e6
    travelled = max(0.0, sent - opened - inside.again)
    each = travelled / inside.nagain if inside.nagain else 0.0
    waited = max(0.0, opened - inside.first)
    network = min(waited, each * inside.nfirst)
    connects = _sum(result["connects"]) / 1e6
    return waited - network + connects, travelled + network


def shares(result, inside, seen):
    """{where: seconds}"""
    backlog, network = outside(result, inside)
    cost, status = seen["probes"], seen["status"]
    found = {"backlog": backlog, "network": network,
             "throttle": inside.throttle, "lane": inside.lane}
    # without the note of the module the handler's time holds all of it
    left = inside.store or max(0.0, inside.served - inside.throttle)
    within = {"row locks": status["Innodb_row_lock_time"] / 1e3,
              "flush": cost["commit_us"] * status["Com_commit"] / 1e6,
              "connection": cost["connect_us"] * status["Connections"] / 1e6}
    for name, value in within.items():
        found[name] = min(left, max(0.0, value))
        left -= found[name]
    if inside.store:
        found["statements and their trips"] = left
        left = max(0.0, inside.served - inside.throttle - inside.lane
                   - inside.store)
    cache = seen["cache"]
    found["cache"] = min(left, cost["get_us"] *
                         max(0, cache["cmd_get"] + cache["cmd_set"]) / 1e6)
    left -= found["cache"]
    found["handler" if inside.store else "handler, statements, trips"] = left
    return found


def times(stand, log_from, result, seen):
    """[{"where", "seconds", "percent"}], the most first."""
    found = shares(result, Inside(_rows(stand, log_from)), seen)
    total = sum(found.values())
    return [{"where": name, "seconds": round(value, 2),
             "percent": round(100 * value / total, 1) if total else 0}
            for name, value in sorted(found.items(), key=lambda row: -row[1])]


def paths(stand, log_from):
    """Of each path: answers, and the server's own time; the heaviest first."""
    found = collections.defaultdict(list)
    for row in _rows(stand, log_from):
        name = re.sub(r"/slots/[^/]+", "/slots/*", row[3])
        found[row[2], name].append(number(row[6]))
    rows = []
    for (method, name), times_us in found.items():
        times_us.sort()
        rows.append({"path": f"{method} {name}", "n": len(times_us),
                     "sum_us": sum(times_us),
                     "p50_us": times_us[len(times_us) // 2],
                     "p95_us": times_us[int(0.95 * (len(times_us) - 1))]})
    return sorted(rows, key=lambda row: -row["p95_us"])


def _sum(hdr):
    return sum(high * count for high, count in hdr["cells"])
