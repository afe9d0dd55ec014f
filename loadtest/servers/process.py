# SPDX-License-Identifier: Apache-2.0
"""One process of ours: started, watched, stopped; never found by its name."""
import ctypes
import os
import random
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BUSY = 4


class ServerError(Exception):
    """A server did not come up, or went. The text says where to look."""


def until(condition, deadline=10.0, what="a condition"):
    """Wait until condition() is true and return what it gave. The deadline is
    for a machine with nothing else to do; a busy one has BUSY times as long."""
    deadline *= BUSY
    end = time.monotonic() + deadline
    pause = 0.005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise ServerError(f"waited {deadline} s in vain for {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


# Ports of our own choice lie below those that the kernel gives to outgoing
# connections: in a crowd one of those would sooner or later be ours.
FIRST, LAST = 15000, 32000


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port(wanted=0):
    """A TCP port of the loopback that nobody has: `wanted`, or the next free
    one after it; 0: one of ours."""
    ports = (range(wanted, wanted + 200) if wanted else
             (random.randrange(FIRST, LAST) for _ in range(1000)))
    for port in ports:
        if is_free(port):
            return port
    raise ServerError(f"no free port from {wanted or FIRST} on")


def accepts(address):
    """Does somebody listen there? A path or (host, port)."""
    kind = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(kind) as probe:
        probe.settimeout(1)
        try:
            probe.connect(address)
        except OSError:
            return False
        return True


def tail(path, lines=15):
    try:
        with open(path, errors="replace") as file:
            return "".join(file.readlines()[-lines:])
    except OSError:
        return ""


class Process:
    """`tied`: it gets SIGTERM when we die, however we die. Else it stays and
    has a session of its own, so that a Ctrl-C at the terminal misses it."""

    def __init__(self, argv, log, env=None, tied=True):
        self.argv, self.log, self.env, self.tied = argv, log, env, tied
        self.child = None

    def start(self):
        libc = ctypes.CDLL(None)

        # Who is told to end while the kernel makes the child would never learn
        # its pid: he is told a moment later.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)

        def tie():
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.setsid()
            if self.tied:
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

        try:
            with open(self.log, "ab") as log:
                self.child = subprocess.Popen(
                    self.argv, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=log, env={**os.environ, **(self.env or {})},
                    preexec_fn=tie, close_fds=True)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    @property
    def pid(self):
        return self.child.pid

    def alive(self):
        return self.child is not None and self.child.poll() is None

    def send(self, number):
        self.child.send_signal(number)

    def await_ready(self, ready, deadline=30):
        def look():
            if not self.alive():
                raise ServerError(f"{self.argv[0]} ended at once with "
                                  f"{self.child.returncode}:\n{tail(self.log)}")
            return ready()
        until(look, deadline, f"{self.argv[0]} (log: {self.log})")

    def stop(self, number=signal.SIGTERM, deadline=30):
        """Ask it to end; after the deadline make it. Returns its status."""
        if self.child is None:
            return None
        if self.alive():
            self.send(signal.SIGCONT)
            self.send(number)
        try:
            return self.child.wait(deadline)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            return self.child.wait(deadline)
