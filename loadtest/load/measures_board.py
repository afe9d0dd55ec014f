# SPDX-License-Identifier: Apache-2.0
"""Measures of those who only look: boards, and the documents of an arrival.

Whatever is compared here is compared while others buy: a sale that nobody
takes part in says nothing of a rush.
"""
import gzip
import random
import socket
import threading
import time
import urllib.request

from . import arrivals, ratio
from .arms import Arm
from .driver import Driver
from .measures import measure

HALL = "generated:12x727"  # 8,724 places
HOLDS = 100  # a second
LEAD = 0.5  # seconds that others are at it before and behind


class Holds:
    """Holds, and their releases, at a steady rate in one slot."""

    def __init__(self, on, slot, seconds, number):
        self.seconds = seconds + 2 * LEAD
        self.driver = Driver(
            on.build, on.folder / f"holds-{number}", on.url,
            Arm("yoyaku").text(), "counter", [slot], on.places,
            {"plan": "open", "rate": HOLDS, "seconds": self.seconds,
             "bookers": 50, "threads": 1, "seed": number, "progress_ms": 0,
             "cpus": ",".join(map(str, sorted(on.cpus["driver"])))
             if "driver" in on.cpus else None}, record=False).start()
        time.sleep(LEAD)

    def end(self):
        """A sentence when they were not that many."""
        rate = self.driver.wait(120).orders_begun / self.seconds
        return [] if rate >= 0.9 * HOLDS else \
            [f"holds went on at {rate:.0f} a second beside it, not {HOLDS}"]


def fetch(url, **headers):
    ask = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(ask, timeout=30) as answer:
        return answer.read()


# ---- boards ----

def board_over_trivial(c, wanted, buys, trivial, options):
    """Looks at `looks` while others buy in `buys`; both arms in one httpd."""
    on = c.stand(("yoyaku", "trivial"), hall=HALL)
    looks, other = c.slots(on, "yoyaku", 2)

    def look(arm, slot):
        holds = Holds(on, looks if buys == "there" else other,
                      c.args.seconds, next(c.numbers))
        shot = c.shot(on, arm, "boards", [slot], options=options,
                      prove=arm == "trivial")
        c.voids.extend(holds.end())
        got = shot.result["statuses"].get(wanted, 0)
        # a booker's first board comes whole
        if got < 0.95 * (shot.result.answers - shot.bookers):
            c.voids.append(f"only {got} of {shot.result.answers} answers of "
                           f"{arm} were {wanted}")
        return shot
    return c.versus(lambda: look("yoyaku", looks),
                    lambda: look("trivial", trivial(on, looks)))


@measure("boards unchanged (304) a second, over the trivial handler's, while "
         "another slot of the hall sells 100 a second")
def board_304_over_trivial(c):
    return board_over_trivial(c, "304", "elsewhere", lambda on, slot: "x",
                              {"conditional": "on"})


def compressed_bytes(on, slot):
    body = fetch(f"{on.url}/yoyaku/slots/{slot}/availability",
                 **{"Accept-Encoding": "gzip"})
    if b'"places"' not in gzip.decompress(body):
        raise RuntimeError("that is no board")
    return str(len(body))


@measure("boards (200, gzip) a second, over the trivial handler's of that "
         "size, while the slot sells 100 a second")
def board_200_over_trivial(c):
    return board_over_trivial(c, "200", "there", compressed_bytes,
                              {"conditional": "off",
                               "header": "Accept-Encoding: gzip"})


# ---- memcached ----

class Tenant:
    """Somebody else who fills the memcached, so that it throws away."""

    def __init__(self, address):
        host, port = address.split(":")
        self.line = socket.create_connection((host, int(port)), 5)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        draw, n = random.Random(1), 0
        while not self.over.wait(0.005 if n > 500 else 0):
            size = int(60 * 2 ** draw.uniform(0, 10))
            n += 1
            self.line.sendall(f"set other-{n} 0 0 {size}\r\n".encode()
                              + b"x" * size + b"\r\n")
            self.line.recv(4096)

    def stop(self):
        self.over.set()
        self.thread.join()
        self.line.close()


@measure("looks, holds and releases with a memcached of 1 MB that is too "
         "small, over the same without memcached", ("YoyakuMemcached",))
def memcached_1mb_over_none(c):
    with_ = c.stand(cache_mb=1)
    without = c.stand(cache_mb=1, conf="YoyakuMemcached none\n")
    evictions = []

    def load(on, slots):
        tenant = Tenant(on.memcached.address)
        try:
            shot = c.shot(on, mix="counter", slots=slots,
                          options={"steps": "board hold release"})
        finally:
            tenant.stop()
        evictions.append(shot.seen["cache"]["evictions"])
        return shot
    ones, others = c.slots(with_, "yoyaku", 16), c.slots(without, "yoyaku", 16)
    found = c.versus(lambda: load(with_, ones), lambda: load(without, others))
    if not all(evictions[2:]):
        c.voids.append("memcached was large enough")
    return found


# ---- arrivals ----

@measure("p95 in the server, milliseconds, of the worst of slot, plan and "
         "board while 2,000 bookers press on the workers")
def arrival_p95_ms(c):
    on = c.stand()
    values = []
    # two thousand come, whatever the length of a round
    for _ in range(ratio.LEAST_ROUNDS):
        shot = c.shot(on, mix="opening", slots=c.slots(on, "yoyaku"),
                      bookers=2000, prove=False, seconds=150,
                      options={"plan": "crowd", "stagger_ms": 2000})
        rows = arrivals.rows(shot.result, shot.paths)
        if len(rows) < 3 or not shot.seen["queue_max"]:
            c.voids.append("nobody had to wait for a worker")
        values.append(max(row["server"]["p95"] for row in rows) / 1000)
    return ratio.level(values)
