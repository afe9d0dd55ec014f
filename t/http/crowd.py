# SPDX-License-Identifier: Apache-2.0
"""What the tests of throttle and room share: a server, a slow application
behind it that is told when to answer, and clients that come in an order."""
import collections
import http.client
import http.server
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import traceback

from servers import PAGES, Httpd, until
from servers.process import tail


class Application:
    """Answers each request when it is let go; knows who is inside."""

    def __init__(self):
        self.inside = []     # paths, as they came
        self.order = []      # all that ever came
        self.most = 0
        self.gate = threading.Semaphore(0)
        self.is_open = False
        self.headers = {}    # added to every answer
        self.pause = 0
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.enter(self.path)
                if outer.pause:
                    time.sleep(outer.pause)
                if not outer.is_open:
                    outer.gate.acquire()
                outer.leave(self.path)
                body = b"ok"
                try:
                    self.send_response(200)
                    for name, value in outer.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.send_header("Connection", "close")
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the worker that asked was killed
                self.close_connection = True

            do_POST = do_GET

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 512
            daemon_threads = True

            def handle_error(self, request, client_address):
                if House.in_test:
                    traceback.print_exc()

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()

    def enter(self, path):
        with self.lock:
            self.inside.append(path)
            self.order.append(path)
            self.most = max(self.most, len(self.inside))

    def leave(self, path):
        with self.lock:
            self.inside.remove(path)

    def let_go(self, n=1):
        for _ in range(n):
            self.gate.release()

    def open_gate(self):
        self.is_open = True
        self.let_go(1000)

    def stop(self):
        self.open_gate()
        self.server.shutdown()
        self.server.server_close()


class Client(threading.Thread):
    """One request on a connection of its own."""

    def __init__(self, port, path, headers=None, method="GET", body=None,
                 source="127.0.0.1"):
        super().__init__(daemon=True)
        self.source = source
        self.port, self.path, self.method = port, path, method
        self.headers, self.body = headers or {}, body
        self.status = self.answer = self.got = None
        self.done_at = None

    def run(self):
        try:
            line = http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=90,
                source_address=(self.source, 0))
            line.request(self.method, self.path, self.body, self.headers)
            answer = line.getresponse()
            self.answer = answer.read()
            self.got = answer.headers
            self.status = answer.status
            line.close()
        except (OSError, http.client.HTTPException) as error:
            self.status = str(error) or type(error).__name__
        self.done_at = time.monotonic()


class House:
    """A server with an application under /app."""

    in_test = False  # pytest shows what is printed when a test has failed

    def __init__(self, folder, build, mpm, conf, workers=40, modules=(),
                 port=0):
        self.app = Application()
        self.mpm = mpm
        self.form = conf
        self.httpd = Httpd(folder, build, self.text(conf), mpm, workers,
                           port=port,
                           modules=["proxy", "proxy_http", *modules])
        self.bad = []
        self.killed = set()

    def text(self, conf):
        return (f'ProxyPass "/app" "http://127.0.0.1:{self.app.port}/app" '
                f"disablereuse=on\nProxyTimeout 100\n{PAGES}\n{conf}")

    def start(self):
        self.httpd.start()
        return self

    def stop(self):
        self.app.stop()
        self.httpd.stop()
        if self.in_test:
            print(tail(self.httpd.error_log, 30), file=sys.stderr)

    def conf(self, conf):
        """Takes effect with the next graceful()."""
        self.httpd.conf = self.text(conf)

    def graceful(self):
        self.httpd.graceful()

    # ---- people ----

    def come(self, path, **more):
        client = Client(self.httpd.port, path, **more)
        client.start()
        return client

    def get(self, path, **more):
        client = self.come(path, **more)
        client.join(90)
        return client

    # ---- what it says of itself ----

    def status(self):
        client = self.get("/yoyaku-status?json")
        assert client.status == 200, client.status
        return json.loads(client.answer)

    def rule(self, name):
        for rule in self.status()["throttle"]["rules"]:
            if rule["name"] == name:
                return rule
        return None

    def await_rule(self, name, running=None, queued=None, deadline=10):
        def right():
            rule = self.rule(name)
            return rule is not None and \
                running in (None, rule["running"]) and \
                queued in (None, rule["queued"]) and rule
        return until(right, deadline, f"{name}: running={running} "
                     f"queued={queued}; it is {self.rule(name)}")

    # ---- its workers ----

    def worker_of(self, path):
        """The pid that serves this path now, by the server's own page."""
        text = self.get("/server-status").answer.decode()
        for row in text.split("<tr>"):
            if f" {path} " in row:
                pid = re.search(r"</b></td><td>(\d+)</td>", row)
                if pid:
                    return int(pid.group(1))
        return None

    def kill(self, pid, number=signal.SIGKILL):
        self.killed.add(pid)
        os.kill(pid, number)


def hang_up(port, path):
    """A client that asks and may leave: its socket."""
    line = socket.create_connection(("127.0.0.1", port))
    line.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return line


def tally(clients):
    return collections.Counter(client.status for client in clients)
