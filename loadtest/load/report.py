# SPDX-License-Identifier: Apache-2.0
"""runs as one HTML file that needs no network, as JSON and as text"""
import argparse
import json
import pathlib
import sys

from . import arrivals, ratio, runs, svg
from .svg import esc

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;
padding:0 1rem;color:#1a1a1a;background:#fff}
h1,h2,h3{line-height:1.2}table{border-collapse:collapse;margin:1rem 0}
td,th{padding:.25rem .6rem;border-bottom:1px solid #ccc;text-align:right}
td:first-child,th:first-child{text-align:left}svg{width:100%;height:auto;
font:12px system-ui,sans-serif;fill:currentColor}.grid{stroke:#d0d0d0}
.wrong{color:#a40000;font-weight:bold}.right{color:#1b5e20}
.void{background:#fff3cd;padding:.5rem}
@media(prefers-color-scheme:dark){body{background:#161616;color:#e8e8e8}
.grid{stroke:#444}.void{background:#453800}.wrong{color:#ff8a80}
.right{color:#8fd694}td,th{border-color:#444}}
.beside{display:grid;grid-template-columns:1fr 1fr;gap:1rem}
.beside figure{margin:0}
"""


def table(head, rows):
    cells = "".join(f"<th>{esc(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{esc(cell)}</td>" for cell in row)
                   + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def flat(conditions, before=""):
    for key, value in conditions.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{key} ")
        else:
            yield f"{before}{key}", value


def ms(us):
    return round(us / 1000, 2)


# ---- parts of a rush ----

def verdict_html(run):
    right = run["verdict"]["right"]
    parts = ["<h3>Verdict: <span class=\"{0}\">{1}</span></h3><ul>".format(
        "right" if right else "wrong", "right" if right else "WRONG")]
    for check in run["verdict"]["checks"]:
        kind = "right" if check["right"] else "wrong"
        parts.append(f'<li><span class="{kind}">{kind}</span> '
                     f'{esc(check["check"])}: {esc("; ".join(check["said"]))}'
                     "</li>")
    return "".join(parts) + "</ul>"


def latency_html(rows):
    outcomes = {}
    for row in rows:
        outcomes.setdefault(row["action"], {})[row["outcome"] + " p50"] = \
            ms(row["from_due"]["p50"])
        outcomes[row["action"]][row["outcome"] + " p95"] = \
            ms(row["from_due"]["p95"])
    chart = svg.bars("latency from the planned send, per outcome",
                     "ms, each line ten times the one below", outcomes, True)
    head = ("click", "outcome", "n", "due p50", "due p95", "due p99",
            "due max", "send p50", "send p95", "send p99")
    return chart + table(head, [
        (row["action"], row["outcome"], row["from_due"]["n"],
         *(ms(row["from_due"][point]) for point in
           ("p50", "p95", "p99", "max")),
         *(ms(row["from_send"][point]) for point in ("p50", "p95", "p99")))
        for row in rows])


def queue_html(run):
    series = {"journeys inside": [], "requests waiting": [],
              "connecting": [], "places left": []}
    for one in run.get("progress") or []:
        series["journeys inside"].append((one["at"], one["inside"]))
        series["requests waiting"].append((one["at"], one["waiting"]))
        series["connecting"].append((one["at"], one["connecting"]))
        if one["free"] >= 0:
            series["places left"].append((one["at"], one["free"]))
    found = [(one["at"], one["queue"]) for one in run.get("samples") or []
             if one.get("queue") is not None]
    if found:
        series["listen queue"] = found
    return svg.lines("who waits where, against time", "seconds", "",
                     {name: row for name, row in series.items() if row})


def memory_html(memory):
    groups = {moment: {kind: seen[kind]["median"] for kind in
                       ("private", "marginal", "proportional", "resident")}
              for moment, seen in (memory or {}).items() if seen}
    return svg.bars("memory of a worker", "KiB, median", groups)


def edges_html(edges):
    if not edges:
        return "<p>No lock wait was seen in any look.</p>"
    groups = {}
    for edge in edges[:8]:
        groups.setdefault(f"{edge['table']} {edge['index']}", {})[
            edge["kind"]] = edge["seen"]
    return svg.bars("lock waits by table and index", "seen", groups)


def times_html(times):
    return table(("where the time of all answers went", "seconds", "%"),
                 [(row["where"], row["seconds"], row["percent"])
                  for row in times or []])


def rush_html(run):
    parts = [verdict_html(run)]
    if not run["verdict"]["right"]:
        return parts[0] + "<p>A run that is not right has no speed.</p>"
    if run["voids"]:
        parts.append('<p class="void">Void as a measurement: '
                     f'{esc("; ".join(run["voids"]))}</p>')
    parts += ["<h3>Latency per outcome</h3>", latency_html(run["latencies"]),
              "<h3>Queues against time</h3>", queue_html(run)]
    if run.get("arrivals"):
        parts += ["<h3>Arrival</h3>", table(
            arrivals.HEAD, arrivals.cells(run["arrivals"]))]
    seen = run.get("seen")
    if seen:
        parts += ["<h3>Time</h3>", times_html(run["times"]),
                  "<h3>Lock waits</h3>", edges_html(seen["edges"]),
                  "<h3>Memory per worker</h3>", memory_html(seen["memory"]),
                  "<h3>Beside the load</h3>", table(("what", "value"), flat(
                      {key: value for key, value in seen.items()
                       if key not in ("edges", "memory")}))]
    return "".join(parts)


# ---- parts of a ladder ----

def axes(run):
    """What is climbed along, and of what each chart has a line."""
    over_slots = len({rung["bookers"] for rung in run["rungs"]}) == 1 < len(
        run["rungs"])
    return ("slots", "slots on sale") if over_slots else \
        ("bookers", "bookers at once")


def series_of(run, rungs, value):
    """{line: points}: one line an arm, or an arm and number of slots."""
    key, _ = axes(run)
    several = key == "bookers" and len({rung["slots"] for rung in rungs}) > 1
    made = {}
    for rung in rungs:
        for name in run["arms"]:
            point = value(rung, name)
            if point is not None:
                line = f"{name}, {rung['slots']} slots" if several else name
                made.setdefault(line, []).append((rung[key], *point))
    return made


def ladder_html(run):
    parts = [verdict_html(run)]
    if not run["verdict"]["right"]:
        return parts[0] + "<p>A run that is not right has no speed.</p>"
    return parts[0] + climbed_html(run)


def climbed_html(run):
    def slope(rung, name):
        row = next(row for row in run["slopes"][name]
                   if row["rung"] == rung["name"])
        return (row["value"], row["low"], row["high"]) if "value" in row \
            else None
    _, along = axes(run)
    parts = ["<h3>Ladder</h3>", svg.lines(
        "rate over the arm's own first rung", along, "times",
        series_of(run, run["rungs"], slope))]
    base = run["arms"][-1]

    def over(rung, name):
        one = next((one for one in rung["ratios"] if one["of"] == name and
                    one["over"] == base and not one["void"] and
                    "value" in one), None)
        return one and (one["value"], one["low"], one["high"])

    def waits(rung, name):
        return (sum(edge["seen"] for edge in
                    rung["arms"][name]["seen"]["edges"]),)
    found = series_of(run, run["rungs"], over)
    if found:
        parts += [f"<h3>Over {esc(base)}, within the rung</h3>", svg.lines(
            f"rate over {base}", along, "times", found)]
    parts += [f"<h3>Lock wait edges over {esc(along)}</h3>", svg.lines(
        f"lock wait edges over {along}", along, "edges seen",
        series_of(run, run["rungs"], waits))]
    kinds = ("private", "marginal", "proportional", "resident")
    memory = {kind: [(rung[axes(run)[0]], rung["memory"][kind]["median"])
                     for rung in run["rungs"] if rung.get("memory")]
              for kind in kinds}
    if all(memory.values()):
        parts += ["<h3>Memory per worker</h3>", svg.lines(
            f"memory of a worker over {along}", along, "KiB, median", memory)]
    for rung in run["rungs"]:
        parts.append(rung_html(rung))
    return "".join(parts)


def rung_html(rung):
    parts = [f"<h3>{esc(rung['name'])}</h3>", table(
        ("arm", "rounds' spread %", "p50 ms", "p95 ms", "CPU us an answer",
         "driver CPU %", "sampler CPU %", "void"),
        [(name, arm["spread_percent"], *_both(arm["latencies"]),
          arm["cpu_us"], arm["driver_cpu_percent"],
          arm["seen"]["sampler_cpu_percent"],
          "; ".join(arm["voids"]) or "no") for name, arm in
         rung["arms"].items()]),
        table(("ratio", "value"), [
            (f"{one['of']} over {one['over']}",
             ratio.said(one) + (" (void)" if one["void"] else ""))
            for one in rung["ratios"]])]
    for name, arm in rung["arms"].items():
        parts += [f"<h4>{esc(name)}</h4>", times_html(arm["times"])]
    return "".join(parts)


def _both(rows):
    first = next((row for row in rows if row["outcome"] == "ok"), None)
    if first is None:
        return "-", "-"
    return ms(first["from_due"]["p50"]), ms(first["from_due"]["p95"])


def measure_html(run):
    parts = [table(("measure", "value", "spread", "valid", "verdict",
                    "reason"),
                   [(name, one["value"], one["spread"], one["valid"],
                     one["verdict"], one["reason"] or "")
                    for name, one in run["measures"].items()])]
    for name, one in run["measures"].items():
        if "shown" in one:
            parts += [f"<h3>{esc(name)}</h3>", shown_html(one["shown"])]
    return "".join(parts)


def shown_html(shown):
    """What a measure saw beside its value: {"said", "charts": [{"title",
    "unit", "groups"}]}; the charts side by side."""
    charts = "".join(
        "<figure>" + svg.bars(one["title"], one["unit"], one["groups"])
        + f"<figcaption>{esc(one['title'])}</figcaption></figure>"
        for one in shown["charts"])
    return f'<p>{esc(shown["said"])}</p><div class="beside">{charts}</div>'


PARTS = {"rush": rush_html, "ladder": ladder_html, "measure": measure_html}


def html(all_runs):
    parts = ["<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width\">"
             "<title>yoyaku: load report</title><style>", STYLE,
             "</style><h1>Load report</h1>"]
    for run in all_runs:
        conditions = run["conditions"]
        parts += [f"<h2>{esc(run['kind'])} of {esc(conditions['at'])}</h2>",
                  PARTS[run["kind"]](run), "<h3>Conditions</h3>",
                  table(("what", "value"), flat(
                      {**conditions, "asked": run.get("asked", {})}))]
    return "".join(parts) + "</html>\n"


def text(all_runs):
    lines = []
    for run in all_runs:
        lines += [f"{run['kind']} of {run['conditions']['at']}", ""]
        if run["kind"] == "rush":
            lines += _rush_text(run)
        elif run["kind"] == "ladder":
            lines += _verdict_text(run)
            for rung in run["rungs"] if run["verdict"]["right"] else []:
                lines += [f"{rung['name']}: {one['of']} over "
                          f"{one['over']} {ratio.said(one)}"
                          + (" (void)" if one["void"] else "")
                          for one in rung["ratios"]]
        else:
            lines += [f"{name}: {one['value']} ({one['verdict']})"
                      + (f" {one['reason']}" if one["reason"] else "")
                      for name, one in run["measures"].items()]
        lines += [""] + [f"  {key}: {value}" for key, value in
                         flat(run["conditions"])] + [""]
    return "\n".join(lines) + "\n"


def _verdict_text(run):
    lines = [f"verdict: {'right' if run['verdict']['right'] else 'WRONG'}"]
    for check in run["verdict"]["checks"]:
        lines.append(f"  {'right' if check['right'] else 'WRONG'} "
                     f"{check['check']}: {'; '.join(check['said'])}")
    return lines


def _rush_text(run):
    lines = _verdict_text(run)
    if run["verdict"]["right"]:
        lines += [f"void: {void}" for void in run["voids"]]
        lines += [f"{row['action']} {row['outcome']}: n "
                  f"{row['from_due']['n']}, from due p50 "
                  f"{ms(row['from_due']['p50'])} p95 "
                  f"{ms(row['from_due']['p95'])} ms, from send p50 "
                  f"{ms(row['from_send']['p50'])} p95 "
                  f"{ms(row['from_send']['p95'])} ms"
                  for row in run["latencies"]]
        lines += arrivals.lines(run.get("arrivals"))
    return lines


def run(argv):
    made = argparse.ArgumentParser(prog="loadtest/rig report",
                                   description=__doc__)
    made.add_argument("runs", nargs="*", metavar="RUN",
                      help="folders or files of runs (the last one)")
    made.add_argument("--json", action="store_true", help="JSON to stdout")
    made.add_argument("--text", action="store_true", help="text to stdout")
    made.add_argument("--out", metavar="FILE", help="where the HTML goes")
    args = made.parse_args(argv)
    found = [runs.load(name) for name in args.runs] or [runs.load()]
    if args.json:
        print(json.dumps({"runs": found}))
    elif args.text:
        print(text(found), end="")
    else:
        path = pathlib.Path(args.out) if args.out else \
            pathlib.Path(found[-1]["from"]).with_name("report.html")
        path.write_text(html(found))
        print(path)
    if not args.json and not args.text:
        print("one file, no network needed", file=sys.stderr)
    return 0
