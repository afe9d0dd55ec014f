# SPDX-License-Identifier: Apache-2.0
"""Lines to the database that break, databases that go, workers that are killed:
nothing half taken, and the same key gives the truth."""
import itertools
import signal
import threading
import time

import pytest

from yk import Booker

keys = (f"lost-line-key-{n:012d}" for n in itertools.count())


@pytest.fixture
def wired(rig, wire):
    """A host whose lines go through a wire, with one worker less to think of."""
    host = rig.add_host(params=rig.params(port=wire.port), workers=4)
    host.announce(r"\[dbd:", r"yoyaku:(warn|error)")
    yield host
    host.stop()
    rig.hosts.remove(host)


def commits(sql):
    return b"COMMIT" in sql


def locks(sql):
    return b"yoyaku_slot_place" in sql and b"FOR UPDATE" in sql


def owner(rig, slot, guid):
    return rig.value(
        "SELECT t.order_id FROM yoyaku_slot_place t JOIN yoyaku_slot s USING "
        "(slot_id) JOIN yoyaku_place p ON p.hall_id = s.hall_id AND "
        "p.place_no = t.place_no WHERE s.slot_key = %s AND p.guid = %s",
        (slot, guid))


def orders(rig, slot):
    return rig.value("SELECT COUNT(DISTINCT b.order_id) FROM yoyaku_booking b "
                     "JOIN yoyaku_slot s USING (slot_id) WHERE s.slot_key = %s",
                     (slot,))


@pytest.mark.parametrize("which, action", [
    (locks, "cut_before"), (locks, "cut_after"),
    (commits, "cut_before"), (commits, "cut_after")],
    ids=["before locking", "locked", "before COMMIT", "after COMMIT"])
def test_the_same_key_tells_the_truth_about_a_lost_hold(rig, wired, wire,
                                                        which, action):
    slot, key = rig.slot({"Stalls": (2, 5)}), next(keys)
    wired.booker().hold(slot, places=["Stalls-2-5"])  # lines are open
    rule = wire.rule(which, action)
    booker = wired.booker()
    first = booker.hold(slot, places=["Stalls-1-1", "Stalls-1-2"], key=key)
    assert rule.hits == 1
    assert first.status_code in (201, 503), first.text
    again = wired.booker().hold(slot, places=["Stalls-1-1", "Stalls-1-2"],
                                key=key)
    assert again.status_code == 201, again.text
    if first.status_code == 201:
        assert again.json()["token"] == first.json()["token"]
    assert orders(rig, slot) == 2
    assert owner(rig, slot, "Stalls-1-1") == owner(rig, slot, "Stalls-1-2") != 0


def test_a_lost_commit_is_answered_by_what_became_of_it(rig, wired, wire):
    slot = rig.slot({"Stalls": (1, 4)})
    wired.booker().hold(slot, places=["Stalls-1-4"])
    rule = wire.rule(commits, "cut_after")
    answer = wired.booker().hold(slot, places=["Stalls-1-1"])
    assert rule.hits == 1
    assert answer.status_code == 201, answer.text
    assert orders(rig, slot) == 2


def test_a_confirm_lost_at_commit_is_confirmed_once(rig, wired, wire):
    slot, key = rig.slot({"Stalls": (1, 4)}), next(keys)
    booker = wired.booker()
    booker.hold(slot, places=["Stalls-1-1"])
    rule = wire.rule(commits, "cut_after")
    first = booker.confirm(key=key)
    again = booker.confirm(key=key)
    assert rule.hits == 1
    assert first.status_code in (200, 503) and again.status_code == 200
    assert again.json()["state"] == "confirmed"


def test_idle_lines_that_were_killed_are_not_noticed(rig, wired, wire):
    slot = rig.slot({"Stalls": (1, 8)})
    for seat in range(1, 5):
        wired.booker().hold(slot, places=[f"Stalls-1-{seat}"])
    wire.cut_all()
    for seat in range(5, 9):
        answer = wired.booker().hold(slot, places=[f"Stalls-1-{seat}"])
        assert answer.status_code == 201, answer.text


def test_a_worker_killed_between_its_packets_frees_its_places(rig, wired,
                                                              wire):
    slot = rig.slot({"Stalls": (1, 4)})
    rule = wire.rule(commits, "hold")
    victim = threading.Thread(target=_ask_in_vain, daemon=True,
                              args=(wired.url, slot))
    victim.start()
    assert rule.seen.wait(60)
    for pid in wired.children():
        wired.kill_child(pid, signal.SIGKILL)
    wire.cut_all()
    rig.until(lambda: rig.booker().hold(
        slot, places=["Stalls-1-1"]).status_code == 201, 15, "the place")
    wire.let_go()
    victim.join(90)
    assert orders(rig, slot) == 1


def _ask_in_vain(url, slot):
    try:
        Booker(url).hold(slot, places=["Stalls-1-1"])
    except OSError:
        pass


@pytest.mark.own
@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_database_that_comes_back_sells_on(own_rig, kill):
    rig = own_rig()
    rig.announce(r"\[dbd:", r"yoyaku:(warn|error)")
    slot = rig.slot({"Stalls": (4, 10)})
    held = rig.hold(slot, ["Stalls-1-1"])[1].json()["number"]
    stop = threading.Event()
    told = []

    def knock():
        seat = itertools.count(2)
        while not stop.is_set():
            booker = rig.booker()
            guid = f"Stalls-{2 + next(seat) % 3}-{next(seat) % 10 + 1}"
            told.append((guid, booker.hold(slot, places=[guid])))
            time.sleep(0.02)

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        time.sleep(0.3)
        if kill:
            rig.database.kill()
        else:
            rig.database.stop()
        away = rig.booker().hold(slot, places=["Stalls-1-2"])
        assert away.status_code == 503, away.text
        assert away.json()["reason"] in ("away", "unresolved", "busy")
        assert int(away.headers["Retry-After"]) > 0
        rig.database.start()
        rig.until(lambda: rig.booker().hold(
            slot, places=["Stalls-1-3"]).status_code in (201, 409), 10,
            "service")
    finally:
        stop.set()
        thread.join(60)
    assert {answer.status_code for _, answer in told} <= {201, 409, 503}
    for guid, answer in told:
        if answer.status_code == 201:
            assert owner(rig, slot, guid) != 0
    # each worker asks again a second after it found the database away
    rig.until(lambda: rig.shop().order(held).status_code == 200, 20, "the order")


@pytest.mark.own
def test_a_database_that_hangs_takes_nobody_with_it(own_rig):
    rig = own_rig()
    rig.announce(r"\[dbd:", r"yoyaku:(warn|error)")
    slot = rig.slot({"Stalls": (1, 10)})
    rig.hold(slot, ["Stalls-1-1"])
    rig.database.freeze()
    try:
        begun = time.monotonic()
        answer = rig.booker().hold(slot, places=["Stalls-1-2"])
        assert answer.status_code == 503, answer.text
        assert time.monotonic() - begun < 40
    finally:
        rig.database.thaw()
    rig.until(lambda: rig.booker().hold(
        slot, places=["Stalls-1-3"]).status_code == 201, 15, "service")


def test_an_answer_that_never_comes_is_not_waited_for(rig, wired, wire):
    slot = rig.slot({"Stalls": (1, 4)})
    wired.booker().hold(slot, places=["Stalls-1-4"])
    rule = wire.rule(locks, "hold")
    begun = time.monotonic()
    answer = wired.booker().hold(slot, places=["Stalls-1-1"])
    assert rule.hits == 1
    assert answer.status_code in (201, 503), answer.text
    assert 5 < time.monotonic() - begun < 50
    wire.let_go()
    rig.until(lambda: wired.booker().hold(
        slot, places=["Stalls-1-2"]).status_code == 201, 15, "service")
