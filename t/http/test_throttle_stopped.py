# SPDX-License-Identifier: Apache-2.0
"""Somebody is stopped with a lock in his hand: the others refuse in time, the
parent goes on starting workers, and afterwards everything heals."""
import itertools
import json
import os
import signal
import time

import pytest
from crowd import House, tally
from servers import until
from yk.stopper import Holder, Lock, stop_owner

pytestmark = pytest.mark.own
NUMBERS = itertools.count(1)
CONF = """
ExtendedStatus on
<Location "/server-status">
    SetHandler server-status
</Location>
<Location "/app">
    YoyakuThrottle app limit=1 refuse-after=60s
</Location>
"""


@pytest.fixture
def house(folder, build, mpm):
    made = []

    def make(conf, **more):
        name = os.path.join(folder, f"stopped{next(NUMBERS)}")
        made.append(House(name, build, mpm, conf, **more))
        return made[-1].start()

    yield make
    for one in made:
        one.stop()


def refused_in_time(h, path, answer=b'"reason":"throttled"'):
    began = time.monotonic()
    client = h.get(path, headers={"Accept": "application/json"})
    assert client.status == 503 and answer in client.answer
    assert time.monotonic() - began < 12


def crowd(h):
    """One inside, two behind him."""
    clients = []
    for n in range(3):
        clients.append(h.come(f"/app/{n}"))
        h.await_rule("app", running=1, queued=n)
    return clients


def healed(h, clients):
    """All are served in order, and the next one as if nothing had been."""
    h.app.open_gate()
    for client in clients:
        client.join(90)
    assert tally(clients) == {200: len(clients)}
    assert h.app.order == [f"/app/{n}" for n in range(len(clients))]
    h.await_rule("app", running=0, queued=0)
    assert h.get("/app/after").status == 200
    assert h.status()["throttle"]["busy"] == 0


@pytest.mark.prefork
def test_a_worker_stopped_with_the_throttle_s_lock(house):
    h = house(CONF, workers=20)
    clients = crowd(h)
    stopped = h.worker_of("/app/2")
    lock = Lock(h.httpd.state, "throttle", 1)
    try:
        stop_owner(lock, stopped)
    except PermissionError:
        return  # nobody is led here; the stranger below says the same
    try:
        assert lock.owner() == stopped
        refused_in_time(h, "/app/new")
        assert h.get("/elsewhere").status == 404
        # the parent takes no lock: who dies is replaced
        idle = next(pid for pid in h.httpd.children() if pid not in (
            stopped, h.worker_of("/app/0"), h.worker_of("/app/1")))
        h.kill(idle)
        until(lambda: idle not in h.httpd.children() and
              len(h.httpd.children()) == 20, 15, "another worker")
        # what ends now marks its place without the lock
        h.app.let_go()
        clients[0].join(90)
        assert clients[0].status == 200
        assert lock.owner() == stopped
    finally:
        os.kill(stopped, signal.SIGCONT)
    until(lambda: len(h.app.order) == 2, 5, "the next one")
    assert h.rule("app")["refused"]["lock"] >= 1
    healed(h, clients)


def test_a_stranger_stopped_with_the_throttle_s_lock(house):
    h = house(CONF, workers=20)
    clients = crowd(h)
    holder = Holder(Lock(h.httpd.state, "throttle", 1))
    try:
        refused_in_time(h, "/app/new")
        assert h.get("/elsewhere").status == 404
        h.graceful()  # the new generation asks again with its first request
        refused_in_time(h, "/app/new")
        assert h.get("/elsewhere").status == 404
    finally:
        holder.go_on()
    healed(h, clients)


def test_a_stranger_stopped_with_the_room_s_lock(house, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    os.chmod(key, 0o600)
    h = house(f'YoyakuKeyFile "{key}"\n<Location "/app">\n'
              "YoyakuWaitingRoom sale active=1 rate=100/s grace=1s\n"
              "</Location>", workers=20)
    h.app.is_open = True
    jar = {}

    def ask(jar, path="/app/x"):
        client = h.get(path, headers={
            "Accept": "application/json", "Cookie": "; ".join(
                f"{name}={value}" for name, value in jar.items())})
        for cookie in client.got.get_all("Set-Cookie") or []:
            name, _, value = cookie.split(";")[0].partition("=")
            jar[name] = value
        return client.status
    until(lambda: ask(jar) == 200, 5, "the first inside")
    holder = Holder(Lock(h.httpd.state, "room", 2))
    try:
        # who shows a pass goes on, others are told to come again
        began = time.monotonic()
        assert ask(jar) == 200
        refused_in_time(h, "/app/x", b'"reason":"queue"')
        assert time.monotonic() - began < 16
        assert h.get("/elsewhere").status == 404
    finally:
        holder.go_on()
    assert ask(jar) == 200
    room = json.loads(h.get("/yoyaku-status?json").answer)["rooms"][0]
    assert room["passes"] == 1
