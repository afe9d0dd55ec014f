# SPDX-License-Identifier: Apache-2.0
"""Boards of several web hosts, with memcached between them, without it, and
with one that is away, slow, full, emptied, or tells nonsense."""
import os
import random
import signal
import socket
import threading
import time
from urllib.parse import unquote

import pytest
import requests

from servers import Memcached, until
from yk import board
from yk.booker import Booker

OPERATIONS = int(os.environ.get("YK_OPERATIONS", "10000"))


class Cache(Memcached):
    """Spoken to in its own protocol."""

    def ask(self, *lines, until_line="END"):
        with socket.create_connection(("127.0.0.1", self.port), 5) as line:
            line.sendall("".join(f"{text}\r\n" for text in lines).encode())
            said = b""
            while until_line.encode() + b"\r\n" not in said:
                piece = line.recv(65536)
                if not piece:
                    break
                said += piece
        return said.decode(errors="replace").splitlines()

    def keys(self):
        """{key: its cas number}, which moves with every write"""
        made = {}
        for line in self.ask("lru_crawler metadump all"):
            words = dict(word.split("=", 1) for word in line.split()
                         if "=" in word)
            if "key" in words:
                made[unquote(words["key"])] = int(words["cas"])
        return made

    def stat(self, name):
        return next(int(line.split()[2]) for line in self.ask("stats")
                    if line.startswith(f"STAT {name} "))


@pytest.fixture
def pair(own_rig, tmp_path):
    """A function: two hosts on one database, with so many memcacheds."""
    made = []

    def make(caches=1, megabytes=64, **more):
        rig = own_rig(hosts=0)
        for i in range(caches):
            made.append(Cache(os.path.join(rig.folder, f"cache{i}"),
                              megabytes=megabytes).start())
        # a crowd's idle connections would keep the looks waiting
        conf = "KeepAlive Off\n"
        if made:
            conf += ("YoyakuMemcached " +
                     ",".join(one.address for one in made) + "\n")
        for _ in range(2):
            rig.add_host(conf=conf, **more)
        rig.announce("AH00161")
        return rig, made

    yield make
    for one in made:
        one.stop()


def see(host, slot):
    return board.content(board.get(host, slot).json())


def both_agree(rig, slot, deadline=10):
    until(lambda: all(see(host, slot) == board.in_book(rig, slot)
                      for host in rig.hosts), deadline,
          "both boards to be the book's")


def mixed(url, slot, n, seed, places):
    """Hold, release, confirm, hold pools and parties: n times."""
    chance, bookers = random.Random(seed), []
    for _ in range(n):
        what = chance.randrange(8)
        try:
            if what < 3 or not bookers:
                made = Booker(url, timeout=30)
                made.hold(slot, chance.sample(places, chance.randint(1, 3)))
            elif what == 3:
                made = Booker(url, timeout=30)
                made.hold(slot, area="Floor", quantity=chance.randint(1, 4))
            elif what == 4:
                made = Booker(url, timeout=30)
                made.hold(slot, area="Circle", quantity=chance.randint(1, 4))
            else:
                made = bookers.pop(chance.randrange(len(bookers)))
                if what == 5:
                    made.confirm()
                else:
                    made.release()
                made.http.close()
                continue
            if made.token:
                bookers.append(made)
            else:
                made.http.close()
        except requests.RequestException:
            pass
    for made in bookers:
        made.http.close()


def crowd(rig, slot, n, each):
    places = [f"Stalls-{row}-{seat}" for row in range(1, 11)
              for seat in range(1, 31)]
    threads = [threading.Thread(target=mixed, args=(
        rig.hosts[i % 2].url, slot, each, i, places)) for i in range(n)]
    for thread in threads:
        thread.start()
    return threads


def big_slot(rig):
    return rig.slot({"Stalls": (10, 30), "Circle": (4, 10)},
                    areas={"Circle": "assigned"}, pools={"Floor": 200})


@pytest.mark.parametrize("caches", [0, 1, 2])
def test_what_one_host_did_the_other_shows_soon(pair, caches):
    rig, _ = pair(caches)
    slot = big_slot(rig)
    for host in rig.hosts:
        see(host, slot)
    booker, _ = rig.hold(slot, ["Stalls-1-1"])
    until(lambda: see(rig.hosts[1], slot)["Stalls"][0] == "1", 2, "the hold")
    rig.hold(slot, area="Floor", quantity=5, host=1)
    until(lambda: see(rig.hosts[0], slot)["Floor"] == 195, 2, "the pool")
    booker.release()
    until(lambda: see(rig.hosts[1], slot)["Stalls"][0] == "0", 2, "the release")
    rig.hold(slot, area="Circle", quantity=3, host=1)
    both_agree(rig, slot, 3)


@pytest.mark.parametrize("caches", [0, 1])
def test_after_many_operations_on_both_hosts_the_boards_are_the_books(
        pair, caches):
    rig, _ = pair(caches)
    slot = big_slot(rig)
    last = [0, 0]
    threads = crowd(rig, slot, 6, OPERATIONS // 6 // (2 - caches))
    while any(thread.is_alive() for thread in threads):
        for i, host in enumerate(rig.hosts):
            said = board.get(host, slot).json()
            assert said["generation"] >= last[i]
            last[i] = said["generation"]
        time.sleep(0.05)
    both_agree(rig, slot)
    tags = {board.get(host, slot).headers["ETag"] for host in rig.hosts}
    assert len(tags) == 1


def test_a_hold_touches_keys_of_its_own_slot_alone(pair):
    rig, (cache,) = pair(1)
    slots = [big_slot(rig) for _ in range(8)]
    touched = []
    for asked in (1, 8):
        for slot in slots[:asked]:
            see(rig.host, slot)
        time.sleep(0.7)
        for slot in slots[:asked]:
            see(rig.host, slot)
        before = cache.keys()
        rig.hold(slots[0], [f"Stalls-{asked}-1"])
        time.sleep(0.1)
        after = cache.keys()
        moved = {key for key in after if before.get(key) != after[key]}
        touched.append(len(moved))
        assert len({key.split(":")[1] for key in moved}) <= 1
    assert touched[0] == touched[1] <= 2


FAULTS = ["away", "stopped", "flushed", "full", "restarted", "one of two",
          "nonsense"]


@pytest.mark.parametrize("fault", FAULTS)
def test_boards_stay_right_whatever_memcached_does(pair, fault):
    rig, caches = pair(2 if fault == "one of two" else 1,
                       1 if fault == "full" else 64)
    slot = big_slot(rig)
    others = [big_slot(rig) for _ in range(3)]
    threads = crowd(rig, slot, 4, 120)
    cache = caches[0]
    try:
        time.sleep(0.5)
        if fault in ("away", "restarted", "one of two"):
            cache.stop()
        if fault == "stopped":
            cache.process.send(signal.SIGSTOP)
        for turn in range(6):
            if fault == "flushed":
                cache.ask("flush_all", until_line="OK")
            if fault == "restarted" and turn == 3:
                cache.start()
            if fault == "full":
                for i in range(30):
                    cache.ask(f"set fill{turn}-{i} 0 0 50000", "x" * 50000,
                              until_line="STORED")
            if fault == "nonsense":
                for key in cache.keys():
                    cache.ask(f"set {key} 0 0 9", "nonsense!",
                              until_line="STORED")
            for host in rig.hosts:
                began = time.monotonic()
                for one in [slot] + others:
                    assert board.get(host, one).status_code == 200
                assert time.monotonic() - began < 5
            time.sleep(0.2)
        for thread in threads:
            thread.join()
        both_agree(rig, slot)
    finally:
        if fault == "stopped":
            cache.process.send(signal.SIGCONT)
    if fault in ("away", "one of two"):
        cache.start()
    # it heals by itself: what one does goes through memcached again
    hits = caches[0].stat("get_hits")

    def used_again():
        rig.hold(slot, area="Floor", quantity=1)
        for host in rig.hosts:
            see(host, slot)
        return caches[0].stat("get_hits") > hits

    if fault not in ("nonsense", "one of two"):
        until(used_again, 15, "memcached to be used again")
    both_agree(rig, slot)


def test_a_paused_reader_puts_nothing_old_over_something_newer(pair):
    """Workers of both hosts stand still at any moment, readings too."""
    rig, _ = pair(1)
    slot = big_slot(rig)
    threads = crowd(rig, slot, 4, 150)
    chance = random.Random(6)
    while any(thread.is_alive() for thread in threads):
        for host in rig.hosts:
            pid = chance.choice(host.children())
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.1)
            board.get(host, slot)
            os.kill(pid, signal.SIGCONT)
    both_agree(rig, slot)
