# SPDX-License-Identifier: Apache-2.0
"""Measures of what keeps a server alive when everybody comes: the throttle,
the waiting room, recycling, and day one and day two of a heavy application."""
import collections
import http.client
import itertools
import json
import os
import pathlib
import statistics
import tempfile
import urllib.request

from servers import ServerError

from . import ratio
from .arms import Arm
from .driver import Driver
from .hdr import merged
from .measures import measure


STATUS = """
<Location "/yoyaku-status">
    SetHandler yoyaku-status
</Location>
"""


class Beside:
    """What a request of one path costs more than one of another, in CPU of the
    workers, while all are asked for at once: whatever else the machine does
    meets all alike. The module itself keeps count of each path."""

    def __init__(self, on, *paths):
        self.on, self.paths = on, paths

    def _looked(self):
        with urllib.request.urlopen(self.on.url + "/yoyaku-status?json",
                                    timeout=30) as answer:
            rows = json.loads(answer.read())["paths"]
        found = {row["path"]: (row["count"], 1000 * row["cpu_ms"])
                 for row in rows}
        return [found.get(path, (0, 0)) for path in self.paths], self._ran()

    def _ran(self):
        """Microseconds that all workers have had, from head to tail."""
        total = 0
        for pid in self.on.httpd.children():
            try:
                total += int(pathlib.Path(f"/proc/{pid}/schedstat")
                             .read_text().split()[0])
            except OSError:
                pass  # ended
        return total / 1000

    def run(self, load):
        """([us more of each path than of the last], us that a whole request
        of the last takes)."""
        before, ran = self._looked()
        load()
        after, ran_after = self._looked()
        each, n = [], 0
        for was, now in zip(before, after):
            count = now[0] - was[0]
            each.append((now[1] - was[1]) / max(1, count))
            n += count
        more = [one - each[-1] for one in each]
        return more, (ran_after - ran) / max(1, n) - statistics.mean(more)


def rounds_of(c, load, beside, value):
    """The mean of so many rounds; the first warms up."""
    beside.run(load)
    c.voids.clear()
    return ratio.level([value(*beside.run(load))
                        for _ in range(c.args.rounds)])


@measure("CPU that a rule which never queues adds to a trivial POST, percent",
         ("YoyakuThrottle",))
def throttle_cost_percent(c):
    # fewer bookers than the limit: nobody ever waits. A container costs what
    # httpd takes to merge it, whatever stands in it: so both have one, and a
    # third path has none
    on = c.stand(("trivial",), conf=STATUS + (
        '<Location "/trivial/ruled">\n'
        "    YoyakuThrottle load limit=60 busy=500\n</Location>\n"
        '<Location "/trivial/free">\n    YoyakuThrottle off\n</Location>\n'))
    bare = []

    def load():
        c.shot(on, "trivial", "posts", ["ruled", "free", "bare"], bookers=40,
               prove=False, options={
                   "action": 'post POST /trivial/{slot} {"places":["A-12"]}'})

    def percent(more, whole):
        bare.append(100 * more[0] / whole)
        return 100 * (more[0] - more[1]) / (whole + more[1])
    found = rounds_of(c, load, Beside(on, *(f"/trivial/{path}" for path in (
        "ruled", "free", "bare"))), percent)
    low, high = found["spread"]
    seen = ratio.level(bare)
    return {**found, "finding": not low <= 0 <= high, "shown": {
        "charts": [], "said": "with the container that it stands in: "
        f"{seen['value']} percent {seen['spread']}"}}


# ---- the room ----

WAITING = 2000


def take_numbers(port, path, n):
    """n visitors of a room, each with his number confirmed: their cookies."""
    cookies = []
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(**headers):
        line.request("GET", path, headers={"Accept": "text/html", **headers})
        answer = line.getresponse()
        answer.read()
        return answer.headers.get_all("Set-Cookie") or []
    while len(cookies) < n:
        number = [cookie.split(";")[0] for cookie in ask()
                  if "_number_" in cookie]
        if not number:
            raise ServerError(f"the room gave visitor {len(cookies) + 1} no "
                              "number")
        ask(Cookie=number[0])
        cookies += number
    line.close()
    return cookies


@measure(f"{WAITING:,} waiting visitors asking where they stand, over the "
         "trivial handler", ("YoyakuWaitingRoom",))
def room_poll_over_trivial(c):
    c.folder.mkdir(parents=True, exist_ok=True)
    key = c.folder / "key"
    key.write_text("k" * 64)
    key.chmod(0o600)
    on = c.stand(("trivial",), conf=STATUS + (
        f'YoyakuKeyFile "{key}"\nKeepAlive On\n<Location "/trivial/room">\n'
        "    YoyakuWaitingRoom load active=1 rate=0.001/s\n</Location>\n"))
    cookies = c.folder / "cookies"
    cookies.write_text("\n".join(take_numbers(
        on.httpd.port, "/trivial/room/x", WAITING)) + "\n")

    # each comes on a line of his own, as those do who ask every 20 s
    def ask(*paths):
        return c.shot(on, "trivial", "boards", paths, bookers=WAITING,
                      prove=False, options={
                          "action": "board GET /trivial/{slot}/x",
                          "header": "Yoyaku-Room: ask", "cookies": cookies,
                          "keepalive": "off", "conditional": "off"})
    found = rounds_of(c, lambda: ask("room", "board"),
                      Beside(on, "/trivial/room", "/trivial/board"),
                      lambda more, whole: whole / (whole + more[0]))
    rates = c.versus(lambda: ask("room"), lambda: ask("board"))
    return {**found, "shown": {"charts": [], "said": "by the workers' CPU; the "
                               f"rates alternated: {rates['value']} "
                               f"{rates['spread']}"}}


# ---- recycling ----

def recycle_over(c, step, conf, **more):
    """Every worker is above the size as soon as it has answered once."""
    conf = f"LoadHeavyWeight 8\nMinSpareServers 5\n{conf}"
    with_ = c.stand(("heavy",), conf=f"YoyakuRecycleAbove 4M\n{conf}")
    none = c.stand(("heavy",), conf=conf)

    def load(on):
        return c.shot(on, "heavy", "boards", ["x"], prove=False, **more,
                      options={"steps": step, "keepalive": "off"})
    found = c.versus(lambda: load(with_), lambda: load(none))
    gone = counter(with_, GONE)
    seconds = c.args.seconds * c.args.rounds
    # one in twenty goes in two seconds: half of that at the least
    if gone < seconds * c.args.workers / 40 / 2:
        c.voids.append(f"only {gone:.0f} workers were replaced in "
                       f"{seconds:.0f} s")
    return {**found, "shown": {"charts": [], "said":
                               f"{gone:.0f} workers were replaced, "
                               f"{counter(with_, PUT_OFF):.0f} times "
                               "one was put off."}}


GONE, PUT_OFF = "yoyaku_recycled_total", "yoyaku_recycle_put_off_total"


def counter(on, name):
    """A counter of the module, as /yoyaku-metrics says it."""
    from .sampler import Scoreboard
    board = Scoreboard(on.httpd.port)
    try:
        return board.metrics().get(name, 0)
    finally:
        board.close()


@measure("requests a second with every worker above YoyakuRecycleAbove, over "
         "none; what they do is wait, so workers decide",
         ("YoyakuRecycleAbove",))
def recycle_over_none(c):
    return recycle_over(c, "plan", "LoadHeavyWait 40")


@measure("the same where CPU decides", ("YoyakuRecycleAbove",))
def recycle_over_none_busy(c):
    return recycle_over(c, "slot", "")


# ---- day one and day two ----

LIMITS = (0, 1, 2, 4, 8, 16)  # 0: no rule, day one
LOOKED = 2  # days of each limit to find the best by
MEMORY_MB, PASSES, HEAVY, LIGHT_RATE = 12, 24, 32, 50
ALLOWED_MB = 12 * MEMORY_MB


class MemoryLimit:
    """A control group of memory: so many MB for a server and its workers. Not
    `works` where the machine does not allow one."""

    def __init__(self, name, mb):
        self.folder, self.works = None, False
        for root, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                           ("/sys/fs/cgroup", "memory.max")):
            folder = pathlib.Path(root) / f"yoyaku-{name}-{os.getpid()}"
            try:
                folder.mkdir()
                (folder / file).write_text(str(mb * 1024 * 1024))
            except OSError:
                if folder.is_dir():
                    folder.rmdir()
                continue
            self.folder, self.works = folder, True
            return

    def take(self, pids):
        for pid in pids:
            (self.folder / "cgroup.procs").write_text(str(pid))

    def faults(self):
        """Major faults of all that were ever in it."""
        text = (self.folder / "memory.stat").read_text()
        return int(dict(line.split() for line in text.splitlines())
                   .get("pgmajfault", 0))

    def drop(self):
        if self.folder is not None:
            try:
                self.folder.rmdir()
            except OSError:
                pass  # its processes have not all ended


class Day:
    """A heavy and a light crowd at once, for some seconds, under one limit."""

    def __init__(self, c, on, room, limit, n):
        self.on, self.limit = on, limit
        if limit:
            on.ctl("throttle", "set", "heavy", f"limit={limit}")
        since, faults = on.log_size(), room.faults() if room.works else 0
        seconds = max(5, c.args.seconds)
        path = "ruled" if limit else "free"
        crowds = {name: Driver(on.build, on.folder / f"day{n}-{name}",
                               on.url, f"{Arm('heavy').text()}\naction board "
                               f"GET /heavy/task/{path}", "boards", ["x"], [],
                               {"seconds": seconds, "seed": c.args.seed + n,
                                "progress_ms": 0, "keepalive": "off",
                                "threads": 1, **options}, record=False)
                  for name, options in (
                      ("heavy", {"plan": "closed", "bookers": HEAVY}),
                      ("light", {"plan": "open", "steps": "slot",
                                 "rate": LIGHT_RATE, "bookers": HEAVY}))}
        for crowd in crowds.values():
            crowd.start()
        self.heavy, self.light = (crowd.wait(seconds + 120)
                                  for crowd in crowds.values())
        self.faults = room.faults() - faults if room.works else None
        self.seconds = self._seconds(on.log_rows(since))
        for name, result in (("heavy", self.heavy), ("light", self.light)):
            bad = result.count(outcome=("broken", "bad", "lost"))
            if bad or result.failures:
                c.voids.append(f"{bad} answers of the {name} crowd were "
                               f"failures, {result.failures}")

    @staticmethod
    def _seconds(rows):
        """Answers of the heavy application in each whole second."""
        ends = collections.Counter(
            int((int(row[0]) + int(row[6]) / 1000) / 1000) for row in rows
            if row[3].startswith("/heavy/task"))
        seconds = range(min(ends, default=0) + 1, max(ends, default=0))
        return [ends[second] for second in seconds]

    @property
    def whole(self):
        return self.heavy.rate + self.light.rate

    def light_ms(self, percent):
        hdr = merged(self.light["from_due"], ("slot",), ("ok",))
        return hdr.at(percent) / 1000


def middle(days, value):
    return round(statistics.median(value(day) for day in days), 2)


def day_charts(days, counted):
    """{limit: [Day]} as four charts side by side."""
    def chart(title, unit, bars):
        return {"title": title, "unit": unit, "groups": {
            f"limit {limit}" if limit else "no rule":
            {name: middle(row, value) for name, value in bars.items()}
            for limit, row in days.items()}}
    made = [
        chart("throughput of the whole", "answers a second", {
            "heavy": lambda day: day.heavy.rate,
            "light": lambda day: day.light.rate}),
        chart("latency of the light one", "ms from the planned send", {
            "p50": lambda day: day.light_ms(50),
            "p95": lambda day: day.light_ms(95),
            "p99": lambda day: day.light_ms(99)}),
        chart("spread of peaks", "heavy answers in a second", {
            "least": lambda day: min(day.seconds, default=0),
            "median": lambda day: statistics.median(day.seconds or [0]),
            "most": lambda day: max(day.seconds, default=0)})]
    if counted:
        made.insert(2, chart("major faults", "for each heavy answer", {
            "faults": lambda day: day.faults / max(1, day.heavy.answers)}))
    return made


@measure("a heavy application beside a light one: answers a second of the "
         "whole under the best limit, over those without a rule",
         ("YoyakuThrottle",))
def day_two_over_day_one(c):
    room = MemoryLimit("day", ALLOWED_MB)
    with tempfile.TemporaryDirectory(prefix="yoyaku-heavy-") as worlds:
        os.chmod(worlds, 0o1777)
        try:
            days, best = day_runs(c, room, worlds)
        finally:
            c.close()
            room.drop()
    c.stands = []
    found = ratio.of([day.whole for day in days[best][LOOKED:]],
                     [day.whole for day in days[0]])
    if found is None:
        c.voids.append("on some day nothing was answered")
        return {"value": None}
    said = (f"{HEAVY} clients of the heavy application ({MEMORY_MB} MB and CPU "
            f"each), {LIGHT_RATE} light requests a second; "
            + (f"server and workers under a limit of {ALLOWED_MB} MB; "
               if room.works else
               "this machine lets nobody limit memory: CPU alone is short; ")
            + f"the best limit is {best}.")
    return {"value": found["value"], "spread": (found["low"], found["high"]),
            "finding": found["finding"],
            "shown": {"said": said, "charts": day_charts(days, room.works)}}


def day_runs(c, room, worlds):
    """({limit: [Day]}, the best limit). It is chosen on its first days, all
    limits alternated, and measured on others: who is best by luck is not. A day
    without a rule takes as long as four with one, so there are no more of them
    than are measured."""
    on = c.stand(("heavy",), conf=(
        f'LoadHeavyFolder "{worlds}"\nLoadHeavyMemory {MEMORY_MB}\n'
        f"LoadHeavyPasses {PASSES}\nYoyakuThrottleWait {2 * HEAVY}\n"
        '<Location "/heavy/task/ruled">\n    YoyakuThrottle heavy limit=1 '
        f"busy={4 * HEAVY} refuse-after=0\n</Location>\n"))
    if room.works:
        room.take([on.httpd.pid, *on.httpd.children()])
    days, n = {limit: [] for limit in LIMITS}, itertools.count()
    Day(c, on, room, LIMITS[-1], next(n))  # warms up

    def go(limits, rounds):
        for limit in (limit for row in ratio.order(limits, rounds)
                      for limit in row):
            days[limit].append(Day(c, on, room, limit, next(n)))
    go(LIMITS[1:], LOOKED)
    best = max(LIMITS[1:], key=lambda limit: middle(days[limit],
                                                    lambda day: day.whole))
    go((best, 0), ratio.LEAST_ROUNDS)
    return days, best
