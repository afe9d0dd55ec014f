# SPDX-License-Identifier: Apache-2.0
"""Looks beside the load, a few times a second, and says what that cost.

The scoreboard is read over a connection of its own, opened before the load
and kept: it has a worker to itself (the stand starts one more), since a
question that waits in the backlog behind the crowd answers nothing.
"""
import collections
import http.client
import re
import socket
import threading
import time

from . import proc

EDGES = """
SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, l.lock_table,
       COALESCE(l.lock_index, ''), b.trx_state, b.trx_query IS NULL,
       TIMESTAMPDIFF(MICROSECOND, b.trx_started, SYSDATE(6)),
       TIMESTAMPDIFF(MICROSECOND, r.trx_wait_started, SYSDATE(6))
FROM information_schema.INNODB_LOCK_WAITS w
JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id
JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id
JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id
"""
EDGES_8 = """
SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id,
       CONCAT(l.OBJECT_SCHEMA, '.', l.OBJECT_NAME), COALESCE(l.INDEX_NAME, ''),
       b.trx_state, b.trx_query IS NULL,
       TIMESTAMPDIFF(MICROSECOND, b.trx_started, SYSDATE(6)),
       TIMESTAMPDIFF(MICROSECOND, r.trx_wait_started, SYSDATE(6))
FROM performance_schema.data_lock_waits w
JOIN information_schema.INNODB_TRX r
  ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID
JOIN information_schema.INNODB_TRX b
  ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID
JOIN performance_schema.data_locks l
  ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID
"""
STATUS = ("Threads_connected", "Threads_running", "Innodb_row_lock_waits",
          "Innodb_row_lock_time", "Innodb_row_lock_current_waits",
          "Innodb_deadlocks", "Com_commit", "Com_rollback", "Questions",
          "Innodb_os_log_fsyncs", "Innodb_data_fsyncs", "Innodb_log_writes", "Handler_commit",
          "Innodb_log_waits", "Com_insert", "Com_select", "Com_begin")
CACHE = ("get_hits", "get_misses", "evictions", "cmd_set", "cmd_get",
         "curr_items")
NOT_LOAD = ("/server-status", "/yoyaku-metrics")


class Scoreboard:
    """mod_status over one kept connection."""

    def __init__(self, port):
        self.port, self.line = port, None

    def read(self):
        """{"busy", "idle", "letters", ...}; None when nobody answered."""
        try:
            if self.line is None:
                self.line = http.client.HTTPConnection("127.0.0.1", self.port,
                                                       timeout=2)
            self.line.request("GET", "/server-status?auto")
            text = self.line.getresponse().read().decode("latin-1")
        except (OSError, http.client.HTTPException):
            self.close()
            return None
        found = dict(line.split(": ", 1) for line in text.splitlines()
                     if ": " in line)
        letters = collections.Counter(found.get("Scoreboard", ""))
        # the one that answers this is busy with nothing else; one that keeps
        # a connection for its client is taken, but it does not work
        busy = int(found.get("BusyWorkers", 0)) - 1
        return {"busy": busy, "working": busy - letters["K"],
                "idle": int(found.get("IdleWorkers", 0)),
                "accesses": int(found.get("Total Accesses", 0)),
                "letters": {k: n for k, n in letters.items() if k != "."},
                "yoyaku": {k: v for k, v in found.items()
                           if k.startswith("Yoyaku")}}

    def metrics(self):
        """{"name{labels}": value} of the module's counters; {} without."""
        try:
            if self.line is None:
                self.line = http.client.HTTPConnection("127.0.0.1", self.port,
                                                       timeout=2)
            self.line.request("GET", "/yoyaku-metrics")
            answer = self.line.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            self.close()
            return {}
        if answer.status != 200:
            return {}
        found = {}
        for line in text.splitlines():
            name, _, value = line.rpartition(" ")
            if name and not line.startswith("#"):
                found[name] = _number(value)
        return found

    def close(self):
        if self.line is not None:
            self.line.close()
            self.line = None


class Sampler:
    def __init__(self, stand, driver=None, every=0.5):
        self.stand, self.driver, self.every = stand, driver, every
        self.samples, self.edges = [], collections.Counter()
        self.edge_ages = collections.defaultdict(int)
        self.moments = {}
        self.cpu_seconds = 0.0
        self.board = Scoreboard(stand.httpd.port)
        self.db = None
        self.over = threading.Event()
        self.thread = None
        self.modern = None

    # ---- life ----

    def start(self):
        self.db = self.stand.connect()
        self.first = self._counters()
        self.began = time.monotonic()
        self.board.read()
        self.metrics_first = self.board.metrics()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        return self

    def stop(self):
        self.over.set()
        self.thread.join()
        self.last = self._counters()
        self.seconds = time.monotonic() - self.began
        last = self.board.metrics()
        self.metrics = {name: round(last[name] - before, 6)
                        for name, before in self.metrics_first.items()
                        if name in last and last[name] != before
                        and re.search(r"_(total|sum|count)\b", name)}
        self.board.close()
        self.db.close()
        return self

    def memory(self, moment):
        """"started", "warmed", "settled": read when asked for, it is dear."""
        began = time.thread_time()
        self.moments[moment] = proc.workers_memory(
            self.stand.httpd.children())
        self.cpu_seconds += time.thread_time() - began

    def _run(self):
        while not self.over.wait(self.every):
            began = time.thread_time()
            try:
                self.samples.append(self._sample())
                self._look_at_edges()
            except Exception as error:  # the database may be restarting
                self.samples.append({"error": repr(error)})
            self.cpu_seconds += time.thread_time() - began

    # ---- one look ----

    def _sample(self):
        info = proc.meminfo()
        queue = proc.listen_queue(self.stand.httpd.port)
        status = self._status()
        return {
            "at": round(time.monotonic() - self.began, 2),
            "workers": self.board.read(),
            "queue": queue[0] if queue else None,
            "backlog": queue[1] if queue else None,
            "available_kb": info["MemAvailable"],
            "threads_running": status.get("Threads_running"),
            "threads_connected": status.get("Threads_connected"),
            "lock_waits_now": status.get("Innodb_row_lock_current_waits"),
        }

    def _query(self, sql):
        with self.db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def _status(self):
        wanted = ",".join(f"'{name}'" for name in STATUS)
        rows = self._query("SHOW GLOBAL STATUS WHERE Variable_name IN "
                           f"({wanted})")
        return {name: int(value) for name, value in rows}

    def _look_at_edges(self):
        """Who waits for whom. The blocker waits itself: a queue. It runs a
        statement: at work. It runs none: a hostage of whoever has the
        transaction open."""
        if self.modern is None:
            version = self._query("SELECT VERSION()")[0][0]
            self.modern = "MariaDB" not in version
        for row in self._query(EDGES_8 if self.modern else EDGES):
            _, _, table, index, state, silent, age, _ = row
            kind = ("queue" if state == "LOCK WAIT"
                    else "hostage" if silent else "at work")
            name = re.sub(r"[`\"]", "", table).split(".")[-1]
            key = name, index, kind
            self.edges[key] += 1
            self.edge_ages[key] = max(self.edge_ages[key], int(age or 0))

    def _counters(self):
        pids = self.stand.httpd.children()
        vm = proc.vmstat()
        return {
            "httpd": proc.cpu(self.stand.httpd.pid, pids),
            "db": proc.cpu(self.stand.database.pid),
            "memcached": proc.cpu(self.stand.memcached.pid),
            "machine": proc.busy_cpu(),
            "status": self._status(), "cache": self._cache(),
            "overflows": proc.overflows(), "swapped": vm.get("pswpout", 0),
            "major": vm.get("pgmajfault", 0),
            "available_kb": proc.meminfo()["MemAvailable"],
        }

    def _cache(self):
        host, port = self.stand.memcached.address.split(":")
        with socket.create_connection((host, int(port)), 2) as line:
            line.sendall(b"stats\r\n")
            data = b""
            while not data.endswith(b"END\r\n"):
                data += line.recv(65536)
        found = dict(line.split()[1:3] for line in
                     data.decode().splitlines() if line.startswith("STAT"))
        return {name: int(found.get(name, 0)) for name in CACHE}

    # ---- what it saw ----

    def summary(self):
        first, last = self.first, self.last
        good = [one for one in self.samples if "error" not in one]
        workers = [one["workers"] for one in good if one["workers"]]
        wall = self.seconds or 1
        all_cpu = last["machine"][1] - first["machine"][1] or 1
        return {
            "seconds": round(wall, 2),
            "samples": len(good), "missed": len(self.samples) - len(good),
            "sampler_cpu_percent": round(100 * self.cpu_seconds / wall, 2),
            "cpu_seconds": {name: round(last[name] - first[name], 2)
                            for name in ("httpd", "db", "memcached")},
            "machine_busy_percent": round(
                100 * (last["machine"][0] - first["machine"][0]) / all_cpu, 1),
            "workers_busy": _most(workers, "busy"),
            "workers_working": _most(workers, "working"),
            "status": {name: last["status"].get(name, 0) -
                       first["status"].get(name, 0) for name in STATUS},
            "threads_running_max": max((one["threads_running"] for one in good),
                                       default=None),
            "threads_connected_max": max((one["threads_connected"]
                                          for one in good), default=None),
            "cache": {name: last["cache"][name] - first["cache"][name]
                      for name in CACHE},
            "queue_max": max((one["queue"] or 0 for one in good), default=None),
            "overflows": last["overflows"][0] - first["overflows"][0],
            "drops": last["overflows"][1] - first["overflows"][1],
            "available_mb_min": min((one["available_kb"] for one in good),
                                    default=first["available_kb"]) // 1024,
            "swapped": last["swapped"] - first["swapped"],
            "major_faults": last["major"] - first["major"],
            "edges": [{"table": table, "index": index, "kind": kind, "seen": n,
                       "oldest_us": self.edge_ages[table, index, kind]}
                      for (table, index, kind), n in
                      self.edges.most_common()],
            "memory": self.moments, "metrics": self.metrics,
        }

    def voids(self):
        """Why the rig, not the server, may have been the limit."""
        said = []
        seen = self.summary()
        if seen["available_mb_min"] < 256:
            said.append(f"only {seen['available_mb_min']} MB of memory were "
                        "left")
        if seen["swapped"]:
            said.append(f"{seen['swapped']} pages went to swap")
        if seen["sampler_cpu_percent"] > 10:
            said.append("the sampler itself took "
                        f"{seen['sampler_cpu_percent']} % of a CPU")
        return said


def _most(rows, name):
    values = sorted(row[name] for row in rows)
    return {"median": values[len(values) // 2], "max": values[-1]} \
        if values else None


def driver_voids(result, cores, late_ms=20):
    """The same of the driver."""
    said = []
    late = result.late.at(99) / 1000
    if late > late_ms:
        said.append(f"the driver acted {late:.0f} ms late (p99)")
    if result.cpu_of_a_core > 0.85:
        said.append("the driver was busy "
                    f"{100 * result.cpu_of_a_core:.0f} % of its time")
    share = result["cpu_seconds"] / (result["wall_seconds"] * cores or 1)
    if share > 0.5:
        said.append(f"the driver took {100 * share:.0f} % of the machine")
    if result["ends"]["local"]:
        said.append(f"{result['ends']['local']} connections could not be "
                    "opened for want of ports or descriptors")
    return said


def times(stand, log_from, result, seen):
    """Where the time of all answers went, seconds: ranked."""
    total = sum(row["hdr"]["total"] and _sum(row["hdr"])
                for row in result["from_send"]) / 1e6
    served = throttle = lane = store = 0.0
    has_lane = False
    for row in stand.log_rows(log_from):
        if len(row) < 11 or row[3].startswith(NOT_LOAD):
            continue
        served += _number(row[6]) / 1e6
        throttle += _number(row[8]) / 1e3
        has_lane = has_lane or row[9] != "-"
        lane += _number(row[9]) / 1e3
        store += _number(row[10]) / 1e3
    locks = seen["status"]["Innodb_row_lock_time"] / 1e3
    rows = [("backlog and network", max(0.0, total - served)),
            ("throttle", throttle), ("row locks", locks)]
    if has_lane:
        rows.append(("lane", lane))
    if store:
        rows.append(("connection, trips and flush", max(0.0, store - locks)))
        rows.append(("handler and cache" if has_lane
                     else "handler, lane and cache",
                     max(0.0, served - throttle - lane - store)))
    else:
        rows.append(("handler, trips, flush and cache",
                     max(0.0, served - throttle - lane - locks)))
    rows.sort(key=lambda row: -row[1])
    return [{"where": name, "seconds": round(value, 2),
             "percent": round(100 * value / total, 1) if total else 0}
            for name, value in rows]


def paths(stand, log_from):
    """Of each path: answers, and the server's own time; the heaviest first."""
    found = collections.defaultdict(list)
    for row in stand.log_rows(log_from):
        if len(row) >= 11 and not row[3].startswith(NOT_LOAD):
            name = re.sub(r"/slots/[^/]+", "/slots/*", row[3])
            found[row[2], name].append(_number(row[6]))
    rows = []
    for (method, name), times_us in found.items():
        times_us.sort()
        rows.append({"path": f"{method} {name}", "n": len(times_us),
                     "p50_us": times_us[len(times_us) // 2],
                     "p95_us": times_us[int(0.95 * (len(times_us) - 1))]})
    return sorted(rows, key=lambda row: -row["p95_us"])


def _sum(hdr):
    return sum(high * count for high, count in hdr["cells"])


def _number(text):
    try:
        return float(text)
    except ValueError:
        return 0.0
