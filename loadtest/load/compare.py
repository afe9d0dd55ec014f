# SPDX-License-Identifier: Apache-2.0
"""two runs: which ratios agree; absolutes are not compared"""
import argparse
import json

from servers import ServerError

from . import ratio, runs


def ratios(run):
    """{name: ratio} of everything in a run that may be compared."""
    found = {}
    if run["kind"] == "ladder":
        for rung in run["rungs"]:
            for one in rung["ratios"]:
                if not one["void"] and "value" in one:
                    found[f"{one['of']} over {one['over']}, "
                          f"{rung['name']}"] = one
        for name, rows in run["slopes"].items():
            for row in rows[1:]:
                if row["void"] or "value" not in row:
                    continue
                found[f"slope of {name}, {row['rung']}"] = row
    elif run["kind"] == "measure":
        for name, one in run["measures"].items():
            if one["valid"] and one["spread"]:
                found[name] = {"value": one["value"], "low": one["spread"][0],
                               "high": one["spread"][1]}
    else:
        raise ServerError("a rush has absolutes only, and those are not "
                          "compared: a ladder or measure has ratios")
    return found


def run(argv):
    made = argparse.ArgumentParser(prog="loadtest/rig compare",
                                   description=__doc__)
    made.add_argument("one", metavar="RUN")
    made.add_argument("other", metavar="RUN")
    made.add_argument("--json", action="store_true")
    args = made.parse_args(argv)
    one, other = (ratios(runs.load(name)) for name in (args.one, args.other))
    rows = []
    for name in one:
        if name in other:
            rows.append({"ratio": name, "agrees": ratio.agree(one[name],
                                                              other[name]),
                         "one": [one[name][k] for k in
                                 ("value", "low", "high")],
                         "other": [other[name][k] for k in
                                   ("value", "low", "high")]})
    only = sorted(set(one) ^ set(other))
    if args.json:
        print(json.dumps({"absolutes": "not compared", "ratios": rows,
                          "in_one_only": only}))
    else:
        print("Absolute figures of two runs are not compared: another hour is "
              "another machine.")
        for row in rows:
            print(f"{'agree   ' if row['agrees'] else 'DISAGREE'}  "
                  f"{row['ratio']}: " + " and ".join(
                      f"{ratio.digits(value)} ({ratio.digits(low)} to "
                      f"{ratio.digits(high)})" for value, low, high in
                      (row["one"], row["other"])))
        for name in only:
            print(f"in one of them only: {name}")
    return 0 if rows and all(row["agrees"] for row in rows) else 1
