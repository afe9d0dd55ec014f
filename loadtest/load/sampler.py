# SPDX-License-Identifier: Apache-2.0
"""Looks beside the load, a few times a second, and says what that cost.

The scoreboard is read over a connection of its own, opened before the load
and kept: it has a worker to itself (the stand starts one more), since a
question that waits in the backlog behind the crowd answers nothing.
"""
import collections
import contextlib
import http.client
import re
import socket
import statistics
import threading
import time

from . import edges, proc
from .timetable import number

STATUS = ("Connections", "Threads_connected", "Threads_running",
          "Innodb_row_lock_waits", "Innodb_row_lock_time",
          "Innodb_row_lock_current_waits", "Innodb_deadlocks", "Com_commit",
          "Com_rollback", "Questions", "Innodb_os_log_fsyncs",
          "Innodb_data_fsyncs", "Innodb_log_writes", "Handler_commit",
          "Innodb_log_waits", "Com_insert", "Com_select", "Com_begin")
CACHE = ("get_hits", "get_misses", "evictions", "cmd_set", "cmd_get",
         "curr_items")


class Probes:
    """What a commit, a new connection and a look into memcached cost just now:
    one of each, timed, less what this side computed meanwhile."""

    def __init__(self, stand, opened):
        """`opened`: an ExitStack; with it they end."""
        self.stand = stand
        self.took = {"commit_us": [], "connect_us": [], "get_us": []}
        host, port = stand.memcached.address.split(":")
        self.cache = socket.create_connection((host, int(port)), 2)
        opened.callback(self.cache.close)
        self.db = stand.connect()
        opened.callback(self.db.close)
        with self.db.cursor() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS load_probe (id INT "
                           "AUTO_INCREMENT PRIMARY KEY, n BIGINT NOT NULL) "
                           "ENGINE=InnoDB")
            # a row of its own: whatever holds another's, this one is free
            cursor.execute("INSERT INTO load_probe (n) VALUES (0)")
            self.row = cursor.lastrowid

    def _timed(self, name, act):
        wall, own = time.perf_counter(), time.thread_time()
        made = act()
        spent = time.perf_counter() - wall - (time.thread_time() - own)
        self.took[name].append(max(0.0, 1e6 * spent))
        return made

    def look(self):
        self._timed("connect_us", self.stand.connect).close()
        self.db.begin()
        with self.db.cursor() as cursor:
            cursor.execute("UPDATE load_probe SET n = n + 1 WHERE id = %s",
                           (self.row,))
        self._timed("commit_us", self.db.commit)
        self._timed("get_us", self._get)

    def _get(self):
        self.cache.sendall(b"get load-probe\r\n")
        return self.cache.recv(64)

    def said(self):
        """Medians, and how many there were of each."""
        return {"n": len(self.took["get_us"]),
                **{name: round(statistics.median(values), 1) if values else 0.0
                   for name, values in self.took.items()}}


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
                "letters": {k: n for k, n in letters.items() if k != "."}}

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
                found[name] = number(value)
        return found

    def close(self):
        if self.line is not None:
            self.line.close()
            self.line = None


class Sampler:
    def __init__(self, stand, driver=None, every=0.5):
        self.stand, self.driver, self.every = stand, driver, every
        self.samples, self.edges = [], edges.Edges()
        self.edges_sql = None
        self.moments = {}
        self.cpu_seconds = 0.0
        self.board = Scoreboard(stand.httpd.port)
        self.db = None
        self.over = threading.Event()
        self.thread = self.opened = None

    # ---- life ----

    def start(self):
        with contextlib.ExitStack() as opened:
            opened.callback(self.board.close)
            self.db = self.stand.connect()
            opened.callback(self.db.close)
            self.probes = Probes(self.stand, opened)
            self.first = self._counters()
            self.probes.look()  # one at least, however short the load is
            self.began = time.monotonic()
            self.board.read()
            self.metrics_first = self.board.metrics()
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()
            self.opened = opened.pop_all()
        return self

    def stop(self):
        with self.opened:
            self.over.set()
            self.thread.join()
            self.last = self._counters()
            self.seconds = time.monotonic() - self.began
            last = self.board.metrics()
        self.metrics = {name: round(last[name] - before, 6)
                        for name, before in self.metrics_first.items()
                        if name in last and last[name] != before
                        and re.search(r"_(total|sum|count)\b", name)}
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
                self.probes.look()
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
        if self.edges_sql is None:
            self.edges_sql = edges.query(self._query("SELECT VERSION()")[0][0])
        for row in self._query(self.edges_sql):
            self.edges.add(row)

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
        status = {name: last["status"].get(name, 0) -
                  first["status"].get(name, 0) for name in STATUS}
        cache = {name: last["cache"][name] - first["cache"][name]
                 for name in CACHE}
        probes = self.probes.said()  # its own are not the load's
        for counters, name in ((status, "Com_commit"), (status, "Connections"),
                               (cache, "cmd_get"), (cache, "get_misses")):
            counters[name] = max(0, counters[name] - probes["n"])
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
            "status": status, "probes": probes,
            "threads_running_max": max((one["threads_running"] for one in good),
                                       default=None),
            "threads_connected_max": max((one["threads_connected"]
                                          for one in good), default=None),
            "cache": cache,
            "queue_max": max((one["queue"] or 0 for one in good), default=None),
            "overflows": last["overflows"][0] - first["overflows"][0],
            "drops": last["overflows"][1] - first["overflows"][1],
            "available_mb_min": min((one["available_kb"] for one in good),
                                    default=first["available_kb"]) // 1024,
            "swapped": last["swapped"] - first["swapped"],
            "major_faults": last["major"] - first["major"],
            "edges": self.edges.said(),
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
