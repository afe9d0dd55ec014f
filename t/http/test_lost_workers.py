# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed or stopped around COMMIT, and a database that stops
under load: the same key gives the truth, nothing is half taken, nothing that
was answered is lost."""
import contextlib
import itertools
import os
import signal
import struct
import threading
import time

import pymysql
import pytest

from yk import Rig, Wire

keys = (f"lost-worker-key-{n:014d}" for n in itertools.count())
PLACES = ["Stalls-1-1", "Stalls-1-2"]


@pytest.fixture
def wired(rig):
    """A host whose lines to the database go through a wire of its own."""
    with Wire(rig.database.port) as wire:
        host = rig.add_host(params=rig.params(port=wire.port), workers=4)
        host.announce(r"\[dbd:", r"yoyaku:(warn|error)")
        host.wire = wire
        yield host
        wire.let_go()
        host.stop()
        rig.hosts.remove(host)


def commits(sql):
    return b"COMMIT" in sql and b"yoyaku_journal" in sql


def locks(sql):
    return b"FOR UPDATE" in sql and b"COMMIT" not in sql


def kill_all(host):
    for pid in host.children():
        host.kill_child(pid, signal.SIGKILL)


def ask(told, do):
    """In a thread: the client of a worker that may not live."""
    def run():
        try:
            told.append(do())
        except OSError as error:
            told.append(error)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def book(rig, slot):
    """(orders, place rows taken) of a slot."""
    return (rig.value("SELECT COUNT(DISTINCT order_id) FROM yoyaku_booking b "
                      "JOIN yoyaku_slot s USING (slot_id) WHERE s.slot_key = "
                      "%s", (slot,)),
            rig.value("SELECT COUNT(*) FROM yoyaku_slot_place t JOIN "
                      "yoyaku_slot s USING (slot_id) WHERE s.slot_key = %s AND "
                      "t.order_id <> 0", (slot,)))


# ---- SIGKILL before, during and after COMMIT ----

def killed(host, when):
    """A rule that kills the host's workers around a hold's COMMIT. During: the
    packet goes on its way when its sender is dead already and somebody else
    asks for the same."""
    wire = host.wire
    if when == "before":
        def action(sql):
            kill_all(host)
            return None
    elif when == "during":
        def action(sql):
            kill_all(host)
            wire.go.wait(60)
            return sql
    else:
        action = "mute"
    return wire.rule(commits, action)


@pytest.mark.parametrize("repeated", ["same key", "stranger"])
@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_a_worker_killed_around_commit_leaves_the_truth(when, repeated, rig,
                                                        wired):
    slot, key = rig.slot({"Stalls": (1, 4)}), next(keys)
    told, rule = [], killed(wired, when)
    client = ask(told, lambda: wired.booker().hold(slot, places=PLACES,
                                                   key=key))
    assert rule.seen.wait(60)
    if when == "after":
        rig.until(lambda: book(rig, slot)[1] == 2, 10, "the COMMIT")
        kill_all(wired)
        wired.wire.cut_all()
    client.join(90)
    assert told and isinstance(told[0], OSError), told
    if when == "during":
        # asked again while nobody can see what becomes of the first
        threading.Timer(0.5, wired.wire.let_go).start()
    again = rig.booker().hold(slot, places=PLACES, key=key
                              if repeated == "same key" else next(keys))
    if repeated == "same key" or when == "before":
        assert again.status_code == 201, again.text
    else:
        assert again.json()["reason"] == "taken", again.text
    assert book(rig, slot) == (1, 2)
    third = rig.booker().hold(slot, places=PLACES, key=key)
    if repeated == "same key":
        assert third.json()["token"] == again.json()["token"]


@pytest.mark.parametrize("when", ["before", "during", "after"])
@pytest.mark.parametrize("deed", ["confirm", "release"])
def test_a_worker_killed_around_another_deed_leaves_the_truth(deed, when, rig,
                                                              wired):
    slot, key = rig.slot({"Stalls": (1, 4)}), next(keys)
    booker = rig.booker()
    assert booker.hold(slot, places=PLACES).status_code == 201

    def do(host):
        one = host.booker()
        one.token = booker.token
        return getattr(one, deed)(key=key)

    told, rule = [], killed(wired, when)
    client = ask(told, lambda: do(wired))
    assert rule.seen.wait(60)
    if when == "after":
        rig.until(lambda: rig.value(
            "SELECT o.state FROM yoyaku_order o JOIN yoyaku_booking USING "
            "(order_id) JOIN yoyaku_slot s USING (slot_id) WHERE s.slot_key = "
            "%s", (slot,)) > 2, 10, "the COMMIT")
        kill_all(wired)
        wired.wire.cut_all()
    client.join(90)
    assert told and isinstance(told[0], OSError), told
    threading.Timer(0.3, wired.wire.let_go).start()
    states = [do(rig).json()["state"] for _ in range(2)]
    assert states == ["confirmed" if deed == "confirm" else "released"] * 2
    rows = rig.rows("SELECT at_us FROM yoyaku_journal JOIN yoyaku_slot USING "
                    "(slot_id) WHERE slot_key = %s", (slot,))
    assert len(rows) == 2  # held, and that once


# ---- SIGSTOP ----

def test_a_worker_stopped_between_its_packets_frees_its_places(rig, wired):
    """The database ends its transaction; what it says afterwards is true."""
    slot, told = rig.slot({"Stalls": (1, 4)}), []
    rule = wired.wire.rule(commits, "hold")
    client = ask(told, lambda: wired.booker().hold(slot, places=PLACES))
    assert rule.seen.wait(60)
    stopped = wired.children()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        rig.until(lambda: rig.booker().hold(
            slot, places=PLACES).status_code == 201, 15, "the places")
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    wired.wire.let_go()
    client.join(90)
    said = told[0]
    assert said.status_code in (409, 503), said.text
    assert book(rig, slot) == (1, 2)


class Load:
    """Bookers who come all the time, each to a place of his own, and note what
    they were told."""

    def __init__(self, rig, slot, seats):
        self.rig, self.slot, self.told = rig, slot, []
        self.seats = iter(seats)
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._come, daemon=True)
                        for _ in range(8)]
        for thread in self.threads:
            thread.start()

    def _come(self):
        while not self.stop.is_set():
            with self.lock:
                seat, key = next(self.seats, None), next(keys)
            if seat is None:
                return
            answer = self.rig.booker().hold(self.slot, places=[seat], key=key)
            with self.lock:
                self.told.append((seat, key, answer.status_code,
                                  answer.json(), time.monotonic()))
            self.stop.wait(0.05)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "a booker was never answered"

    def judge(self):
        """What was answered 201 is there; the others learn the truth."""
        assert {code for _, _, code, _, _ in self.told} <= {201, 503}
        held = self._owners()
        for seat, key, code, said, _ in self.told:
            if code == 201:
                assert held.get(seat) == said["number"], seat
                continue
            assert said["reason"] in ("busy", "away", "unresolved"), said
            again = self._again(seat, key)
            assert again.status_code == 201, (said, again.text)
            if said["reason"] == "unresolved" and seat in held:
                assert again.json()["number"] == held[seat]
        assert len(self._owners()) == len(self.told)

    def _again(self, seat, key):
        """The same once more, as he is told to: after a while. A worker that
        has met the trouble asks the database again when its pause is over."""
        deadline = time.monotonic() + 15
        while True:
            answer = self.rig.booker().hold(self.slot, places=[seat], key=key)
            if answer.status_code != 503 or time.monotonic() > deadline:
                return answer
            time.sleep(0.2)

    def _owners(self):
        shop = {row["guid"].decode(): row["order_id"] for row in self.rig.rows(
            "SELECT p.guid, t.order_id FROM yoyaku_slot_place t JOIN "
            "yoyaku_slot s USING (slot_id) JOIN yoyaku_place p ON p.hall_id = "
            "s.hall_id AND p.place_no = t.place_no WHERE s.slot_key = %s AND "
            "t.order_id <> 0", (self.slot,))}
        return {seat: number(order_id) for seat, order_id in shop.items()}


ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def number(order_id):
    """An order's public number: its id in base 32."""
    text = ""
    for _ in range(13):
        text = ALPHABET[order_id % 32] + text
        order_id //= 32
    return text


def kill_lines(rig):
    """Every line of the web host, busy or idle."""
    line = rig.connect()
    try:
        with line.cursor() as cursor:
            cursor.execute("SHOW PROCESSLIST")
            for row in cursor.fetchall():
                if row[1] == "yoyaku":
                    with contextlib.suppress(pymysql.err.MySQLError):
                        cursor.execute(f"KILL {row[0]}")  # gone already: good
    finally:
        line.close()


@pytest.fixture(scope="module")
def shaky(folder, build, mpm):
    """A house with a database of its own, to be troubled."""
    made = Rig(f"{folder}/shaky", build, mpm, clock=False)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.mark.own
@pytest.mark.parametrize("trouble", ["stopped for 3 s", "stopped for 13 s",
                                     "restarted", "killed", "lines killed"])
def test_a_database_in_trouble_under_load(trouble, shaky):
    rig = shaky
    rig.announce(r"\[dbd:", r"yoyaku:(warn|error)")
    slot = rig.slot({"Stalls": (50, 40)})
    seats = [f"Stalls-{row}-{seat}" for seat in range(1, 41)
             for row in range(1, 51)]
    load = Load(rig, slot, seats)
    try:
        rig.until(lambda: len(load.told) > 20, 20, "some holds")
        if trouble.startswith("stopped"):
            rig.database.freeze()
            time.sleep(int(trouble.split()[-2]))
            rig.database.thaw()
        elif trouble == "restarted":
            rig.database.restart()
        elif trouble == "killed":
            rig.database.kill()
            rig.database.start()
        else:
            for _ in range(10):
                kill_lines(rig)
                time.sleep(0.1)
        over = time.monotonic()
        rig.until(lambda: [1 for *_, code, _, at in load.told
                           if code == 201 and at > over], 10, "service")
    finally:
        load.end()
    load.judge()
    assert not rig.complaints()
    rig.verify_book([slot])


@pytest.mark.own
@pytest.mark.prefork
def test_a_worker_told_to_end_in_the_middle_does_not_crash(own_rig):
    """Its pools are cleaned up in the signal handler, in no order that the
    request knows of; the server's log is read at the end."""
    rig = own_rig(conf="YoyakuConnections 1\nKeepAlive Off\n", workers=24)
    rig.announce("AH00161", r"\[dbd:", r"yoyaku:(warn|error)")
    slot = rig.slot({"Stalls": (10, 40)})
    stop, ended = threading.Event(), 0

    def knock(n):
        while not stop.is_set():
            try:
                rig.booker().hold(slot, places=[f"Stalls-{1 + n}-{1 + n}"])
            except OSError:
                pass

    crowd = [threading.Thread(target=knock, args=(n,)) for n in range(10)]
    for one in crowd:
        one.start()
    until = time.monotonic() + 8
    while time.monotonic() < until:
        for pid in rig.host.children()[:1]:
            try:
                os.kill(pid, signal.SIGTERM)
                ended += 1
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    stop.set()
    for one in crowd:
        one.join()
    assert ended > 50
    rig.until(lambda: rig.booker().hold(
        slot, places=["Stalls-10-40"]).status_code == 201, 10, "service")


# ---- a server that ends as a whole ----

ROWS, ROW_BYTES = 4096, 128  # worker.h


def identities(host):
    """Who stands in the table of workers."""
    with open(os.path.join(host.httpd.state, "workers-1.state"), "rb") as file:
        rows = file.read()[-ROWS * ROW_BYTES:]
    said = (struct.unpack_from("=Q", rows, i * ROW_BYTES)[0]
            for i in range(ROWS))
    return [identity for identity in said if identity]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_no_worker_outlives_its_server_in_the_table(how, rig):
    """Else every stop costs rows, until none is left; and a wish that was not
    taken yet would be carried out after the start, for nobody."""
    host = rig.add_host(workers=4)
    try:
        for _ in range(2):
            rig.until(lambda: len(identities(host)) >= len(host.children()) > 1,
                      10, "its workers")
            if how == "kill":
                for pid in [host.pid, *host.children()]:
                    os.kill(pid, signal.SIGKILL)
            host.stop()
            host.start()
        here = set(host.children())
        rig.until(lambda: {one >> 32 for one in identities(host)} <= here, 5,
                  f"the living alone, not {identities(host)}")
    finally:
        host.stop()
        rig.hosts.remove(host)
