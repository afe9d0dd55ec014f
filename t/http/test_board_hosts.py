# SPDX-License-Identifier: Apache-2.0
"""Boards of several web hosts, with memcached between them, without it, and
with one that is away, slow, full, emptied, or tells nonsense."""
import itertools
import os
import random
import re
import signal
import socket
import threading
import time
from urllib.parse import unquote

import pytest
import requests

from load.arms import Arm
from load.driver import CHANGES, Driver
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

    def spoil(self, chance):
        """Turn one bit over in every value, behind the first bytes."""
        for key in self.keys():
            with socket.create_connection(("127.0.0.1", self.port), 5) as line:
                file = line.makefile("rwb")
                file.write(f"get {key}\r\n".encode())
                file.flush()
                words = file.readline().split()
                if words[:1] != [b"VALUE"]:
                    continue
                value = bytearray(file.read(int(words[3])))
                value[chance.randrange(min(48, len(value) - 1),
                                       len(value))] ^= 1 << chance.randrange(8)
                file.readline(), file.readline()
                file.write(b"set %s 0 10 %d\r\n%s\r\n" % (
                    key.encode(), len(value), value))
                file.flush()
                file.readline()

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
                made = Booker(url)
                made.hold(slot, chance.sample(places, chance.randint(1, 3)))
            elif what == 3:
                made = Booker(url)
                made.hold(slot, area="Floor", quantity=chance.randint(1, 4))
            elif what == 4:
                made = Booker(url)
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


# Everything a booker does, as fast as two hosts take it.
MIX = """
steps     hold more exchange checkout release
exchange  50
more      1..2
party     1..2
tries     20
keys      on
keepalive on
"""


def drive(rig, slot, places, host, number, seconds=4):
    """Bookers come and go on one host; the driver that does it."""
    folder = os.path.join(rig.folder, f"drive{number}")
    os.makedirs(folder)
    mix = os.path.join(folder, "mix")
    with open(mix, "w") as file:
        file.write(MIX)
    return Driver(rig.build, folder, rig.hosts[host].url, Arm("yoyaku").text()
                  .replace(',"tariff":"standard"', ""), mix, [slot], places,
                  {"plan": "closed", "bookers": 10, "threads": 1,
                   "seconds": seconds, "seed": number, "progress_ms": 0},
                  record=False).start()


def held(rig, most):
    return rig.rows("SELECT order_id FROM yoyaku_order WHERE state = 1 "
                    "ORDER BY order_id DESC LIMIT %s", (most,))


def release(rig, order):
    return rig.ctl("order", "release", board.number_of(order["order_id"]),
                   check=False).returncode == 0


def operate(rig, slot, stop, done):
    """What operators do meanwhile: places off sale and on again, the slot
    closed for a moment, orders released."""
    chance = random.Random(3)
    for turn in itertools.count():
        named = [f"Stalls-{chance.randint(1, 10)}-{chance.randint(1, 30)}",
                 f"Circle-{chance.randint(1, 4)}-{chance.randint(1, 10)}"]
        does = [["place", "close", *named, "--slot", slot]]
        if turn % 8 == 7:
            does += [["slot", "close", slot], ["slot", "open", slot]]
        done += [release(rig, order) for order in held(rig, 1)]
        is_last = stop.is_set()
        if not is_last:  # those of the last turn stay closed
            does.append(["place", "open", *named, "--slot", slot])
        done += [rig.ctl(*args, check=False).returncode == 0 for args in does]
        if is_last:
            return
        stop.wait(0.2)


@pytest.mark.parametrize("caches", [0, 1])
def test_after_many_operations_on_both_hosts_the_boards_are_the_books(
        pair, caches):
    rig, _ = pair(caches)
    slot = big_slot(rig)
    places = [f"Stalls-{row}-{seat}" for row in range(1, 11)
              for seat in range(1, 31)]
    last, done, by_operators, stop = [0, 0], 0, [], threading.Event()
    others = crowd(rig, slot, 2, 100)
    operator = threading.Thread(target=operate,
                                args=(rig, slot, stop, by_operators))
    operator.start()
    numbers = itertools.count(1)
    deadline = time.monotonic() + 120
    while done < OPERATIONS and time.monotonic() < deadline:
        drivers = [drive(rig, slot, places, host, next(numbers))
                   for host in (0, 1)]
        while any(driver.running() for driver in drivers):
            for i, host in enumerate(rig.hosts):
                said = board.get(host, slot).json()
                assert said["generation"] >= last[i]
                last[i] = said["generation"]
            time.sleep(0.05)
        done += sum(driver.wait(120).count(CHANGES, ("ok",))
                    for driver in drivers)
        # what was in hand when they stopped would fill the house
        by_operators += [release(rig, order) for order in held(rig, 80)]
    stop.set()
    for thread in others + [operator]:
        thread.join()
    assert done >= OPERATIONS
    assert sum(by_operators) > 20
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


def test_a_host_without_room_takes_the_board_that_was_rendered_for_all(
        pair):
    """One reads the slot for all; without memcached each answer would."""
    rig, (cache,) = pair(1)
    for _ in range(2):
        host = rig.hosts.pop()
        host.stop()
    for _ in range(2):
        rig.add_host(conf="KeepAlive Off\nYoyakuMemory 1M\n"
                     f"YoyakuMemcached {cache.address}\n")
    slot = rig.slot({"Stalls": (1000, 60)})
    rig.hold(slot, ["Stalls-1-2"])
    answers = []

    def look(number):
        for i in range(40):
            said = board.get(rig.hosts[(i + number) % 2], slot,
                             Accept_Encoding=("gzip", "identity")[i % 2])
            answers.append(said.status_code == 200 and
                           said.json()["free"] == 59_999)

    until(lambda: see(rig.host, slot), 20, "the first")
    before = selects(rig)
    threads = [threading.Thread(target=look, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 160
    # a reading of the whole slot is thirty of them
    assert selects(rig) - before < 10 * len(answers)
    assert any(key.startswith("ykd:") for key in cache.keys())
    rig.hold(slot, ["Stalls-1-3"])
    both_agree(rig, slot, 5)


def selects(rig):
    row, = rig.rows("SHOW GLOBAL STATUS LIKE 'Com_select'")
    return int(row["Value"])


METRICS = """
<Location "/yoyaku-metrics">
    SetHandler yoyaku-metrics
</Location>
"""


def metrics(host):
    found = {}
    for line in host.get("/yoyaku-metrics").text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            found[name] = float(value)
    return found


def at_rest(rig, cache):
    """What all hosts and memcached counted, when nothing moves any more."""
    last = None

    def still():
        nonlocal last
        before, last = last, (
            [metrics(host) for host in rig.hosts], {
                name: cache.stat(name) for name in (
                    "cmd_get", "get_hits", "get_misses", "cmd_set")})
        return before and calls_in(before) == calls_in(last)

    def calls_in(said):
        return said[1], [{name: value for name, value in one.items()
                          if name.startswith("yoyaku_cache_")}
                         for one in said[0]]

    until(still, 10, "the end of all calls")
    return last


def test_the_digest_of_memcached_is_what_memcached_saw(own_rig, tmp_path):
    """By pattern of the key; all hosts' together are the server's own count."""
    cache = Cache(str(tmp_path)).start()
    try:
        rig = own_rig(hosts=2, conf="KeepAlive Off\n" + METRICS +
                      f"YoyakuMemcached {cache.address}\n")
        slot = big_slot(rig)
        for turn in range(30):
            rig.hold(slot, area="Floor", quantity=1, host=turn % 2)
            for host in rig.hosts:
                see(host, slot)
            time.sleep(0.06)
        both, seen = at_rest(rig, cache)
    finally:
        cache.stop()

    def total(name, pattern=r"yk.:"):
        return sum(value for one in both for key, value in one.items()
                   if re.fullmatch(
                       rf'yoyaku_cache_{name}\{{pattern="{pattern}"(,le="[^"]*"'
                       r")?\}", key))
    # Of a call that memcached was too slow to answer nobody knows whether it
    # was served, and the next ones may find the line gone. On a machine with
    # time to spare there is none.
    unsure = total("timeouts_total") + total("errors_total")
    assert unsure == 0 or total("timeouts_total") > 0
    assert 2 * unsure < total("gets_total")
    for ours, its in (("gets_total", "cmd_get"), ("hits_total", "get_hits"),
                      ("misses_total", "get_misses")):
        assert abs(total(ours) - seen[its]) <= unsure, ours
    # one that is added where there was one already counts there as well
    assert abs(total("sets_total") + total("adds_total") -
               seen["cmd_set"]) <= unsure
    for pattern in ("ykn:", "ykr:", "ykb:", "ykd:", "ykf:"):
        calls = sum(total(f"{what}_total", pattern)
                    for what in ("gets", "sets", "adds"))
        assert total("took_us_count", pattern) >= calls > 0, pattern
        assert total("took_us_sum", pattern) > 0
        assert total("took_us_bucket", pattern) > 0
    assert 0 < total("bytes_out_total", "ykb:")
    assert 0 < total("bytes_in_total", "ykr:")
    # nobody took the rendered board: each host has room for its own
    for one in both:
        told = one['yoyaku_cache_sets_total{pattern="ykd:"}']
        assert one['yoyaku_cache_never_read_total{pattern="ykd:"}'] == \
            max(0, told - 1)
    # but most news are read before there are newer ones
    assert total("never_read_total", "ykn:") < \
        0.7 * total("sets_total", "ykn:")
    for one in both:
        assert one["yoyaku_board_cache_trips_per_1000_answers"] > 0


FAULTS = ["away", "stopped", "flushed", "full", "restarted", "one of two",
          "nonsense", "spoilt"]


@pytest.mark.parametrize("fault", FAULTS)
def test_boards_stay_right_whatever_memcached_does(pair, fault):
    rig, caches = pair(2 if fault == "one of two" else 1,
                       1 if fault == "full" else 64)
    slot = big_slot(rig)
    others = [big_slot(rig) for _ in range(3)]
    threads = crowd(rig, slot, 4, 120)
    cache, chance = caches[0], random.Random(8)
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
            for _ in range(8 if fault == "spoilt" else 0):
                cache.spoil(chance)
                for host in rig.hosts:
                    see(host, slot)
            for host in rig.hosts:
                began = time.monotonic()
                for one in [slot] + others:
                    assert board.get(host, one).status_code == 200
                assert time.monotonic() - began < 20
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

    if fault not in ("nonsense", "spoilt", "one of two"):
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
