# SPDX-License-Identifier: Apache-2.0
"""The sizing page: what to set on this machine, each with its reason and the
number that was measured for it."""
import textwrap


class Page:
    def __init__(self, title):
        self.lines = [title, "=" * len(title), ""]

    def part(self, name, *sentences):
        self.lines.append(name)
        for sentence in sentences:
            self.lines += textwrap.wrap(sentence, 76, initial_indent="    ",
                                        subsequent_indent="    ")
        self.lines.append("")

    def text(self):
        return "\n".join(self.lines) + "\n"


def _memory(run):
    moments = (run.get("seen") or {}).get("memory") or {}
    for moment in ("settled", "warmed", "started"):
        if moments.get(moment):
            return moment, moments[moment], moments
    return None, None, moments


def _workers(page, run, budget_kb):
    moment, memory, moments = _memory(run)
    conditions = run["conditions"]
    if not memory:
        page.part("MaxRequestWorkers", "not measured: the run saw no workers "
                  "of its own (somebody else's server)")
        return None
    each = max(1, memory["marginal"]["median"])
    largest = memory["marginal"]["max"]
    cap = int(budget_kb // largest)
    started = moments.get("started") or memory
    workers = conditions["workers"]
    busy = (run.get("seen") or {}).get("machine_busy_percent") or 0
    advice = min(cap, workers if busy > 85 else 2 * workers)
    page.part(
        f"MaxRequestWorkers  {advice}",
        f"A worker takes {each} KiB of its own (median; the largest "
        f"{largest}), measured {moment}: its private pages, page tables and "
        f"kernel stack. It began with {started['marginal']['median']} KiB. "
        f"Resident looks like {memory['resident']['median']} KiB, most of it "
        "shared: do not divide by that.",
        f"Budget: {budget_kb // 1024} MiB, half of what was free with these "
        f"{workers} workers running. {cap} of the largest fit into it; the "
        "other half is for what else grows: a server that swaps sells "
        "nothing.",
        f"With {workers} the machine was busy {busy} %: " +
        ("more would only wait inside instead of outside."
         if busy > 85 else
         "there is room; measure again with twice as many."))
    return each


def _bytes(cost, where):
    found = cost.get(f"{where}_bytes")
    return "an unmeasured amount" if found is None else f"{found} bytes"


def _waiting(page, run, each):
    seen = run.get("seen") or {}
    cost = seen.get("waiting") or {}
    bookers = (run.get("asked") or {}).get("bookers", 0)
    backlog = max(511, min(4096, bookers))
    page.part(
        f"ListenBacklog  {backlog}",
        f"Somebody who waits in the backlog costs {_bytes(cost, 'backlog')} of "
        "the kernel and nothing of httpd. In this run at most "
        f"{seen.get('queue_max')} waited there, {seen.get('overflows')} times "
        f"it was full and {seen.get('drops')} connections were dropped (then "
        "the browser tries again after 1, 3, 7 s and the visitor sees "
        "nothing). net.core.somaxconn must be as large.",
        f"Waiting in a throttle costs a worker: {each or 'not measured'} KiB "
        "each. Waiting in a waiting room costs no connection at all: "
        f"{_bytes(cost, 'room')} of shared state, and a question every 20 s. "
        + (f"Seen with {cost['people']} people who waited."
           if cost else ""))


def _moments(page, run):
    """All that was seen of a worker's memory."""
    _, memory, moments = _memory(run)
    if not memory:
        return
    page.part("Memory of a worker, KiB, median (largest)", *(
        f"{moment}: " + ", ".join(
            f"{kind} {seen[kind]['median']} ({seen[kind]['max']})"
            for kind in ("private", "proportional", "resident", "marginal"))
        for moment, seen in moments.items() if seen),
        "started: no request yet; warmed: the crowd has just gone; settled: "
        "after a click more. private: its own pages; proportional: with its "
        "part of shared ones; resident: with all of them; marginal: what one "
        "worker more takes, page tables and kernel stack included.")


def _recycling(page, run):
    _, memory, moments = _memory(run)
    started, warmed = moments.get("started"), moments.get("settled")
    if not started or not warmed:
        return
    grown = warmed["private"]["median"] - started["private"]["median"]
    answers = run["result"]["ends"]["done"]
    each = answers / max(1, run["conditions"]["workers"])
    page.part(
        "MaxConnectionsPerChild 0 or large; YoyakuRecycleAbove "
        f"{max(16, 4 * warmed['private']['max'] // 1024)}M",
        f"Over {each:.0f} answers a worker it grew by {grown} KiB "
        f"({started['private']['median']} to {warmed['private']['median']}). "
        "MaxConnectionsPerChild ends workers by number of connections, big or "
        "small, and all of them about at once in a rush; a limit on memory "
        "ends the one that grew.")


def _paths(page, run):
    rows = run.get("paths")
    if not rows:
        return
    db = (run.get("seen") or {}).get("threads_running_max")
    page.part(
        "YoyakuThrottle limit= for heavy paths",
        "The server's own time, p95, heaviest first: " + "; ".join(
            f"{row['path']} {row['p95_us'] / 1000:.1f} ms ({row['n']} answers)"
            for row in rows[:4]) +
        f". At most {db} threads of the database ran at once. A path that "
        "keeps a worker for long gets a limit, so that limit x its time and "
        "memory leave the desk its workers: begin with a tenth of "
        f"MaxRequestWorkers, here {max(1, run['conditions']['workers'] // 10)}"
        ".")


def _database(page, run):
    seen = run.get("seen")
    if not seen:
        return
    status = seen["status"]
    commits = max(1, status["Com_commit"])
    # newer servers count the log's syncs among all others
    syncs = status["Innodb_os_log_fsyncs"] or status["Innodb_data_fsyncs"]
    page.part(
        "DBDPersist Off, YoyakuConnections 16",
        f"At most {seen['threads_connected_max']} connections were open for "
        f"{run['conditions']['workers']} workers: YoyakuConnections keep "
        "theirs. max_connections must be above the workers of all hosts: each "
        "may open one for the time of a request.")
    page.part(
        "innodb_flush_log_at_trx_commit 1",
        f"{status['Com_commit']} commits, {syncs} syncs "
        f"({syncs / commits:.2f} a commit): what was answered as confirmed is "
        "on disk. 2 is faster and loses the last second of confirmed orders "
        "with the power.",
        f"Row locks: {status['Innodb_row_lock_waits']} waits, "
        f"{status['Innodb_row_lock_time'] / max(1, status['Innodb_row_lock_waits']):.1f}"
        f" ms each; deadlocks {status['Innodb_deadlocks']}.")
    page.part(
        "innodb_buffer_pool_size",
        f"{run['conditions']['database'].get('innodb_buffer_pool_size')} bytes "
        f"here with {seen['major_faults']} major faults: slots on sale must "
        "fit; a place takes about 60 bytes in its slot.")


def _not(page, run, each):
    seen = run.get("seen") or {}
    busy = (seen.get("workers_busy") or {}).get("max")
    times = run.get("times") or []
    first = times[0] if times else {"where": "not measured", "percent": 0}
    bookers = (run.get("asked") or {}).get("bookers", 0)
    conditions = run["conditions"]
    page.part(
        "What not to do: raise MaxRequestWorkers for the crowd",
        f"{busy} of {conditions.get('workers')} workers were busy at "
        f"the most, and most of the time of all answers went to "
        f"{first['where']} ({first['percent']} %). A worker for each of the "
        f"{bookers} would take {bookers * (each or 0) // 1024} MiB, while at "
        f"most {seen.get('threads_running_max')} statements ran in the "
        f"database at once and {conditions['cpus']} CPUs were "
        f"{seen.get('machine_busy_percent')} % busy: they would stand in more "
        "places before the same CPU, the same commit and the same rows. Let "
        "the crowd wait where waiting is cheap: in the backlog for a second, "
        "in a waiting room for longer.")


def page(run):
    """Text; every number of it comes from the run."""
    if not run["verdict"]["right"]:
        return ("The run was not right, so nothing is sized from it:\n" +
                "\n".join("  " + "; ".join(check["said"])
                          for check in run["verdict"]["checks"]
                          if not check["right"]) + "\n")
    made = Page("Sizing, from the run of " + run["conditions"]["at"])
    if run["voids"]:
        made.part("With care", "This run is void as a measurement: "
                  + "; ".join(run["voids"]) + ". Memory and queues below still "
                  "hold; times do not.")
    budget = 0
    if run.get("seen"):
        budget = run["seen"]["available_mb_min"] * 1024 // 2
        _, memory, _ = _memory(run)
        budget += memory["marginal"]["sum"] if memory else 0
    each = _workers(made, run, budget)
    _moments(made, run)
    _waiting(made, run, each)
    _recycling(made, run)
    _paths(made, run)
    _database(made, run)
    _not(made, run, each)
    return made.text()
