# SPDX-License-Identifier: Apache-2.0
"""The house that `up` builds: database, memcached, web hosts, a slot on sale.

Its servers run in sessions of their own and are written down in
build/rig/rig.json, so that `down` finds them, and their children, whoever
started them and however he ended.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from servers import (PAGES, Database, Httpd, Memcached, ServerError,
                     free_port)

from . import packages

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A test that must not meet the user's own rig says another folder.
BUILD = pathlib.Path(os.environ.get("YOYAKU_RIG_BUILD", ROOT / "build"))
RIG = BUILD / "rig"
NOTE = RIG / "rig.json"
SHIPPED = ROOT / "conf.d" / "yoyaku.conf"
SLOT, TARIFF, PRICE = "demo", "standard", ("45.00", "EUR")
SOCKET_BYTES = 100

CONF = PAGES + """
<Location "/yoyaku">
    <IfDirective YoyakuConfirm>
        YoyakuConfirm booker
    </IfDirective>
</Location>
<Location "/server-status">
    SetHandler server-status
</Location>
ExtendedStatus On
"""


def say(text):
    print(f"rig: {text}", file=sys.stderr, flush=True)


# ---- processes by number ----

def born(pid):
    """When a process started, in the kernel's ticks; None: there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def of_session(leader):
    """Everything that a server of ours started and that still runs."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(name))
    return found


def end(pid, started, deadline=30):
    """SIGTERM to the server, SIGKILL to what is left of its session."""
    if born(pid) == started:
        for number in (signal.SIGCONT, signal.SIGTERM):
            os.kill(pid, number)
    stop = time.monotonic() + deadline
    while born(pid) == started and time.monotonic() < stop:
        try:
            os.waitpid(pid, os.WNOHANG)  # when it is a child of ours
        except ChildProcessError:
            pass
        time.sleep(0.02)
    for left in of_session(pid):
        # a pid that came round again has another session
        if left != pid or born(pid) == started:
            try:
                os.kill(left, signal.SIGKILL)
            except ProcessLookupError:
                pass
    while of_session(pid):
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass
        time.sleep(0.02)


# ---- what stands ----

def read_note():
    try:
        return json.loads(NOTE.read_text())
    except (OSError, ValueError):
        return None


def standing():
    """The note when its database and its first web host run, else None."""
    note = read_note()
    if note and note["url"] and all(
            born(pid) == started for pid, started in note["processes"]
            if pid in (note["mariadb_pid"], note["httpd_pid"])):
        return note
    return None


def down():
    """Stop everything that was written down. True: there was something."""
    note = read_note()
    if note is None:
        return False
    # web hosts before what they lean on
    for pid, started in reversed(note["processes"]):
        end(pid, started)
    if note.get("elsewhere"):
        shutil.rmtree(note["elsewhere"], ignore_errors=True)
    NOTE.unlink(missing_ok=True)
    return True


# ---- building ----

def build(targets=("mod_yoyaku", "yoyakuctl")):
    """Compile under build/ what has changed."""
    log = BUILD / "rig-build.log"
    BUILD.mkdir(exist_ok=True)
    steps = [["cmake", "-S", str(ROOT), "-B", str(BUILD)],
             ["cmake", "--build", str(BUILD), "-j", str(os.cpu_count() or 1),
              "--target", *targets]]
    with open(log, "w") as file:
        for step in steps:
            if subprocess.run(step, stdout=file, stderr=file,
                              check=False).returncode != 0:
                lines = log.read_text(errors="replace").splitlines()
                raise ServerError("it does not build:\n" +
                                  "\n".join(lines[-30:]))


def reachable(path):
    """Can a worker, who is not root, walk there?"""
    if os.geteuid() != 0:
        return True
    path = pathlib.Path(path).resolve()
    return all(parent.stat().st_mode & 0o001
               for parent in [path, *path.parents] if parent.exists())


def hall_known(hall):
    """Refuse, before anything is built or started, what is no hall."""
    if hall is None or re.fullmatch(r"generated:[1-9]\d*x[1-9]\d*", hall):
        return
    if not os.path.isfile(hall):
        raise ServerError(f"--hall {hall}: there is no such file; give a "
                          "drawing (loadtest/halls has some) or "
                          "generated:SECTIONSxPLACES, as in generated:4x25")


class House:
    """
    hall     a drawing, or generated:SECTIONSxPLACES
    options  of mariadbd
    conf     text put into each web host's configuration
    last     a file included last of all
    """

    def __init__(self, hall=None, port=0, mpm="prefork", workers=20, hosts=1,
                 last=None, conf="", options=None, folder=RIG, memcached=True):
        self.hall = hall or str(ROOT / "loadtest" / "halls" /
                                "theatre-1011.json")
        self.port, self.mpm, self.workers = port or 8080, mpm, workers
        self.nhosts, self.last, self.conf = hosts, last, conf
        self.folder, self.elsewhere = pathlib.Path(folder), None
        self.options = {"innodb_buffer_pool_size": "256M",
                        "innodb_log_file_size": "128M",
                        "max_connections": str(100 + 3 * workers * hosts),
                        **(options or {})}
        self.with_memcached = memcached
        self.database, self.memcached, self.hosts = None, None, []
        self.servers, self.started = [], {}

    def start(self):
        if standing():
            raise ServerError(f"one is up at {read_note()['url']}; "
                              "loadtest/rig down stops it")
        down()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        try:
            self._servers()
        except BaseException:
            self._note()
            down()
            raise
        return self

    def _servers(self):
        where = self._sockets()
        self.database = self._begin(Database(
            self.folder / "db", self.options, tied=False, sockets=where))
        if self.with_memcached:
            self.memcached = self._begin(Memcached(
                self.folder / "memcached", tied=False, port=free_port(11311)))
        self._on_sale()
        port = self.port
        for number in range(self.nhosts):
            self.hosts.append(self._begin(self._host(number, free_port(port))))
            self._note()  # now with its address
            port = self.hosts[-1].port + 1

    def _begin(self, server):
        """Ours before it runs: who is stopped while it starts stops it."""
        self.servers.append(server)
        server.start()
        self._note()
        return server

    def _processes(self):
        """(pid, when it started) of all that were ever begun."""
        for server in self.servers:
            child = server.process and server.process.child
            if child and child.pid not in self.started and born(child.pid):
                self.started[child.pid] = born(child.pid)
        return list(self.started.items())

    def _sockets(self):
        """A folder that workers reach and whose sockets' names are short."""
        path = self.folder / "db"
        if reachable(self.folder) and len(str(path)) < SOCKET_BYTES - 10:
            return None
        mark = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
        self.elsewhere = tempfile.mkdtemp(prefix=f"yoyaku-{mark}-")
        os.chmod(self.elsewhere, 0o755)
        return self.elsewhere

    def _host(self, number, port):
        conf = CONF + self.conf
        if self.memcached:
            conf += ("<IfDirective YoyakuMemcached>\n    YoyakuMemcached "
                     f"{self.memcached.address}\n</IfDirective>\n")
        if self.last:
            conf += f'Include "{os.path.abspath(self.last)}"\n'
        host = Httpd(self.folder / f"host{number}", str(BUILD), conf, self.mpm,
                     self.workers, port, self.database.params(), tied=False,
                     shipped=str(SHIPPED))
        if self.elsewhere:
            host.state = os.path.join(self.elsewhere, f"state{number}")
        return host

    def ctl(self, *args):
        done = subprocess.run([str(BUILD / "yoyakuctl"), *args], text=True,
                              env={**os.environ,
                                   "YOYAKU_DB": self.database.params()},
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise ServerError(f"yoyakuctl {' '.join(args)}: {done.stderr}")
        return done.stdout

    def _on_sale(self):
        self.ctl("schema")
        self.ctl("hall", "import", self.hall, "--name", "house")
        self.ctl("slot", "add", "--key", SLOT, "--title", "Demonstration",
                 "--starts", time.strftime(
                     "%Y-%m-%dT20:00Z", time.gmtime(time.time() + 90 * 86400)),
                 "--hall", "house")
        self.ctl("price", "set", "--slot", SLOT, "--tariff", TARIFF, *PRICE)
        self.ctl("slot", "open", SLOT)

    def some_places(self, n):
        """The names of a few places, for the lines to paste."""
        rows = self.database.sql(
            "SELECT p.guid FROM yoyaku_place p JOIN yoyaku_slot s "
            f"ON s.hall_id = p.hall_id WHERE s.slot_key = '{SLOT}' "
            f"ORDER BY p.place_no LIMIT {n}", self.database.name)
        return rows

    def _note(self):
        note = {
            "url": self.hosts[0].url if self.hosts else None,
            "hosts": [host.url for host in self.hosts],
            "httpd_pid": self.hosts[0].pid if self.hosts else None,
            "mariadb_pid": self.database.pid if self.database else None,
            "mariadb_socket": self.database.socket if self.database else None,
            "database": self.database.name if self.database else None,
            "memcached": self.memcached.address if self.memcached else None,
            "memcached_pid": self.memcached.pid if self.memcached else None,
            "error_log": self.hosts[0].error_log if self.hosts else None,
            "build": str(BUILD),
            # from here on for ourselves
            "params": self.database.params() if self.database else None,
            "state": self.hosts[0].state if self.hosts else None,
            "processes": self._processes(),
            "elsewhere": self.elsewhere,
        }
        fresh = NOTE.with_suffix(".new")
        fresh.touch(0o600)  # it holds a password
        fresh.write_text(json.dumps(note))
        fresh.rename(NOTE)


def prepare(groups=("build", "run"), targets=("mod_yoyaku", "yoyakuctl")):
    """Packages and build: what has to be there before a house can stand."""
    try:
        packages.install(groups, say)
    except RuntimeError as error:
        raise ServerError(str(error)) from error
    say("building")
    build(targets)
