# SPDX-License-Identifier: Apache-2.0
"""Stops a process exactly while it owns a lock of a state file.

The process is led step by step until the lock's owner is its thread, then it
gets SIGSTOP and is let go: from then on it is an ordinary stopped process with
the lock in its hand. A Holder is a process of our own that takes the same lock
and stops, for servers with threads and where nobody may be led.
"""
import ctypes
import mmap
import os
import signal
import struct
import subprocess
import sys
import time

SEIZE, INTERRUPT, SINGLESTEP, DETACH = 0x4206, 0x4207, 9, 17
HEAD, OWNER = 128, 8  # of every state file; in a pthread_mutex_t
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                        ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


class Lock:
    """The lock of a state file: "throttle" (its place stands in the file) or
    "room" (right behind the head)."""

    def __init__(self, folder, kind, layout):
        self.path = os.path.join(folder, f"{kind}-{layout}.state")
        with open(self.path, "rb") as file:
            self.memory = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
        self.at = struct.unpack_from("I", self.memory, HEAD + 6 * 4)[0] \
            if kind == "throttle" else HEAD

    def owner(self):
        """The thread that has it; 0: nobody."""
        return struct.unpack_from("i", self.memory, self.at + OWNER)[0]


def _trace(request, pid, data=None):
    if LIBC.ptrace(request, pid, None, data) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request} of {pid}")


def stop_owner(lock, pid, deadline=20):
    """Stop this process as soon as it owns the lock."""
    _trace(SEIZE, pid)
    _trace(INTERRUPT, pid)
    os.waitpid(pid, 0x40000000)
    end = time.monotonic() + deadline
    try:
        while lock.owner() != pid:
            _trace(SINGLESTEP, pid)
            os.waitpid(pid, 0x40000000)
            assert time.monotonic() < end, f"{pid} never took the lock"
        os.kill(pid, signal.SIGSTOP)
    finally:
        _trace(DETACH, pid)


HOLDER = """
import ctypes, mmap, sys
path, at = sys.argv[1], int(sys.argv[2])
with open(path, "r+b") as file:
    memory = mmap.mmap(file.fileno(), 4096)
mutex = ctypes.c_char.from_buffer(memory, at)
libc = ctypes.CDLL(None)
assert libc.pthread_mutex_lock(ctypes.byref(mutex)) == 0
print("mine", flush=True)
sys.stdin.read()
assert libc.pthread_mutex_unlock(ctypes.byref(mutex)) == 0
"""


class Holder:
    """A process of our own that has the lock and is stopped."""

    def __init__(self, lock):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, lock.path, str(lock.at)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "mine\n"
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.communicate()
        assert self.process.returncode == 0
