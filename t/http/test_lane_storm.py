# SPDX-License-Identifier: Apache-2.0
"""Lanes in a storm: a slot is sold out by a crowd while workers are killed, the
configuration is changed or the database goes; what anybody was told stands in
the book, and the book holds nothing that nobody was told of."""
import collections
import itertools
import os
import random
import signal
import threading
import time

import pytest
import requests

SECTIONS = {"Stalls": (8, 25)}  # 200 places
GUIDS = [f"Stalls-{row}-{seat}" for row in range(1, 9)
         for seat in range(1, 26)]
BOOKERS = 24
STORM = 6  # seconds that it blows, at the most

keys = (f"storm-of-the-lanes-{n:012d}" for n in itertools.count())


class Crowd:
    """Bookers who ask again, with the same key, until they are answered; or
    who give up when they are not."""

    def __init__(self, hosts, slot, gives_up=False):
        self.hosts, self.slot, self.gives_up = hosts, slot, gives_up
        self.held = collections.Counter()
        self.refused = self.again = 0
        self.odd, self.broken = [], []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(i,))
                        for i in range(BOOKERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        for thread in self.threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in self.threads)
        if self.broken:
            raise self.broken[0]

    @property
    def sells(self):
        return any(thread.is_alive() for thread in self.threads)

    def _run(self, i):
        try:
            rng = random.Random(i)
            mine = GUIDS[:]
            rng.shuffle(mine)
            while mine:
                wanted, mine = mine[:3], mine[3:]
                self._hold(self.hosts[i % len(self.hosts)], wanted)
        except Exception as error:  # told by the test's own thread
            self.broken.append(error)

    def _hold(self, host, wanted):
        """Whole or, when something of it is gone, one by one."""
        answer = self._ask(host, wanted)
        if answer is None:
            return
        if answer.status_code == 201:
            with self.lock:
                self.held.update(line["place"]
                                 for line in answer.json()["lines"])
        elif answer.status_code == 409 and len(wanted) > 1:
            for place in wanted:
                self._hold(host, [place])
        elif answer.status_code == 409:
            with self.lock:
                self.refused += 1
        else:
            self.odd.append((answer.status_code, answer.text))

    def _ask(self, host, wanted):
        key, end = next(keys), time.monotonic() + 60
        while True:
            try:
                answer = host.booker().hold(
                    self.slot, places=wanted, key=key,
                    headers={"Connection": "close"})
                if answer.status_code != 503:
                    return answer
                assert "Retry-After" in answer.headers
            except requests.RequestException:
                pass  # its worker was killed
            with self.lock:
                self.again += 1
            if self.gives_up:
                return None
            assert time.monotonic() < end, "never answered"
            time.sleep(0.05)


def settled(rig, crowd, slot):
    """The verdict: sold out, each place once, to whom it was told."""
    assert not crowd.odd
    assert set(crowd.held.values()) == {1}
    assert set(crowd.held) == set(GUIDS)
    assert rig.value(
        "SELECT COUNT(*) FROM yoyaku_slot_place p JOIN yoyaku_slot s USING "
        "(slot_id) WHERE s.slot_key = %s AND p.state = 1", (slot,)) == 200
    rig.verify_book()


def lane(switch):
    return (f'<Location "/yoyaku">\nYoyakuLane {switch}\n</Location>\n'
            '<Location "/lane-metrics">\nSetHandler yoyaku-metrics\n'
            '</Location>\n<Location "/lane-status">\n'
            'SetHandler yoyaku-status\n</Location>\n')


@pytest.fixture(params=["on", "off"])
def host(rig, request):
    made = rig.add_host(workers=16, conf=lane(request.param))
    made.announce(r"AH00051|AH00052|\[dbd:|yoyaku:(warn|error)", r"AH00045")
    made.await_children(1)
    yield made
    made.stop()
    rig.hosts.remove(made)


def kill_one(host, rng):
    """True: somebody was there, and alive still."""
    children = host.children()
    try:
        host.kill_child(rng.choice(children))
    except (IndexError, ProcessLookupError):
        return False
    return True


@pytest.mark.prefork  # a child of event is half the server
def test_workers_killed_twenty_times_a_second(rig, host):
    slot, rng = rig.slot(SECTIONS), random.Random(1)
    killed = 0
    with Crowd([host], slot) as crowd:
        end = time.monotonic() + STORM
        while crowd.sells and time.monotonic() < end:
            killed += kill_one(host, rng)
            time.sleep(0.05)
    assert killed > 5 and crowd.again > 0
    settled(rig, crowd, slot)


@pytest.mark.prefork
def test_what_a_lost_crowd_left_is_sold_when_its_time_is_over(rig):
    """Workers killed behind a backlog that overflows, and nobody who asks
    twice: what they may have got is had again after its deadline, all of it."""
    slot, rng = rig.slot(SECTIONS), random.Random(2)
    host = rig.add_host(workers=6, conf=lane("on") + "ListenBacklog 4\n")
    host.announce(r"AH00051|AH00052|\[dbd:|yoyaku:(warn|error)", r"AH00045")
    try:
        with Crowd([host], slot, gives_up=True) as lost:
            end = time.monotonic() + STORM
            while lost.sells and time.monotonic() < end:
                kill_one(host, rng)
                time.sleep(0.05)
        assert lost.again > 0 and not lost.odd
        assert set(lost.held.values()) <= {1}
        rig.advance(601)
        with Crowd([host], slot) as crowd:
            pass
        settled(rig, crowd, slot)
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_graceful_once_a_second(rig, host):
    slot = rig.slot(SECTIONS)
    with Crowd([host], slot) as crowd:
        end = time.monotonic() + STORM
        while crowd.sells and time.monotonic() < end:
            time.sleep(1)
            host.graceful()
    settled(rig, crowd, slot)


@pytest.mark.parametrize("action", ["stopped", "restarted"])
def test_the_database_goes_and_comes_back(rig, host, action):
    slot = rig.slot(SECTIONS)
    with Crowd([host], slot) as crowd:
        time.sleep(0.3)
        if action == "stopped":
            os.kill(rig.database.pid, signal.SIGSTOP)
            time.sleep(2)
            os.kill(rig.database.pid, signal.SIGCONT)
        else:
            rig.database.restart()
    settled(rig, crowd, slot)


def test_two_hosts_sell_one_slot(rig, host):
    other = rig.add_host(workers=16, conf=lane("on"))
    other.announce(r"yoyaku:(warn|error)")
    try:
        slot = rig.slot(SECTIONS)
        with Crowd([host, other], slot) as crowd:
            pass
        assert crowd.again == 0, "a deadlock was shown to somebody"
        settled(rig, crowd, slot)
    finally:
        other.stop()
        rig.hosts.remove(other)


def test_the_lanes_carry_what_they_are_given(rig):
    """With lanes on there are fewer commits than holds; off, as many."""
    commits = {}
    for switch in ("on", "off"):
        host = rig.add_host(workers=16, conf=lane(switch))
        try:
            slot = rig.slot(SECTIONS)
            before = int(rig.value("SELECT VARIABLE_VALUE FROM information_"
                                   "schema.GLOBAL_STATUS WHERE VARIABLE_NAME "
                                   "= 'Com_commit'"))
            with Crowd([host], slot) as crowd:
                pass
            commits[switch] = int(rig.value(
                "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                "WHERE VARIABLE_NAME = 'Com_commit'")) - before
            settled(rig, crowd, slot)
            told(host, switch)
        finally:
            host.stop()
            rig.hosts.remove(host)
    assert commits["on"] < commits["off"]


def told(host, switch):
    """Status and metrics count what went through the lanes."""
    lanes = host.get("/lane-status?json").json()["lanes"]
    metrics = host.get("/lane-metrics").text
    assert "<h2>Lanes</h2>" in host.get("/lane-status").text
    assert f"yoyaku_lane_wishes_total {lanes['wishes']}\n" in metrics
    assert (lanes["wishes"] > 60) == (switch == "on")
    assert sum(size["n"] for size in lanes["batch_size"]) == lanes["batches"]
    if switch == "on":
        assert 0 < lanes["batches"] < lanes["wishes"]
        assert lanes["waiting"] == 0
