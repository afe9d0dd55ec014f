# SPDX-License-Identifier: Apache-2.0
"""A wire between httpd and the database that a test can pinch.

It forwards bytes and understands as much of the protocol as it must: a packet
of the client is 3 bytes length, 1 byte sequence, payload; the payload of a
query is 0x03 and the SQL. A rule sees every query before it goes on:

    with Wire(database.port) as wire:
        host = rig.add_host(params=rig.params(port=wire.port))
        wire.rule(lambda sql: b"COMMIT" in sql, "cut_after", times=1)

Actions: "cut_before" (the packet never arrives), "cut_after" (it arrives, the
answer does not), "mute" (the same, but the line stays, silent, until
cut_all()), "hold" (it waits until let_go()), "late" (it arrives, and the
answer waits until let_go()), or a function of the SQL whose
result is sent in its place (None: the line is cut).
"""
import socket
import struct
import threading


class Rule:
    def __init__(self, matches, action, times):
        self.matches, self.action, self.times = matches, action, times
        self.seen = threading.Event()
        self.hits = 0


class Wire:
    def __init__(self, port):
        self.target = ("127.0.0.1", port)
        self.rules, self.queries = [], []
        self.go = threading.Event()
        self.lock = threading.Lock()
        self.pairs = []
        self.refusing = False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def rule(self, matches, action, times=1):
        """For the next `times` queries that match (-1: for ever)."""
        made = Rule(matches, action, times)
        with self.lock:
            self.rules.append(made)
        return made

    def let_go(self):
        self.go.set()

    def clear(self):
        with self.lock:
            self.rules.clear()

    def cut_all(self):
        """Every line breaks now; new ones may come."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for end in pair:
                _break(end)

    def close(self):
        self.refusing = True
        self.go.set()
        self.listener.close()
        self.cut_all()

    # ---- inside ----

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                if self.refusing:
                    return
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.pairs.append((client, server))
            quiet = threading.Event()  # set: answers go nowhere
            quiet.stays = quiet.late = False
            threading.Thread(target=self._answers, daemon=True,
                             args=(client, server, quiet)).start()
            threading.Thread(target=self._questions, daemon=True,
                             args=(client, server, quiet)).start()

    def _answers(self, client, server, quiet):
        try:
            while True:
                data = server.recv(65536)
                if not data:
                    break
                if quiet.late:
                    self.go.wait(60)
                    quiet.late = False
                if quiet.is_set():
                    if quiet.stays:
                        continue
                    break
                client.sendall(data)
        except OSError:
            pass
        _break(client)
        _break(server)

    def _questions(self, client, server, quiet):
        try:
            while True:
                head = _exactly(client, 4)
                size = int.from_bytes(head[:3], "little")
                payload = _exactly(client, size)
                if payload[:1] == b"\x03":
                    payload = self._judge(payload[1:], quiet)
                    if payload is None:
                        break
                    payload = b"\x03" + payload
                head = struct.pack("<I", len(payload))[:3] + head[3:]
                server.sendall(head + payload)
        except OSError:
            pass
        if not quiet.is_set():
            _break(server)
            _break(client)

    def _judge(self, sql, quiet):
        with self.lock:
            self.queries.append(sql)
            rule = next((rule for rule in self.rules
                         if rule.times != 0 and rule.matches(sql)), None)
            if rule is None:
                return sql
            rule.times -= 1
            rule.hits += 1
        rule.seen.set()
        if callable(rule.action):
            return rule.action(sql)
        if rule.action == "hold":
            self.go.wait(60)
            return sql
        if rule.action == "late":
            quiet.late = True
            return sql
        if rule.action in ("cut_after", "mute"):
            quiet.stays = rule.action == "mute"
            quiet.set()
            return sql
        return None


def _exactly(end, size):
    data = b""
    while len(data) < size:
        more = end.recv(size - len(data))
        if not more:
            raise OSError("closed")
        data += more
    return data


def _break(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()
