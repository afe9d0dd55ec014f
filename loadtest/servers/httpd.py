# SPDX-License-Identifier: Apache-2.0
"""A private httpd with the built module and a configuration of its own."""
import os
import re
import shutil
import signal
import subprocess

from .database import program
from .process import Process, ServerError, free_port, tail, until

# In the order of loading; what the server has built in is left out.
MODULES = """authn_core authn_file authz_core authz_host authz_user auth_basic
alias dir env filter deflate headers log_config logio mime setenvif status
unixd rewrite watchdog dbd""".split()

# Logged when the workers are about to start: the port alone says too little,
# since it is bound before the last check of the configuration.
READY = "resuming normal operations"

# Where the module's pages about itself stand.
PAGES = """
<Location "/yoyaku-status">
    SetHandler yoyaku-status
</Location>
<Location "/yoyaku-metrics">
    SetHandler yoyaku-metrics
</Location>
<Location "/yoyaku-health">
    SetHandler yoyaku-health
</Location>
"""


def _apxs(question, fallback):
    apxs = shutil.which("apxs") or shutil.which("apxs2")
    if apxs:
        done = subprocess.run([apxs, "-q", question], capture_output=True,
                              text=True, check=False)
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    return fallback


def folder_of_modules():
    return _apxs("LIBEXECDIR", "/usr/lib/apache2/modules")


class Httpd:
    """
    folder   configuration, logs and state lie there
    build    where mod_yoyaku.so is; None: httpd without the module
    conf     text put at the end of the configuration
    """

    def __init__(self, folder, build, conf="", mpm="prefork", workers=16,
                 port=0, params=None, tied=True, shipped=None, modules=(),
                 env=None):
        self.folder = os.path.abspath(folder)
        self.build, self.conf, self.mpm = build, conf, mpm
        self.workers, self.params, self.tied = workers, params, tied
        self.shipped, self.modules = shipped, list(modules)
        self.env = env
        self.port = port or free_port()
        self.error_log = os.path.join(self.folder, "error.log")
        self.access_log = os.path.join(self.folder, "access.log")
        self.config_file = os.path.join(self.folder, "httpd.conf")
        self.state = os.path.join(self.folder, "state")
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    # ---- life ----

    def start(self):
        os.makedirs(self.state, exist_ok=True)
        self.write()
        argv = [program("apache2", "httpd"), "-DFOREGROUND", "-f",
                self.config_file]
        said = self.read_log().count(READY)
        self.process = Process(argv, os.path.join(self.folder, "out.log"),
                               self.env, self.tied)
        self.process.start()
        try:
            self.process.await_ready(
                lambda: self.read_log().count(READY) > said)
        except ServerError as error:
            raise ServerError(f"{error}\n{tail(self.error_log)}") from error
        return self

    def stop(self):
        if self.process is None:
            return
        self.process.stop(signal.SIGTERM)
        self.process = None

    def graceful(self):
        """Configuration anew, requests of the old one go on."""
        self._again(signal.SIGUSR1, READY)

    def restart(self):
        self._again(signal.SIGHUP, READY)

    def _again(self, number, said):
        before = self.read_log().count(said)
        self.write()
        self.process.send(number)
        until(lambda: self.read_log().count(said) > before, 30, said)

    def children(self):
        """Pids of its workers, as the kernel knows them."""
        path = f"/proc/{self.pid}/task/{self.pid}/children"
        try:
            with open(path) as file:
                return [int(pid) for pid in file.read().split()]
        except OSError:
            return []

    def read_log(self):
        try:
            with open(self.error_log, errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    # ---- its configuration ----

    def write(self):
        with open(self.config_file, "w") as file:
            os.chmod(self.config_file, 0o600)  # it holds a password
            file.write(self.text())

    def text(self):
        parts = [self._frame(), self._load(), self._mpm()]
        if self.build:
            parts.append(self._yoyaku())
        parts.append(self.conf)
        return "\n".join(parts) + "\n"

    def _frame(self):
        return f"""ServerRoot "{self.folder}"
DefaultRuntimeDir "{self.folder}"
PidFile "{self.folder}/httpd.pid"
ServerName localhost
Listen 127.0.0.1:{self.port}
ErrorLog "{self.error_log}"
"""

    def _load(self):
        have = subprocess.run([program("apache2", "httpd"), "-l"], check=False,
                              capture_output=True, text=True).stdout
        static = set(re.findall(r"mod_(\w+)\.c", have))
        folder = folder_of_modules()
        lines = []
        for name in [f"mpm_{self.mpm}"] + MODULES + self.modules:
            path = os.path.join(folder, f"mod_{name}.so")
            if name not in static and os.path.exists(path):
                lines.append(f"LoadModule {name}_module {path}")
        user = ("User www-data\nGroup www-data" if os.geteuid() == 0 else "")
        return "\n".join(lines + [user, "LogLevel notice",
                                  "TypesConfig /dev/null",
                                  f'CustomLog "{self.access_log}" '
                                  '"%t %P \\"%r\\" %>s %b %D"', ""])

    def _mpm(self):
        n = self.workers
        if self.mpm == "prefork":
            return (f"StartServers {n}\nMinSpareServers {n}\n"
                    f"MaxSpareServers {n}\nServerLimit {n}\n"
                    f"MaxRequestWorkers {n}\n")
        threads = max(2, (n + 1) // 2)
        return (f"StartServers 2\nServerLimit 4\nThreadsPerChild {threads}\n"
                f"MinSpareThreads {threads}\nMaxSpareThreads {4 * threads}\n"
                f"ThreadLimit {threads}\nMaxRequestWorkers {2 * threads}\n")

    def _yoyaku(self):
        lines = [f"LoadModule yoyaku_module {self.build}/mod_yoyaku.so",
                 "LogLevel notice yoyaku:info"]
        if self.shipped:
            lines.append(f'Include "{self.shipped}"')
        if self.params:
            lines += ["DBDriver mysql",
                      f'DBDParams "{self.params},reconnect=0,'
                      'connecttimeout=5,readtimeout=10,writetimeout=10"']
        if not self.shipped:
            lines += ["DBDPersist Off"]
        lines += ["<IfDirective YoyakuStateDir>",
                  f'    YoyakuStateDir "{self.state}"', "</IfDirective>"]
        return "\n".join(lines) + "\n"
