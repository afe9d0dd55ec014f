# SPDX-License-Identifier: Apache-2.0
"""A web host under test: httpd, its error log read, its dead counted."""
import base64
import hashlib
import os
import re
import signal

from servers import Httpd, until

from .booker import Booker, Shop

DIRECTIVES = """
YoyakuLane {lanes}
<Location "/yoyaku">
    SetHandler yoyaku
    <IfDirective YoyakuBooker>
        YoyakuBooker "%{{req:X-Booker}}"
    </IfDirective>
    {booker}
</Location>
<Location "/yoyaku-shop">
    SetHandler yoyaku-shop
    AuthType Basic
    AuthName shop
    AuthUserFile "{users}"
    Require valid-user
    {shop}
</Location>
<Location "/server-status">
    SetHandler server-status
</Location>
ExtendedStatus On
"""

LINE = re.compile(r"\[\w+:(\w+)\] \[pid (\d+)[^\]]*\]")
BAD = {"warn", "error", "crit", "alert", "emerg"}
# A small server in a large crowd says once that all its workers are busy.
FULL = re.compile(r"AH00161|AH00484|AH10159|AH03490")
SIGNAL = re.compile(r"AH0005[12]: child pid (\d+) exit signal ([^(]+)\((\d+)\)")


def beside_main(name, params):
    """A virtual host on another database, and main.example on the rig's."""
    return f"""
<VirtualHost *>
    ServerName {name}
    DBDriver mysql
    DBDParams "{params},reconnect=0"
    DBDMin 0
    DBDKeep 2
    DBDMax 4
</VirtualHost>
<VirtualHost *>
    ServerName main.example
</VirtualHost>
"""


class Host:
    """
    location  directives inside <Location "/yoyaku">
    shop      directives inside <Location "/yoyaku-shop">
    conf      text at the end of the configuration
    env       more environment, as another clock
    """

    lanes = "on"  # of the whole run

    def __init__(self, folder, build, params, mpm, location="", shop="",
                 conf="", workers=16, modules=(), env=None):
        users = os.path.join(folder, "users")
        os.makedirs(folder, exist_ok=True)
        with open(users, "w") as file:
            for name in ("shop", "till"):
                digest = hashlib.sha1(name.encode()).digest()
                file.write(f"{name}:{{SHA}}"
                           f"{base64.b64encode(digest).decode()}\n")
        text = DIRECTIVES.format(booker=location, shop=shop, users=users,
                                 lanes=self.lanes)
        self.httpd = Httpd(folder, build, text + conf, mpm, workers,
                           params=params, modules=modules, env=env)
        self.read = 0
        self.announced, self.killed = [], set()

    # ---- life ----

    def start(self):
        self.httpd.start()
        return self

    def stop(self):
        self.httpd.stop()

    def __getattr__(self, name):
        """url, port, pid, graceful, restart, children, read_log: httpd's."""
        return getattr(self.__dict__["httpd"], name)

    # ---- people ----

    def booker(self, name="", cookies=False):
        return Booker(self.httpd.url, name, cookies)

    def shop(self, user="shop"):
        return Shop(self.httpd.url, user, user)

    def get(self, path, **more):
        return Booker(self.httpd.url).get(path, **more)

    # ---- its workers ----

    def kill_child(self, pid, number=signal.SIGKILL):
        """A worker dies because the test wants it."""
        self.killed.add(pid)
        os.kill(pid, number)

    def await_children(self, n, deadline=30):
        return until(lambda: len(self.httpd.children()) >= n, deadline,
                     f"{n} workers")

    # ---- its log ----

    def announce(self, *patterns):
        """Lines that this module of tests makes the server write."""
        self.announced += [re.compile(pattern) for pattern in patterns]

    def complaints(self):
        """What was logged since the last call that nobody announced."""
        text = self.httpd.read_log()
        fresh, self.read = text[self.read:], len(text)
        return [line for line in fresh.splitlines() if self._is_bad(line)]

    def _is_bad(self, line):
        died = SIGNAL.search(line)
        if died:
            return int(died.group(1)) not in self.killed and \
                not self._is_announced(line)
        if "ERROR: AddressSanitizer" in line or "runtime error:" in line:
            return True
        level = LINE.search(line)
        if (FULL.search(line) or not level or
                level.group(1) not in BAD):
            return False
        return not self._is_announced(line)

    def _is_announced(self, line):
        return any(pattern.search(line) for pattern in self.announced)

    def await_log(self, pattern, deadline=10):
        """Wait for a line; returns the match."""
        compiled = re.compile(pattern)
        return until(lambda: compiled.search(self.httpd.read_log()), deadline,
                     f"{pattern} in {self.httpd.error_log}")
