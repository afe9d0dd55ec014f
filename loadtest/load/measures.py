# SPDX-License-Identifier: Apache-2.0
"""The measures by name: what each compares and what has to be there for it."""
import itertools
import statistics

from . import proc, ratio, verdict
from .arms import Arm
from .shot import Shot
from .stand import BUILD, HALLS, Stand
from .years import Years

MEASURES = {}
AGED_HOLDS = 50_000
OLD_ROWS = 5_000_000


class Measure:
    def __init__(self, what, needs, run):
        self.what, self.needs, self.run = what, needs, run


def measure(what, needs=()):
    """`needs`: words that must stand in the module (a directive, a header)."""
    def keep(function):
        MEASURES[function.__name__] = Measure(what, needs, function)
        return function
    return keep


def built():
    return (BUILD / "mod_yoyaku.so").exists()


def lacks(name):
    """What the built module has not got of what a measure is about."""
    path = BUILD / "mod_yoyaku.so"
    binary = path.read_bytes() if path.exists() else b""
    gone = [need for need in MEASURES[name].needs
            if need.encode() not in binary]
    return "the module does not know " + ", ".join(gone) if gone else None


class Context:
    """Stands of one measure, and why it may be void."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.stands, self.voids, self.conditions = [], [], {}
        self.driver_cpu = []  # of each load, of a core
        self.numbers = itertools.count(1)
        self.sold = []  # (stand, slot) that the verdict is taken on

    def stand(self, arms=("yoyaku",), hall=None, start=True, **more):
        more.setdefault("workers", self.args.workers)
        made = Stand(self.folder / f"stand{len(self.stands)}", hall,
                     [Arm(name) for name in arms], mpm=self.args.mpm,
                     cpus=self.args.cpus, **more)
        self.stands.append(made)
        if start:
            made.start()
            self.conditions = made.conditions()
        return made

    def close(self):
        for made in self.stands:
            made.stop()

    def slots(self, on, arm, n=1):
        keys = [f"m{next(self.numbers)}" for _ in range(n)]
        for key in keys:
            on.arm(arm).fresh_slot(on, key)
            if on.arm(arm).book == "yoyaku":
                self.sold.append((on, key))
        return keys

    def wrong(self):
        """Sentences: what is not right in the books of all stands."""
        said = []
        for on in self.stands:
            found = verdict.of_books(on, [slot for other, slot in self.sold
                                          if other is on])
            said += [line for check in found.checks if not check["right"]
                     for line in check["said"]]
        return said

    def shot(self, on, arm="yoyaku", mix="counter", slots=None, bookers=None,
             seconds=None, beside=None, **more):
        options = {"seed": self.args.seed, **more.pop("options", {})}
        made = Shot(on, Arm(arm), mix, bookers or self.args.bookers,
                    seconds or self.args.seconds, slots, options, **more)
        made.run(beside=beside)
        self.driver_cpu.append(made.result.cpu_of_a_core)
        self.voids += made.voids
        bad = made.result.count(outcome=("broken", "bad", "lost"))
        if bad:
            self.voids.append(f"{bad} answers of {arm} were failures")
        return made

    def versus(self, one, other, value=lambda shot: shot.rate):
        """Alternate two loads, each a function that makes a Shot; the ratio
        of their values. The first of each warms up and does not count."""
        one()
        other()
        self.voids.clear()
        self.driver_cpu.clear()
        sides = {one: [], other: []}
        for row in ratio.order([one, other], self.args.rounds):
            for side in row:
                sides[side].append(value(side()))
        found = ratio.of(sides[one], sides[other])
        if found is None:
            self.voids.append("in some round nothing was answered")
            return {"value": None}
        return {"value": found["value"], "spread": (found["low"],
                                                    found["high"]),
                "finding": found["finding"],
                "sides": [round(statistics.median(sides[side]), 1)
                          for side in (one, other)],
                "rounds": [[round(value, 1) for value in sides[side]]
                           for side in (one, other)]}


def same_size(c, sizes):
    """{arm: bytes of an answer} must be alike, or the arms were not."""
    (one, a), (other, b) = sizes.items()
    if abs(a / b - 1) > 0.1:
        c.voids.append(f"an answer of {one} has {a:.0f} bytes, of {other} "
                       f"{b:.0f}")


def crowd(c):
    """More bookers than workers: each journey brings its own connection, or
    half of them would own the workers for good."""
    return {"mix": "visitors", "bookers": 2 * c.args.workers}


# ---- holds ----

@measure("holds a second on one slot, over the same on sixteen")
def one_slot_over_sixteen(c):
    on = c.stand()
    one, many = c.slots(on, "yoyaku"), c.slots(on, "yoyaku", 16)
    return c.versus(lambda: c.shot(on, slots=one),
                    lambda: c.shot(on, slots=many))


@measure("clicks a second on one slot, two bookers a worker, over the reference "
         "model's in mod_php")
def one_slot_over_php_slotrow(c):
    on = c.stand(("yoyaku", "php-slotrow"))
    ours, theirs = c.slots(on, "yoyaku"), c.slots(on, "php-slotrow")
    return c.versus(lambda: c.shot(on, slots=ours, **crowd(c)),
                    lambda: c.shot(on, "php-slotrow", slots=theirs,
                                   **crowd(c)))


@measure("one slot with lanes, two bookers a worker, over one without",
         ("YoyakuLane",))
def lanes_on_over_off(c):
    with_, without = (c.stand(conf='<Location "/yoyaku">\n    YoyakuLane '
                                   f"{word}\n</Location>\n")
                      for word in ("on", "off"))
    one, other = c.slots(with_, "yoyaku"), c.slots(without, "yoyaku")
    return c.versus(lambda: c.shot(with_, slots=one, **crowd(c)),
                    lambda: c.shot(without, slots=other, **crowd(c)))


@measure("holds and releases a second on one slot, two bookers a worker, over "
         "a handler that reads as large a POST and answers from memory")
def hold_over_trivial_post(c):
    # a large hall: few reach for the same place, and a refusal is cheap
    on = c.stand(("yoyaku", "trivial"), str(HALLS / "arena-8724.json"))
    ours = c.slots(on, "yoyaku")
    sizes = {}

    def load(arm, slots):
        shot = c.shot(on, arm, slots=slots, **crowd(c))
        sizes[arm] = shot.result["bytes_in"] / max(1, shot.result.answers)
        return shot
    found = c.versus(lambda: load("yoyaku", ours),
                     lambda: load("trivial", ["x"]))
    same_size(c, sizes)
    return found


@measure("CPU of a refusal (place known taken), over CPU of a hold")
def refusal_over_hold_cpu(c):
    # a hall in which nobody has to give back, and one that is sold out
    large, on = c.stand(hall="generated:80x1000"), c.stand()
    full = c.slots(on, "yoyaku")
    c.shot(on, mix="sellout", slots=full, bookers=40, seconds=60,
           options={"plan": "crowd", "stagger_ms": 500,
                    "bookers": 2 * len(on.places)})

    def refusals():
        return c.shot(on, slots=full, options={"tries": 0}, prove=False)

    def holds():
        return c.shot(large, mix="takes", slots=c.slots(large, "yoyaku"))

    def cpu(shot):
        return shot.cpu_us(outcome=("ok", "refused"))
    return c.versus(refusals, holds, cpu)


def tail(c, on, percent, mix="counter", **more):
    """How much longer the unlucky wait for a hold than the median."""
    slots = c.slots(on, "yoyaku")
    c.shot(on, mix=mix, slots=slots, **more)
    c.voids.clear()
    unlucky, middle = [], []
    for _ in range(c.args.rounds):
        shot = c.shot(on, mix=mix, slots=slots, **more)
        hdr = shot.result.hdr(("hold",), ("ok",))
        unlucky.append(hdr.at(percent))
        middle.append(hdr.at(50))
    found = ratio.of(unlucky, middle)
    if found is None:
        c.voids.append("in some round nobody held anything")
        return {"value": None}
    return {"value": found["value"], "spread": (found["low"], found["high"])}


@measure("p95 over the median of a hold, 80 bookers on one slot")
def p95_over_median_80(c):
    return tail(c, c.stand(), 95, bookers=80)


@measure("longest wait for a hold over the median, 160 bookers on one slot")
def fairness_160(c):
    on = c.stand(hall=str(HALLS / "arena-8724.json"))
    # the longest wait of a longer round is longer: always the same length
    return tail(c, on, 100, "visitors", bookers=160, seconds=3)


@measure("holds a second in a hall of 80,000 places, over one of 200")
def hall_80000_over_200(c):
    large = c.stand(hall="generated:80x1000")
    small = c.stand(hall="generated:2x100")
    ones, others = c.slots(large, "yoyaku"), c.slots(small, "yoyaku")
    # few bookers: in the small hall many would meet at one place; the few who
    # do are refused, which is cheap, and only changes that were made count
    return c.versus(lambda: c.shot(large, slots=ones, bookers=8),
                    lambda: c.shot(small, slots=others, bookers=8),
                    lambda shot: shot.result.count(outcome="ok") /
                    shot.result["wall_seconds"])


def age(c, on, slots, holds):
    """So many holds are made and given back."""
    done = 0
    while done < holds:
        shot = c.shot(on, slots=slots, seconds=10, watch=False, prove=False)
        made = shot.result.orders_begun
        if not made:
            raise RuntimeError("nothing could be held")
        done += made
    return done


@measure("holds a second of a slot that has had 50,000, over a fresh one")
def hold_50000_over_first(c):
    on = c.stand()
    used = c.slots(on, "yoyaku")
    age(c, on, used, AGED_HOLDS)
    # a slot nobody has seen is cold everywhere: both get a second before
    return c.versus(lambda: c.shot(on, slots=used, warm=1.0),
                    lambda: c.shot(on, slots=c.slots(on, "yoyaku"), warm=1.0))


WORN = """
CREATE TABLE worn (n INT PRIMARY KEY, filling BLOB) ENGINE=InnoDB;
INSERT INTO worn SELECT seq, REPEAT(CHAR(65 + seq % 26), 4000) FROM
 seq_1_to_{rows};
DROP TABLE worn;
"""


def wear(on, log_mb=128):
    """Write its log around once: a log whose file has never been written to
    syncs slower, and a database with a past would win by that alone."""
    on.database.sql(WORN.format(rows=log_mb * 300), on.database.name)


@measure("holds a second with five million old orders in the book, in memory "
         "a tenth of it, over none")
def old_5m_rows_over_empty(c):
    years = Years(OLD_ROWS).made()
    options = {"innodb_buffer_pool_size": str(years.bytes // 10),
               "innodb_log_file_size": "128M"}
    old, fresh = (c.stand(options=options, book=book)
                  for book in (years.data, None))
    for on in (old, fresh):
        wear(on)
    ones, others = c.slots(old, "yoyaku"), c.slots(fresh, "yoyaku")
    # a server that was started now has nothing in memory, one at work has what
    # it needs again and again
    for on, slots in ((old, ones), (fresh, others)):
        c.shot(on, slots=slots, seconds=20, watch=False)
    return c.versus(lambda: c.shot(old, slots=ones),
                    lambda: c.shot(fresh, slots=others))


@measure("holds a second on the second day, over the first")
def holds_second_day_over_first(c):
    second, first = (c.stand(start=False) for _ in range(2))
    for on in (second, first):
        on.own_clock = True
        on.start()
        wear(on)
    c.conditions = second.conditions()
    yesterday = c.slots(second, "yoyaku")
    # a day's business: sold, held and forgotten, given back
    c.shot(second, mix="opening", slots=yesterday, bookers=500, seconds=60,
           options={"plan": "crowd", "stagger_ms": 3000, "think_ms": 20})
    age(c, second, c.slots(second, "yoyaku"), 5000)
    second.database.advance(86400)
    today, other = c.slots(second, "yoyaku"), c.slots(first, "yoyaku")
    return c.versus(lambda: c.shot(second, slots=today),
                    lambda: c.shot(first, slots=other))


# ---- memory ----

def private_kb(c, hall):
    on = c.stand(hall=hall, workers=40)
    slots = c.slots(on, "yoyaku")
    # every worker has answered every kind of click: each booker keeps one
    through = 0
    for _ in range(9):
        shot = c.shot(on, mix="desk", slots=slots, bookers=40, prove=False,
                      seconds=20,
                      options={"steps": "slot plan board hold release"})
        through += shot.result["journeys"]["released"]
        if through >= 4 * 40:
            break
    if through < 2 * 40:
        c.voids.append(f"only {through} journeys went through 40 workers")
    seen = proc.workers_memory(on.httpd.children())["private"]
    return {"value": seen["median"], "spread": (seen["median"], seen["max"])}


@measure("private KiB of a worker after clicks in a hall of 200 places")
def worker_private_kb_after_200(c):
    return private_kb(c, "generated:2x100")


@measure("private KiB of a worker after clicks in a hall of 80,000 places")
def worker_private_kb_after_80000(c):
    return private_kb(c, "generated:80x1000")


@measure("database connections of 200 workers in a rush on one slot")
def connections_kept_200_workers(c):
    on = c.stand(workers=200)
    slots = c.slots(on, "yoyaku")
    c.shot(on, slots=slots, bookers=200)
    seen = []
    asks = on.connect()

    def look():
        with asks.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM information_schema.processlist"
                           " WHERE user = 'yoyaku'")
            seen.append(cursor.fetchone()[0])
    try:
        c.shot(on, slots=slots, bookers=200, seconds=3 * c.args.seconds,
               beside=look)
    finally:
        asks.close()
    return {"value": statistics.median(seen), "spread": (min(seen), max(seen))}


@measure("holds a second of 200 workers that keep 16 connections, over 200",
         ("YoyakuConnections",))
def connections_16_over_200(c):
    few, many = (c.stand(workers=200, conf=f"YoyakuConnections {n}\n")
                 for n in (16, 200))
    ones, others = c.slots(few, "yoyaku"), c.slots(many, "yoyaku")
    return c.versus(lambda: c.shot(few, slots=ones, bookers=200),
                    lambda: c.shot(many, slots=others, bookers=200))


# ---- boards: measures_board.py, and ----

@measure("a board as a snapshot's file, over a pass through memcached",
         ("YoyakuSnapshotDir",))
def snapshot_over_memcached_pass(c):
    on = c.stand(("snapshot", "memcached-board"))
    file, kept = c.slots(on, "snapshot"), c.slots(on, "memcached-board")
    sizes = {}

    def look(arm, slots):
        shot = c.shot(on, arm, "boards", slots)
        sizes[arm] = shot.result["bytes_in"] / max(1, shot.result.answers)
        return shot
    found = c.versus(lambda: look("snapshot", file),
                     lambda: look("memcached-board", kept))
    same_size(c, sizes)
    return found
