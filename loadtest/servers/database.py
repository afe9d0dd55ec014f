# SPDX-License-Identifier: Apache-2.0
"""A private mariadbd: a socket and a loopback port, one folder, its own clock."""
import getpass
import os
import shutil
import signal
import subprocess

from .process import Process, ServerError, accepts, free_port, until

FAKETIME = ("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
            "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
            "/usr/lib/faketime/libfaketimeMT.so.1")
USER, PASSWORD = "yoyaku", "yoyaku-private"

# What it runs with unless told otherwise. The character set and sql_mode are
# the server's own defaults on purpose: the product must not lean on them.
OPTIONS = {
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_buffer_pool_size": "128M",
    "innodb_log_file_size": "16M",
    "innodb_lock_wait_timeout": "50",
    "max_connections": "500",
    "skip_name_resolve": "ON",
}


def program(*names):
    for name in names:
        path = shutil.which(name, path=os.environ.get("PATH", "") +
                            ":/usr/sbin:/usr/local/sbin")
        if path:
            return path
    raise ServerError(f"{names[0]} is not installed (t/packages lists what is "
                      "needed)")


class Database:
    """
    folder   data, socket and log lie there
    options  of mariadbd; each overrides or adds to OPTIONS
    clock    True: its clock (and nobody else's) can be moved
    book     another one's data (stopped in good order) to begin with
    env      more environment, as TZ
    """

    # Where the template lies, for all of a run; None: beside each folder.
    templates = None

    def __init__(self, folder, options=None, clock=False, port=0, env=None,
                 tied=True, name="yoyaku", sockets=None, book=None):
        self.folder = os.path.abspath(folder)
        self.options = {**OPTIONS, **(options or {})}
        self.name, self.env, self.tied = name, dict(env or {}), tied
        self.book = book
        self.port = port or free_port()
        # A socket's path has room for 107 bytes only.
        self.socket = os.path.join(sockets or self.folder, "db.sock")
        self.log = os.path.join(self.folder, "mariadbd.log")
        self.data = os.path.join(self.folder, "data")
        self.offset_file = os.path.join(self.folder, "clock")
        self.offset = 0.0
        self.process = None
        if clock:
            self._own_clock()

    # ---- life ----

    def start(self):
        # A starting mariadbd deletes every temporary table it finds in its
        # tmpdir, also those of another one that runs.
        os.makedirs(os.path.join(self.folder, "tmp"), exist_ok=True)
        fresh = not os.path.isdir(self.data)
        if fresh:
            self._install()
        argv = [program("mariadbd", "mysqld"), "--no-defaults",
                f"--datadir={self.data}", f"--socket={self.socket}",
                f"--port={self.port}", "--bind-address=127.0.0.1",
                f"--pid-file={self.folder}/mariadbd.pid",
                f"--tmpdir={self.folder}/tmp"]
        if os.geteuid() == 0:
            argv.append("--user=root")
        argv += [f"--{key.replace('_', '-')}={value}"
                 for key, value in self.options.items()]
        self.process = Process(argv, self.log, self.env, self.tied)
        self.process.start()
        self.process.await_ready(lambda: accepts(self.socket), 60)
        if fresh:
            self.sql(self._accounts())
        return self

    def stop(self):
        if self.process is not None:
            self.process.stop()
            self.process = None

    def kill(self):
        """As a crash does."""
        self.process.stop(signal.SIGKILL)

    def restart(self):
        self.stop()
        return self.start()

    def freeze(self):
        self.process.send(signal.SIGSTOP)

    def thaw(self):
        self.process.send(signal.SIGCONT)

    @property
    def pid(self):
        return self.process.pid

    # ---- use ----

    def params(self, name=None, port=None):
        """As DBDParams wants them. `port`: through whoever listens there."""
        where = (f"host=127.0.0.1,port={port}" if port
                 else f"host=localhost,sock={self.socket}")
        return (f"{where},user={USER},pass={PASSWORD},"
                f"dbname={name or self.name}")

    def create(self, name):
        self.sql(f"CREATE DATABASE IF NOT EXISTS `{name}`")
        return name

    def sql(self, text, name=None):
        """Run statements as root through the client; returns its lines."""
        argv = [program("mariadb", "mysql"), "--no-defaults",
                f"--socket={self.socket}", "--user=root", "--batch",
                "--skip-column-names"]
        if name:
            argv.append(name)
        done = subprocess.run(argv, input=text, text=True, check=False,
                              capture_output=True)
        if done.returncode != 0:
            raise ServerError(f"{text[:200]}\n{done.stderr}")
        return done.stdout.splitlines()

    # ---- its clock ----

    def _own_clock(self):
        library = [path for path in FAKETIME if os.path.exists(path)]
        if not library:
            raise ServerError("libfaketime is not installed (t/packages)")
        # The monotonic clock stays true: lock waits and sleeps last as long
        # as they should while the date jumps.
        self.env.update(LD_PRELOAD=library[0], FAKETIME_NO_CACHE="1",
                        FAKETIME_TIMESTAMP_FILE=self.offset_file,
                        FAKETIME_DONT_FAKE_MONOTONIC="1",
                        FAKETIME_DONT_RESET="1")
        os.makedirs(self.folder, exist_ok=True)
        self._write_offset()

    def _write_offset(self):
        with open(self.offset_file + ".new", "w") as file:
            file.write(f"{self.offset:+.6f}s\n")
        os.rename(self.offset_file + ".new", self.offset_file)

    def advance(self, seconds):
        """Let so much time pass for the database, at once."""
        if "FAKETIME_TIMESTAMP_FILE" not in self.env:
            raise ServerError("this database was started without clock=True")
        self.offset += seconds
        self._write_offset()

    # ---- making it ----

    def _install(self):
        """From a template made once beside us: a copy is ten times faster."""
        if self.book:
            shutil.copytree(self.book, self.data)
            return
        template = os.path.join(
            self.templates or os.path.dirname(self.folder), "db-template")
        if not os.path.isdir(template):
            making = f"{template}.{os.getpid()}"
            shutil.rmtree(making, ignore_errors=True)
            argv = [program("mariadb-install-db", "mysql_install_db"),
                    "--no-defaults", f"--datadir={making}",
                    "--auth-root-authentication-method=socket",
                    f"--auth-root-socket-user={getpass.getuser()}",
                    "--skip-test-db", "--skip-name-resolve",
                    "--force",  # also where the host has no name
                    f"--user={getpass.getuser()}",
                    "--innodb-log-file-size=16M"]
            done = subprocess.run(argv, capture_output=True, text=True,
                                  check=False, env={
                                      **os.environ,
                                      "TMPDIR": f"{self.folder}/tmp"})
            if done.returncode != 0:
                raise ServerError("mariadb-install-db failed:\n" +
                                  done.stdout[-2000:] + done.stderr[-2000:])
            try:
                os.rename(making, template)
            except OSError:  # another run was faster
                shutil.rmtree(making, ignore_errors=True)
        shutil.copytree(template, self.data)

    def _accounts(self):
        rights = ("SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, "
                  "REFERENCES")
        lines = [f"CREATE DATABASE IF NOT EXISTS `{self.name}`;"]
        for host in ("localhost", "127.0.0.1"):
            lines.append(f"CREATE USER IF NOT EXISTS '{USER}'@'{host}' "
                         f"IDENTIFIED BY '{PASSWORD}';")
            lines.append(f"GRANT {rights} ON `{self.name}%`.* TO "
                         f"'{USER}'@'{host}';")
        return "\n".join(lines)

    def await_ready(self):
        until(lambda: accepts(self.socket), 60, "mariadbd's socket")
