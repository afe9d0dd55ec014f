# SPDX-License-Identifier: Apache-2.0
"""A private memcached on a loopback port."""
import os
import socket

from .database import program
from .process import Process, ServerError, accepts, free_port


class Memcached:
    def __init__(self, folder, port=0, megabytes=64, tied=True):
        self.folder, self.port = os.path.abspath(folder), port or free_port()
        self.megabytes, self.tied = megabytes, tied
        self.process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        os.makedirs(self.folder, exist_ok=True)
        argv = [program("memcached"), "-l", "127.0.0.1", "-p", str(self.port),
                "-U", "0", "-m", str(self.megabytes), "-c", "2048"]
        if self.megabytes < 2:  # an item is at most half of it
            argv += ["-I", f"{self.megabytes * 512}k"]
        if os.geteuid() == 0:
            argv += ["-u", "nobody"]
        self.process = Process(argv, os.path.join(self.folder, "memcached.log"),
                               tied=self.tied)
        self.process.start()
        self.process.await_ready(lambda: accepts(("127.0.0.1", self.port)))
        return self

    def set(self, key, value):
        with socket.create_connection(("127.0.0.1", self.port), 5) as line:
            line.sendall(f"set {key} 0 0 {len(value)}\r\n".encode() + value
                         + b"\r\n")
            said = line.recv(64)
        if said != b"STORED\r\n":
            raise ServerError(f"memcached did not keep {key}: {said!r}")

    def stop(self):
        if self.process is not None:
            self.process.stop()
            self.process = None
