# SPDX-License-Identifier: Apache-2.0
"""named figures, each the ratio of two arms alternated in one run

Brings up what the measure needs, runs it, takes everything down. None takes
longer than ten minutes. Exit status: 0 measured, 1 void or not right (then it
has no value), 3 the feature that a measure is about does not exist here.
"""
import argparse
import json
import sys

from servers import ServerError

from . import measures, ratio, report, runs, stand
from . import crowded, measures_board  # noqa: F401  register theirs
from .arms import Arm


def parser():
    made = argparse.ArgumentParser(
        prog="loadtest/rig measure", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("names", nargs="*", metavar="NAME")
    made.add_argument("--list", action="store_true", help="all names")
    made.add_argument("--json", action="store_true")
    made.add_argument("--rounds", type=int, default=16, metavar="N",
                      help="of each side, even (16)")
    made.add_argument("--seconds", type=float, default=1.5, metavar="S",
                      help="of each round (1.5)")
    made.add_argument("--workers", type=int, default=80, metavar="N")
    made.add_argument("--bookers", type=int, default=80, metavar="N")
    made.add_argument("--mpm", choices=["prefork", "event", "worker"],
                      default="prefork")
    made.add_argument("--cpus", metavar="MAP",
                      help="driver=0,httpd=1,db=1 (anywhere)")
    made.add_argument("--seed", type=int, default=1)
    return made


def say(text):
    print(text, file=sys.stderr, flush=True)


def missing(name):
    return {"value": None, "spread": None, "valid": False,
            "reason": f"not here yet: {measures.lacks(name)}",
            "verdict": "missing"}


def one(name, args, where):
    """Measure one; returns (what is printed of it, its conditions)."""
    context = measures.Context(args, where / name)
    try:
        found = measures.MEASURES[name].run(context)
        wrong = context.wrong()
    finally:
        context.close()
    if wrong:
        return {"value": None, "spread": None, "valid": False,
                "driver_cpu_percent": None, "reason": "; ".join(wrong),
                "verdict": "WRONG"}, context.conditions
    voids = sorted(set(context.voids))
    low, high = found.get("spread") or (None, None)
    finding = found.get("finding", True)
    return {"value": found["value"],
            "spread": [low, high] if low is not None else None,
            "sides": found.get("sides"), "rounds": found.get("rounds"),
            "driver_cpu_percent": round(100 * max(context.driver_cpu,
                                                  default=0), 1),
            "valid": not voids, "reason": "; ".join(voids) or None,
            "verdict": "void" if voids else
            "finding" if finding else "not a finding",
            **({"shown": found["shown"]} if "shown" in found else {})
            }, context.conditions


def run(argv):
    args = parser().parse_args(argv)
    if args.list:
        for name, made in measures.MEASURES.items():
            lacks = measures.lacks(name) if measures.built() else None
            print(f"{name:34} {made.what}" + (f" [{lacks}]" if lacks else ""))
        return 0
    unknown = [name for name in args.names if name not in measures.MEASURES]
    if unknown or not args.names:
        raise ServerError(("there is no measure " + " ".join(unknown)
                           if unknown else "which measure?")
                          + "; --list names them")
    if ratio.refused(args.rounds):
        raise ServerError(ratio.refused(args.rounds))
    stand.prepare([Arm("php-slotrow")] if "one_slot_over_php_slotrow" in
                  args.names else [])
    where = runs.folder("measure")
    done = {"kind": "measure", "measures": {}, "conditions": {},
            "asked": vars(args)}
    for name in args.names:
        if measures.lacks(name):
            done["measures"][name] = missing(name)
            continue
        said, conditions = one(name, args, where)
        done["measures"][name] = said
        done["conditions"][name] = conditions
        say(f"{name}: {said['value']} {said['spread'] or ''} "
            f"{said['verdict']}, driver "
            f"{said['driver_cpu_percent']} % of a core"
            + (f" ({said['reason']})" if said["reason"] else ""))
    done["conditions"] = {**stand.conditions(), "seed": args.seed,
                          **done["conditions"]}
    runs.keep(where, done)
    (where / "report.html").write_text(report.html([done]))
    if args.json:
        print(json.dumps({"measures": done["measures"],
                          "conditions": done["conditions"]}))
    else:
        for name, said in done["measures"].items():
            print(f"{name} {said['value']} {said['verdict']}"
                  + (f": {said['reason']}" if said["reason"] else ""))
    verdicts = {said["verdict"] for said in done["measures"].values()}
    return 3 if "missing" in verdicts else int(bool(
        verdicts & {"void", "WRONG"}))
