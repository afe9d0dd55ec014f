# SPDX-License-Identifier: Apache-2.0
"""Servers for one run: a database, httpd, memcached; gone when it ends."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from servers import (Database, Httpd, Memcached, ServerError, free_port,
                     until)

from commands import house, packages

from . import proc

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
RUNS = BUILD / "load"
HALLS = ROOT / "loadtest" / "halls"
TARGETS = ("mod_yoyaku", "yoyakuctl", "yoyaku-driver", "mod_load_trivial",
           "mod_load_memcached", "mod_load_heavy")

# Notes of the module beside what httpd knows; every arm is logged alike.
LOG = (r'CustomLog "@LOG@" "%{msec}t %P %m %U %>s %b %D '
       r'%{yoyaku-outcome}n %{yoyaku-queue-ms}n %{yoyaku-lane-ms}n '
       r'%{yoyaku-store-ms}n %k"')

CONF = """
<Location "/yoyaku">
    SetHandler yoyaku
    <IfDirective YoyakuConfirm>
        YoyakuConfirm booker
    </IfDirective>
</Location>
<Location "/server-status">
    SetHandler server-status
</Location>
<Location "/yoyaku-metrics">
    SetHandler yoyaku-metrics
</Location>
ExtendedStatus On
# the sampler keeps its line as long as the load lasts
MaxKeepAliveRequests 0
"""


def prepare(arms=()):
    """Packages and build, as a fresh machine needs: no more than these arms
    ask for, since somebody waits."""
    names = ["python3-pymysql", *(name for arm in arms
                                  for name in arm.packages)]
    try:
        packages.install(("build", "run"), house.say, names)
    except RuntimeError as error:
        raise ServerError(str(error)) from error
    house.say("building")
    house.build(TARGETS)


def php_module():
    found = sorted(pathlib.Path("/usr/lib/apache2/modules").glob(
        "libphp*.so"))
    if not found:
        raise ServerError("mod_php is not installed (t/packages, group load)")
    return found[-1]


def placement(text):
    """"driver=0,httpd=1,db=1" as {"driver": {0}, ...}."""
    made = {}
    for part in filter(None, re.split(r"[,;]\s*(?=[a-z])", text or "")):
        name, _, cpus = part.partition("=")
        if name not in ("driver", "httpd", "db", "memcached") or \
                not re.fullmatch(r"\d+(\+\d+)*", cpus):
            raise ServerError(
                f'--cpus {part}: say driver|httpd|db|memcached=CPU[+CPU..]')
        made[name] = {int(cpu) for cpu in cpus.split("+")}
    return made


class Stand:
    """
    hall     a drawing, or generated:SECTIONSxPLACES
    arms     whose configuration httpd gets
    conf     text at the end of httpd's configuration
    areas    how its slots are sold, [(name, mode)]: sections of the hall, or
             pools beside them; the rest is placed
    book     a database's data to begin with, which is copied
    """

    def __init__(self, folder, hall=None, arms=(), workers=80, mpm="prefork",
                 conf="", options=None, cpus=None, build=BUILD, reserve=1,
                 areas=(), cache_mb=64, book=None):
        self.folder = pathlib.Path(folder)
        self.hall = hall or str(HALLS / "theatre-1011.json")
        self.arms, self.mpm, self.conf = list(arms), mpm, conf
        self.areas = list(areas)
        self.workers, self.reserve = workers, reserve
        self.cache_mb = cache_mb
        self.build = str(build)
        self.cpus = placement(cpus)
        self.cpus_said = cpus or ""
        self.options = {
            "innodb_buffer_pool_size": "256M", "innodb_log_file_size": "128M",
            "max_connections": str(3 * workers + 100),
            "innodb_print_all_deadlocks": "OFF", **(options or {})}
        self.database = self.memcached = self.httpd = None
        self.places, self.sockets, self.book = [], None, book
        self.killed = 0
        self.own_clock = False  # of the database: advance() works
        self.wire = None  # made from the database's port: stands before it

    # ---- life ----

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def start(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.sockets = tempfile.mkdtemp(prefix="yoyaku-load-")
        os.chmod(self.sockets, 0o755)
        self.shots = os.path.join(self.sockets, "shots")
        os.mkdir(self.shots)
        os.chmod(self.shots, 0o777)  # workers write snapshots there
        self.database = Database(self.folder / "db", self.options,
                                 self.own_clock, sockets=self.sockets,
                                 book=self.book)
        self._start("db", self.database)
        self.memcached = Memcached(self.folder / "memcached",
                                   port=free_port(),
                                   megabytes=self.cache_mb)
        self._start("memcached", self.memcached)
        self.ctl("schema")
        self.ctl("hall", "import", self.hall, "--name", "house")
        self._read_hall()
        self.httpd = Httpd(self.folder / "httpd", self.build, self._conf(),
                           self.mpm, self.workers + self.reserve,
                           params=self.database.params(port=self._port()),
                           shipped=str(house.SHIPPED))
        (self.folder / "httpd").mkdir()
        if not house.reachable(self.folder):
            self.httpd.state = os.path.join(self.sockets, "state")
        self._start("httpd", self.httpd)
        for arm in self.arms:
            arm.prepare(self)
        return self

    def _read_hall(self):
        """Its sections, and the places that a board shows, in plan order: a
        section that is sold by count shows none."""
        rows = [row.split("\t") for row in self.database.sql(
            "SELECT p.guid, s.name FROM yoyaku_place p JOIN yoyaku_hall h "
            "ON h.hall_id = p.hall_id JOIN yoyaku_section s ON s.hall_id = "
            "p.hall_id AND s.section_no = p.section_no WHERE h.name = 'house' "
            "ORDER BY p.place_no", self.database.name)]
        self.sections = {section for _, section in rows}
        counted = {name for name, mode in self.areas if mode != "assigned"}
        self.places = [guid for guid, section in rows
                       if section not in counted]

    def _areas(self):
        """The same as flags of `yoyakuctl slot add`."""
        flags = []
        for name, mode in self.areas:
            if name in self.sections:
                flags += ["--area", f"{name}={mode}"]
            elif ":" in mode:
                flags += ["--pool", f"{name}={mode.partition(':')[2]}"]
            else:
                raise ServerError(f"area {name}: the hall has no such section; "
                                  "a pool beside it says pooled:N")
        return flags

    def _port(self):
        """None: httpd goes straight to the database's socket."""
        return self.wire(self.database.port).port if self.wire else None

    def _conf(self):
        log = LOG.replace("@LOG@", str(self.folder / "load.log"))
        conf = [CONF, log]
        words = {"BUILD": self.build, "PLACES": len(self.places),
                 "SOCKET": self.database.socket,
                 "DATABASE": self.database.name, "USER": "yoyaku",
                 "PASSWORD": "yoyaku-private",
                 "MEMCACHED": self.memcached.address, "SHOTS": self.shots}
        if any("php" in arm.name for arm in self.arms):
            if self.mpm != "prefork":
                raise ServerError("mod_php runs under prefork only: its arms "
                                  f"cannot be had under {self.mpm}")
            words["PHP"] = php_module()
            words["PHPINI"] = self._php_ini()
        conf += [arm.conf(words) for arm in self.arms]
        conf += ["<IfDirective YoyakuMemcached>", "    YoyakuMemcached "
                 f"{self.memcached.address}", "</IfDirective>", self.conf]
        return "\n".join(conf)

    def _php_ini(self):
        """The folder of the one php.ini; PHP reads nothing else of it."""
        return ROOT / "loadtest" / "arms" / "php-slotrow"

    def _start(self, name, server):
        """On its CPUs from the first moment: workers and threads inherit."""
        ours = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, self.cpus.get(name, ours))
            server.start()
        except OSError as error:
            raise ServerError(f"--cpus {self.cpus_said}: {error}") from error
        finally:
            os.sched_setaffinity(0, ours)

    def _placement(self):
        """CPUs as /proc has them, of servers and of all their workers."""
        servers = {"httpd": self.httpd, "db": self.database,
                   "memcached": self.memcached}
        seen = {"driver": "+".join(map(str, sorted(self.cpus["driver"])))
                if "driver" in self.cpus else "anywhere"}
        for name, server in servers.items():
            pids = [server.pid] + (server.children() if name == "httpd"
                                   else [])
            seen[name] = " ".join(sorted(proc.allowed_cpus(pids)))
        return seen

    def stop(self):
        for server in (self.httpd, self.memcached, self.database):
            if server is not None:
                server.stop()
        if self.sockets:
            shutil.rmtree(self.sockets, ignore_errors=True)
        # logs stay; a database of each run would fill the disk
        for name in ("db", "db-template", "memcached"):
            if not os.environ.get("YK_KEEP"):
                shutil.rmtree(self.folder / name, ignore_errors=True)

    @property
    def url(self):
        return self.httpd.url

    # ---- the operator ----

    def ctl(self, *args, check=True):
        done = subprocess.run(
            [os.path.join(self.build, "yoyakuctl"), *args], text=True,
            env={**os.environ, "YOYAKU_DB": self.database.params(),
                 "YOYAKU_STATE": self.httpd.state if self.httpd else ""},
            capture_output=True, check=False)
        if check and done.returncode != 0:
            raise ServerError(f"yoyakuctl {' '.join(args)}: {done.stderr}")
        return done

    def board(self, key):
        """Its bytes as a visitor gets them."""
        ask = urllib.request.Request(
            f"{self.url}/yoyaku/slots/{key}/availability",
            headers={"Accept": "application/json"})
        with urllib.request.urlopen(ask, timeout=30) as answer:
            return answer.read()

    def await_snapshot(self, key):
        """Until the slot's file is there."""
        shots = pathlib.Path(self.shots, "boards")
        until(lambda: list(shots.glob(f"*/{key}.json")), 30,
              f"the snapshot of {key}")

    def slot(self, key):
        self.ctl("slot", "add", "--key", key, "--title", key, "--starts",
                 time.strftime("%Y-%m-%dT20:00Z",
                               time.gmtime(time.time() + 90 * 86400)),
                 "--hall", "house", *self._areas())
        self.ctl("price", "set", "--slot", key, "--tariff", "standard",
                 "45.00", "EUR")
        self.ctl("slot", "open", key)

    def fill_slotrow_hall(self):
        self.database.sql(
            "INSERT IGNORE INTO slotrow_hall SELECT p.place_no, p.guid, "
            "s.name, p.row_name, p.seat, p.grade, p.x, p.y FROM yoyaku_place p "
            "JOIN yoyaku_hall h ON h.hall_id = p.hall_id JOIN yoyaku_section s "
            "ON s.hall_id = p.hall_id AND s.section_no = p.section_no "
            "WHERE h.name = 'house'", self.database.name)

    def connect(self):
        import pymysql
        return pymysql.connect(unix_socket=self.database.socket, user="root",
                               database=self.database.name, charset="utf8mb4",
                               autocommit=True)

    def arm(self, name):
        return next(arm for arm in self.arms if arm.name == name)

    # ---- its workers ----

    def graceful(self):
        self.httpd.process.send(signal.SIGUSR1)

    def kill_worker(self, random):
        """A worker dies in the middle of whatever it does."""
        pids = self.httpd.children()
        if pids:
            try:
                os.kill(random.choice(pids), signal.SIGKILL)
                self.killed += 1
            except ProcessLookupError:
                pass

    def log_rows(self, since=0):
        """Rows of the load log from a byte on: [fields]."""
        with open(self.folder / "load.log", errors="replace") as file:
            file.seek(since)
            return [line.split() for line in file]

    def log_size(self):
        try:
            return os.path.getsize(self.folder / "load.log")
        except OSError:
            return 0

    def conditions(self):
        """What every figure of this stand was made under."""
        return {**conditions(), "hall": os.path.basename(self.hall),
                "places": len(self.places), "workers": self.workers,
                "mpm": self.mpm, "placement": self._placement(),
                "database": self._database_conditions()}

    def _database_conditions(self):
        wanted = ("version", "innodb_flush_log_at_trx_commit", "sync_binlog",
                  "log_bin", "innodb_buffer_pool_size", "innodb_log_file_size",
                  "innodb_doublewrite")
        rows = self.database.sql(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ("
            + ",".join(f"'{name}'" for name in wanted) + ")")
        return dict(row.split("\t", 1) for row in rows)


def _git(*args):
    """What git says of this tree; nothing where there is no git."""
    try:
        return subprocess.run(["git", "-C", str(ROOT), *args], text=True,
                              capture_output=True, check=False).stdout.strip()
    except OSError:
        return ""


def conditions():
    commit = _git("rev-parse", "--short", "HEAD") or "unknown"
    dirty = _git("status", "--porcelain")
    model = re.search(r"model name\s*:\s*(.*)",
                      pathlib.Path("/proc/cpuinfo").read_text())
    load = os.getloadavg()[0]
    return {"commit": commit + ("+changes" if dirty else ""),
            "cpus": os.cpu_count(),
            "cpu": model.group(1) if model else os.uname().machine,
            "kernel": os.uname().release, "load_before": round(load, 2),
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
