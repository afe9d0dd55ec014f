# SPDX-License-Identifier: Apache-2.0
"""What stands still for one slot, or for one database, stands still for nobody
else. Slots are hashed onto 128 lanes: one of two others may have the same."""
import contextlib
import os
import signal
import threading
import time

import pytest

from yk import POOL_ROW, beside_main
from yk.exact import crowd

ONE = {"area": "Floor", "quantity": 1}
STANDS, SOON = 6, 2.5  # seconds; who is held up waits for 3 at least


def host_of(rig, conf, wait):
    made = rig.add_host(workers=24, conf=conf,
                        location=f"YoyakuHoldWait {wait}")
    made.announce(r"dbd:|yoyaku:(warn|error)")
    made.await_children(20 if rig.mpm == "prefork" else 1)
    return made


@pytest.fixture
def ends(rig):
    with contextlib.ExitStack() as stack:
        def later(host):
            stack.callback(rig.hosts.remove, host)
            stack.callback(host.stop)
            return host
        yield later


def held(ask_stuck, ask_other):
    """Six bookers ask for what stands still, three each for two others."""
    told, end = ([], []), time.monotonic() + STANDS

    def journey(i):
        while time.monotonic() < end:
            begun = time.monotonic()
            answer = ask_stuck() if i % 2 else ask_other(i // 2 % 2)
            if i % 2 == 0:
                told[i // 2 % 2].append((
                    answer.status_code, answer.json().get("reason"),
                    round(time.monotonic() - begun, 1)))
            time.sleep(0.1)

    crowd(12, journey)
    assert all(told)
    assert any({one[:2] for one in rows} == {(201, None)} and
               max(one[2] for one in rows) < SOON for rows in told), told


@pytest.mark.parametrize("row", ["pool", "order"])
def test_a_row_of_one_slot_that_is_locked(row, rig, ends):
    host = ends(host_of(rig, "YoyakuLane on\n", "3s"))
    stuck, *others = (rig.slot(pools={"Floor": 5000}) for _ in range(3))
    mine = host.booker()
    for slot in (*others, stuck):
        assert mine.hold(slot, token="", **ONE).status_code == 201
    select, args = {
        "pool": (POOL_ROW, (stuck,)),
        "order": ("SELECT version FROM yoyaku_order WHERE order_id = (SELECT "
                  "order_id FROM yoyaku_booking JOIN yoyaku_slot USING "
                  "(slot_id) WHERE slot_key = %s) FOR UPDATE", (stuck,))}[row]

    def ask_stuck():
        asks = host.booker()
        asks.token = mine.token if row == "order" else None
        return asks.checkout() if row == "order" else asks.hold(stuck, **ONE)

    with rig.locked(select, args):
        held(ask_stuck, lambda i: host.booker().hold(others[i], **ONE))


def test_a_database_that_stands_still(rig, own_rig, ends):
    """Whose wishes wait for it are in nobody's way: one lane is one of each."""
    still = own_rig(clock=False, hosts=0)
    still.books = False
    stuck = still.slot(pools={"Floor": 5000}, key="stuck")
    others = [rig.slot(pools={"Floor": 5000}) for _ in range(2)]
    host = ends(host_of(rig, "YoyakuLane 1\n" + beside_main(
        "still.example", still.params()), "10s"))

    def ask(slot, name):
        return host.booker().hold(slot, headers={"Host": name}, **ONE)

    for _ in range(8):  # workers have been to both
        crowd(12, lambda i: ask(*((stuck, "still.example") if i % 2 else
                                  (others[0], "main.example"))))
    os.kill(still.database.pid, signal.SIGSTOP)
    go_on = threading.Timer(STANDS, os.kill,
                            (still.database.pid, signal.SIGCONT))
    go_on.start()
    try:
        held(lambda: ask(stuck, "still.example"),
             lambda i: ask(others[i], "main.example"))
    finally:
        go_on.join()
