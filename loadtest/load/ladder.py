# SPDX-License-Identifier: Apache-2.0
"""arms against each other, rung by rung: A B B A, slopes, spreads, ratios

A rung is a number of bookers in a closed loop. The ladder is climbed up and
down again and again: each time every rung sees one round of every arm, and on
the way down all come in the reverse order, so that a drift of the machine meets
all rungs and arms alike. Each arm's slope is its rate over its own first rung;
arms are compared within a rung only.
"""
import argparse
import itertools
import json
import statistics
import sys

from commands import house
from servers import ServerError

from . import proc, ratio, report, runs, stand, verdict
from .arms import Arm
from .driver import mix_areas
from .rush import latencies
from .shot import Shot

WARM_SECONDS = 1.0  # of each arm on each rung, before anything counts


def parser():
    made = argparse.ArgumentParser(
        prog="loadtest/rig ladder", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--arms", default="yoyaku,php-slotrow,trivial",
                      metavar="A,B,..", help="folders of loadtest/arms")
    made.add_argument("--rungs", default="8,20,40,80", metavar="N,N,..",
                      help="bookers at once (8,20,40,80)")
    made.add_argument("--rounds", type=int, default=16, metavar="N",
                      help="of each arm in each rung, even (16)")
    made.add_argument("--seconds", type=float, default=1, metavar="S",
                      help="of each round (1)")
    made.add_argument("--mix", default="counter", metavar="FILE",
                      help="what they do (counter)")
    made.add_argument("--slots", default="1", metavar="N,N,..",
                      help="slots on sale; several: each rung with each (1)")
    made.add_argument("--hall", metavar="FILE|generated:SECTIONSxPLACES")
    made.add_argument("--workers", type=int, default=80, metavar="N")
    made.add_argument("--mpm", choices=["prefork", "event", "worker"],
                      default="prefork")
    made.add_argument("--saturate", action="store_true",
                      help="void unless nearly all workers were busy")
    made.add_argument("--cpus", metavar="MAP",
                      help="driver=0,httpd=1,db=1 (anywhere)")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--json", action="store_true")
    return made


def say(text="", end="\n"):
    print(text, file=sys.stderr, end=end, flush=True)


class Rung:
    """All rounds of all arms at one number of bookers."""

    def __init__(self, bookers, slots, arms):
        self.bookers, self.slots = bookers, slots
        self.shots = {arm.name: [] for arm in arms}
        self.keys = {arm.name: [f"r{bookers}-{slots}-{arm.name}-{n}"
                                for n in range(slots)] for arm in arms}
        self.memory = None  # of the workers, when the rung was climbed

    @property
    def name(self):
        return (f"{self.bookers} bookers, {self.slots} slot"
                + ("s" if self.slots > 1 else ""))

    def add(self, shot):
        self.shots[shot.arm.name].append(shot)

    def rates(self, name):
        return [shot.rate for shot in self.shots[name]]

    def voids(self, name):
        return sorted({void for shot in self.shots[name]
                       for void in shot.voids})

    def said(self):
        made = {"bookers": self.bookers, "slots": self.slots,
                "name": self.name, "arms": {}, "ratios": [],
                "memory": self.memory}
        for name, shots in self.shots.items():
            middle = sorted(shots, key=lambda shot: shot.rate)[len(shots) // 2]
            made["arms"][name] = {
                "rates": [round(rate, 1) for rate in self.rates(name)],
                "rate": round(statistics.median(self.rates(name)), 1),
                "spread_percent": ratio.spread(self.rates(name)),
                "voids": self.voids(name), "times": middle.times,
                "seen": middle.seen, "samples": middle.samples,
                "latencies": latencies(middle.result),
                "cpu_us": round(middle.cpu_us(outcome=("ok", "refused"))),
                "driver_cpu_percent": round(
                    100 * middle.result.cpu_of_a_core, 1)}
        for one, other in itertools.combinations(self.shots, 2):
            found = ratio.of(self.rates(one), self.rates(other))
            void = bool(self.voids(one) or self.voids(other))
            made["ratios"].append({"of": one, "over": other, "void": void,
                                   **(found or {})})
        return made


def slopes(rungs):
    """Each arm over its own first rung, with the rounds' spread."""
    names = list(rungs[0].shots)
    return {name: [{"bookers": rung.bookers, "slots": rung.slots,
                    "rung": rung.name,
                    "void": bool(rung.voids(name) or rungs[0].voids(name)),
                    **(ratio.of(rung.rates(name), rungs[0].rates(name)) or {})}
                   for rung in rungs] for name in names}


def shoot(made, rung, arm, args, warm=0.0):
    """One round; of `warm` seconds when it only warms up."""
    return Shot(made, arm, args.mix, rung.bookers, warm or args.seconds,
                rung.keys[arm.name], {"seed": args.seed},
                saturate=args.saturate, watch=not warm, prove=not warm,
                name=f"r{rung.bookers}-{arm.name}").run()


def climb(made, arms, args, rungs):
    """Up, and down as the mirror of it, as often as there are rounds."""
    for rung in rungs:
        for arm in arms:
            for key in rung.keys[arm.name]:
                arm.fresh_slot(made, key)
            shoot(made, rung, arm, args, warm=WARM_SECONDS)
    for n in range(args.rounds):
        step = 1 if n % 2 == 0 else -1
        for rung in rungs[::step]:
            for arm in arms[::step]:
                shot = shoot(made, rung, arm, args)
                rung.add(shot)
                say(f"  {rung.name:24} {arm.name:24} {shot.rate:8.0f}/s"
                    + ("  VOID: " + "; ".join(shot.voids) if shot.voids
                       else ""))
            rung.memory = proc.workers_memory(made.httpd.children())
    return rungs


def show(run):
    """No verdict, no speed."""
    for check in run["verdict"]["checks"]:
        say(f"{'right' if check['right'] else 'WRONG'}  {check['check']}: "
            + "; ".join(check["said"][:4]))
    if not run["verdict"]["right"]:
        say("no figures: a run that is not right has no speed")
        return
    for rung in run["rungs"]:
        say(f"\n{rung['name']}")
        for name, arm in rung["arms"].items():
            slope = next(one for one in run["slopes"][name]
                         if one["rung"] == rung["name"])
            say(f"  {name:24} rounds spread {arm['spread_percent']} %  slope "
                f"{ratio.said(slope) if slope.get('value') != 1 else '1'}"
                + ("  VOID" if arm["voids"] else ""))
            for void in arm["voids"]:
                say(f"      {void}")
            say("      time: " + ", ".join(
                f"{row['where']} {row['percent']} %" for row in arm["times"]))
            for edge in arm["seen"]["edges"][:3]:
                say(f"      waits: {edge['table']}.{edge['index']} "
                    f"{edge['kind']} seen {edge['seen']} times, oldest "
                    f"{edge['oldest_us'] / 1000:.0f} ms")
        for one in rung["ratios"]:
            say(f"  {one['of']} over {one['over']}: {ratio.said(one)}"
                + ("  (void)" if one["void"] else ""))
    say(f"\nreport {run['report']}")


def numbers(text, flag):
    try:
        found = sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise ServerError(f"{flag}: whole numbers with commas") from None
    if found[0] < 1:
        raise ServerError(f"{flag}: 1 or more")
    return found


def run(argv):
    args = parser().parse_args(argv)
    rungs, slots = numbers(args.rungs, "--rungs"), numbers(args.slots,
                                                           "--slots")
    arms = [Arm(name) for name in args.arms.split(",")]
    house.hall_known(args.hall)
    if ratio.refused(args.rounds):
        raise ServerError(ratio.refused(args.rounds))
    stand.prepare(arms)
    where = runs.folder("ladder")
    with stand.Stand(where / "stand", args.hall, arms, args.workers, args.mpm,
                     cpus=args.cpus, areas=mix_areas(args.mix)) as made:
        climbed = climb(made, arms, args,
                        [Rung(bookers, nslots, arms)
                         for bookers in rungs for nslots in slots])
        say("taking the verdict")
        done = {"kind": "ladder", "conditions": {**made.conditions(),
                                                 "seed": args.seed},
                "verdict": verdict.of_books(made).said(),
                "asked": vars(args), "arms": [arm.name for arm in arms],
                "rungs": [rung.said() for rung in climbed],
                "slopes": slopes(climbed),
                "report": str(where / "report.html")}
    runs.keep(where, done)
    (where / "report.html").write_text(report.html([done]))
    (where / "report.txt").write_text(report.text([done]))
    show(done)
    if args.json:
        print(json.dumps(done))
    return 0 if done["verdict"]["right"] else 1
