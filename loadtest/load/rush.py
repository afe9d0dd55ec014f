# SPDX-License-Identifier: Apache-2.0
"""a crowd comes at once: the journey, the verdict, a chart, a sizing page

One event loop a core; each booker has a connection, a cookie jar and the whole
journey before him. Without --rate or --closed everybody comes once, within
--stagger seconds.
"""
import argparse
import json
import os
import random
import sys
import time

from commands import house
from servers import ServerError

from . import (arrivals, proc, report, runs, sizing, stand, target, verdict,
               waiting)
from .arms import Arm
from .driver import Result, mix_areas
from .hdr import ms
from .shot import Shot


def parser():
    made = argparse.ArgumentParser(
        prog="loadtest/rig rush", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--bookers", type=int, default=2000, metavar="N",
                      help="how many come, or are there at once (2000)")
    made.add_argument("--slots", type=int, default=1, metavar="N",
                      help="slots on sale (1)")
    made.add_argument("--hall", metavar="FILE|generated:SECTIONSxPLACES",
                      help="what is on sale (a theatre of 1,011 seats)")
    made.add_argument("--mix", default="opening", metavar="FILE",
                      help="what they do: a file, or a name of "
                           "loadtest/scenarios (opening)")
    how = made.add_mutually_exclusive_group()
    how.add_argument("--rate", type=float, metavar="R",
                     help="open plan: R journeys begin a second, come what may")
    how.add_argument("--closed", action="store_true",
                     help="closed loop: who is through begins anew")
    made.add_argument("--seconds", type=float, metavar="S",
                      help="how long with --rate and --closed (20), without "
                           "them how long at the most (150)")
    made.add_argument("--spread", default="even", metavar="even|best|skew:N",
                      help="any slot and place; the best places first; N "
                           "percent want the first slot (even)")
    made.add_argument("--stagger", type=float, default=10, metavar="S",
                      help="everybody has come within S seconds (10)")
    made.add_argument("--graceful-every", type=float, metavar="S",
                      help="a graceful restart every S seconds")
    made.add_argument("--kill-every", type=float, metavar="MS",
                      help="a worker is killed every MS milliseconds")
    made.add_argument("--workers", type=int, default=80, metavar="N",
                      help="requests at a time (80)")
    made.add_argument("--mpm", choices=["prefork", "event", "worker"],
                      default="prefork")
    made.add_argument("--arm", default="yoyaku",
                      help="what is driven: a folder of loadtest/arms (yoyaku)")
    made.add_argument("--conf", metavar="FILE",
                      help="included last in httpd's configuration")
    made.add_argument("--target", metavar="URL",
                      help="a staging server of your own; then --slot says "
                           "what is on sale there")
    made.add_argument("--insecure", action="store_true",
                      help="with --target https://: believe any certificate")
    made.add_argument("--slot", action="append", default=[], metavar="KEY",
                      help="with --target: a slot there, once or more")
    made.add_argument("--cpus", metavar="MAP",
                      help="driver=0,httpd=1,db=1 (anywhere)")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--json", action="store_true",
                      help="the run as JSON on standard output")
    return made


def say(text="", end="\n"):
    print(text, file=sys.stderr, end=end, flush=True)


class Progress:
    """A line a second."""

    HEAD = ("   s  answers/s   holds  confirmed  refused   busy  places left  "
            "p50 ms  p95 ms  connecting  waiting  inside")

    def __init__(self):
        self.lines = 0
        self.last = None

    def __call__(self, now):
        if self.lines % 20 == 0:
            say(self.HEAD)
        self.lines += 1
        self.last = now
        left = now["free"] if now["free"] >= 0 else "-"
        say(f"{now['at']:4.0f}  {now['rate']:9.0f}  {now['holds']:6}  "
            f"{now['confirmed']:9}  {now['refused']:7}  {now['busy']:5}  "
            f"{left!s:>11}  {ms(now['p50_us']):>6}  {ms(now['p95_us']):>6}  "
            f"{now['connecting']:10}  {now['waiting']:7}  {now['inside']:6}")


class Trouble:
    """Graceful restarts and dead workers while it runs."""

    def __init__(self, on, args):
        self.on, self.random = on, random.Random(args.seed)
        self.every = {"graceful": args.graceful_every,
                      "kill": args.kill_every and args.kill_every / 1000}
        now = time.monotonic()
        self.next = {what: now + every for what, every in self.every.items()
                     if every}
        self.done = {"graceful": 0, "kill": 0}

    def __call__(self):
        now = time.monotonic()
        for what, due in list(self.next.items()):
            if now < due:
                continue
            self.next[what] = now + self.every[what]
            self.done[what] += 1
            if what == "graceful":
                self.on.graceful()
            else:
                self.on.kill_worker(self.random)


def plan(args):
    """The options of the driver that say how many and when."""
    options = {"bookers": args.bookers, "spread": args.spread,
               "seed": args.seed, "progress_ms": 1000}
    seconds = args.seconds
    if args.rate:
        options.update(plan="open", rate=args.rate, seconds=seconds or 20)
    elif args.closed:
        options.update(plan="closed", seconds=seconds or 20)
    else:
        options.update(plan="crowd", stagger_ms=int(args.stagger * 1000),
                       seconds=seconds or 150)
    return options


def latencies(result):
    """Rows for people: action, outcome, n, from due, from send."""
    rows = []
    for due in result["from_due"]:
        sent = next(row for row in result["from_send"]
                    if (row["action"], row["outcome"]) ==
                    (due["action"], due["outcome"]))
        one = type(result)(from_due=[due], from_send=[sent])
        rows.append({"action": due["action"], "outcome": due["outcome"],
                     "from_due": one.hdr().short(),
                     "from_send": one.hdr(since="from_send").short()})
    return rows


def show_latencies(rows):
    say("\naction     outcome        n    from due ms: p50   p95    p99    max"
        "   from send ms: p50   p95    p99")
    for row in rows:
        due, sent = row["from_due"], row["from_send"]
        say(f"{row['action']:10} {row['outcome']:9} {due['n']:7}         "
            f"{ms(due['p50']):>9} {ms(due['p95']):>6} {ms(due['p99']):>6} "
            f"{ms(due['max']):>6}           {ms(sent['p50']):>9} "
            f"{ms(sent['p95']):>6} {ms(sent['p99']):>6}")


def show(run):
    """What a run says on the terminal. No verdict, no speed."""
    result = run["result"]
    say("\nverdict: " + ("right" if run["verdict"]["right"] else "WRONG"))
    for check in run["verdict"]["checks"]:
        say(f"  {'right' if check['right'] else 'WRONG'}  {check['check']}: "
            + "; ".join(check["said"][:4]))
    lost = {end: n for end, n in result["ends"].items() if end != "done" and n}
    say(f"  transport failures: {lost or 'none'}; asked again with the key "
        f"{result['replayed']}, never learned {result['unknown']}")
    ways = {way: n for way, n in result["journeys"].items() if n}
    if result["moved"]:
        ways["moved to another slot"] = result["moved"]
    say("  journeys: " + ", ".join(f"{n} {way}" for way, n in ways.items()))
    if not run["verdict"]["right"]:
        say("\nno figures: a run that is not right has no speed")
        return
    if run["voids"]:
        say("\nVOID as a measurement: " + "; ".join(run["voids"]))
    show_latencies(run["latencies"])
    for line in arrivals.lines(run.get("arrivals")):
        say("\n" + line)
    if run.get("times"):
        say("\ntime of all answers: " + ", ".join(
            f"{row['where']} {row['percent']} %" for row in run["times"]))
    say(f"\nreport {run['report']}\nsizing {run['sizing']}")


def on_stand(args, where):
    arm = Arm(args.arm)
    where.joinpath("keys").mkdir()
    conf = waiting.room_conf(str(where / "keys" / "room"))
    if args.conf:
        conf += f'Include "{os.path.abspath(args.conf)}"\n'
    with stand.Stand(where / "stand", args.hall, [arm], args.workers, args.mpm,
                     conf, cpus=args.cpus, areas=mix_areas(args.mix)) as made:
        slots = [f"rush-{n}" for n in range(1, args.slots + 1)]
        for slot in slots:
            arm.fresh_slot(made, slot)
        started = memory(made)
        trouble = Trouble(made, args)
        shot = Shot(made, arm, args.mix, args.bookers, None, slots, plan(args),
                    record=True, name="crowd",
                    prove=not (args.graceful_every or args.kill_every))
        shot.run(Progress(), trouble)
        warmed = memory(made)
        say("taking the verdict")
        said = verdict.of_run(made, slots, shot.result,
                              shot.driver.recorded(),
                              arm.book)
        shot.seen["waiting"] = waiting.seen(made)
        shot.seen["memory"] = {"started": started, "warmed": warmed,
                               "settled": settled(made, arm, slots)}
        return {"kind": "rush", "conditions": made.conditions(),
                "verdict": said.said(), "voids": shot.voids,
                "trouble": trouble.done, "result": dict(shot.result),
                "times": shot.times,
                "arrivals": arrivals.rows(shot.result, shot.paths),
                "paths": shot.paths, "seen": shot.seen, "samples": shot.samples,
                "progress": shot.driver.progress}


def memory(made):
    return proc.workers_memory(made.httpd.children())


def settled(made, arm, slots):
    """When the crowd has gone and each worker has answered a click more."""
    Shot(made, arm, "boards", made.workers, 0.5, slots, watch=False,
         prove=False, name="settle").run()
    time.sleep(0.5)
    return memory(made)


def run(argv):
    args = parser().parse_args(argv)
    if args.bookers < 1 or args.slots < 1 or args.workers < 1:
        raise ServerError("--bookers, --slots and --workers are 1 or more")
    if (args.slot or args.insecure) and not args.target:
        raise ServerError("--slot and --insecure go with --target; --slots "
                          "says how many are on sale here")
    house.hall_known(args.hall)
    stand.prepare([Arm(args.arm)])
    where = runs.folder("rush")
    made = (target.rush(args, plan(args), where, Progress()) if args.target
            else on_stand(args, where))
    made["asked"] = vars(args)
    made["latencies"] = latencies(Result(made["result"]))
    made["sizing"] = str(where / "sizing.txt")
    made["report"] = str(where / "report.html")
    (where / "sizing.txt").write_text(sizing.page(made))
    runs.keep(where, made)
    (where / "report.html").write_text(report.html([made]))
    (where / "report.txt").write_text(report.text([made]))
    show(made)
    if args.json:
        print(json.dumps(made))
    return 0 if made["verdict"]["right"] else 1
