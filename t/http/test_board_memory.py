# SPDX-License-Identifier: Apache-2.0
"""Boards of one host: from memory, right, and right again after anything."""
import os
import random
import shutil
import signal
import threading
import time

import pytest
import requests

from load import proc
from servers import Memcached, until
from yk import board
from yk.booker import Booker


@pytest.fixture
def rig(rig):
    rig.announce("AH00161")  # every look keeps its connection for a while
    return rig


@pytest.fixture
def house(rig):
    return rig, rig.slot({"Stalls": (4, 10), "Circle": (2, 8)},
                         areas={"Circle": "assigned"}, pools={"Floor": 50})


def questions(rig):
    row, = rig.rows("SHOW GLOBAL STATUS LIKE 'Questions'")
    return int(row["Value"])


# ---- what a look costs ----

def test_a_look_costs_no_database_work(house):
    rig, slot = house
    path = f"{rig.url}/yoyaku/slots/{slot}/availability"
    with requests.Session() as session:
        session.trust_env = False
        session.get(path)
        before, began = questions(rig), time.monotonic()
        for _ in range(1000):
            assert session.get(path).status_code == 200
        took = time.monotonic() - began
    # at most two readings a second, a few statements each, and the sweep
    assert questions(rig) - before < 60 + 40 * took


@pytest.mark.parametrize("path", ["/yoyaku/slots", "/yoyaku/slots/{}"])
def test_the_list_and_a_slot_cost_no_database_work(path, house):
    rig, slot = house
    path = path.format(slot)
    rig.host.get(path)
    before, began = questions(rig), time.monotonic()
    for _ in range(200):
        rig.host.get(path)
    took = time.monotonic() - began
    assert questions(rig) - before < 60 + 40 * took


def test_what_a_cache_in_front_may_do(rig):
    slot = rig.slot(pools={"Floor": 3})
    said = board.get(rig.host, slot)
    assert said.headers["Cache-Control"] == \
        "public, max-age=0, s-maxage=1, stale-while-revalidate=2"
    soon = rig.slot(pools={"Floor": 3}, opens=rig.after(2))
    said = board.get(rig.host, soon).headers["Cache-Control"]
    assert said in ("public, max-age=0, s-maxage=1",
                    "public, max-age=0, s-maxage=0")
    until(lambda: "stale" in board.get(rig.host, soon).headers["Cache-Control"],
          5, "the opening")


def test_the_age_of_a_board_is_configured(rig):
    slot = rig.slot(pools={"Floor": 3})
    host = rig.add_host(location="YoyakuBoardAge 5s")
    try:
        assert board.get(host, slot).headers["Cache-Control"] == \
            "public, max-age=0, s-maxage=5, stale-while-revalidate=10"
    finally:
        host.stop()
        rig.hosts.remove(host)


# ---- a booker sees what he did ----

def test_ones_own_hold_is_on_the_board_at_once(house):
    rig, slot = house
    board.get(rig.host, slot)
    for seat in range(1, 11):
        rig.hold(slot, [f"Stalls-1-{seat}"])
        assert board.content(board.get(rig.host, slot).json())["Stalls"][
            :10] == "1" * seat + "0" * (10 - seat)
    booker, _ = rig.hold(slot, area="Floor", quantity=3)
    assert board.content(board.get(rig.host, slot).json())["Floor"] == 47
    booker.release()
    assert board.content(board.get(rig.host, slot).json())["Floor"] == 50


def test_changes_since_make_the_old_board_the_new_one(house):
    """For every generation there was."""
    rig, slot = house
    olds, bookers = [], []
    chance = random.Random(4)
    for i in range(60):
        said = board.get(rig.host, slot).json()
        olds.append((board.name_of(said), board.content(said)))
        what = chance.randrange(4)
        if what == 0 and bookers:
            bookers.pop(chance.randrange(len(bookers))).release()
        elif what == 1:
            made = rig.booker()
            if made.hold(slot, area="Floor", quantity=2).status_code == 201:
                bookers.append(made)
        elif what == 2:
            made = rig.booker()
            if made.hold(slot, area="Circle", quantity=1).status_code == 201:
                bookers.append(made)
        else:
            made = rig.booker()
            seat = f"Stalls-{chance.randint(1, 4)}-{chance.randint(1, 10)}"
            if made.hold(slot, [seat]).status_code == 201:
                bookers.append(made)
    now = board.content(board.get(rig.host, slot).json())
    for name, content in olds:
        said = board.get(rig.host, slot, since=name)
        assert said.json()["since"] == name[1]
        assert board.patched(content, said.json()) == now
    assert board.in_book(rig, slot) == now


def test_changes_since_have_a_tag_of_their_own(house):
    rig, slot = house
    name = board.name_of(board.get(rig.host, slot).json())
    rig.hold(slot, ["Stalls-1-1"])
    whole = board.get(rig.host, slot).headers["ETag"]
    part = board.get(rig.host, slot, since=name)
    assert part.headers["ETag"] != whole
    again = board.get(rig.host, slot, since=name,
                      If_None_Match=part.headers["ETag"])
    assert again.status_code == 304


@pytest.mark.parametrize("since", ["x", "1", ".5", "abc.", "zz.5",
                                   "0123456789abcdef0.1"])
def test_a_since_that_is_none_is_refused(since, house):
    rig, slot = house
    said = rig.host.get(f"/yoyaku/slots/{slot}/availability?since={since}")
    assert (said.status_code, said.json()["field"]) == (422, "since")


# ---- slots apart ----

def test_a_hold_in_one_slot_touches_nothing_of_another(rig):
    one = rig.slot({"Stalls": (2, 10)})
    other = rig.slot({"Stalls": (2, 10)})
    before = board.get(rig.host, other)
    for seat in range(1, 11):
        rig.hold(one, [f"Stalls-1-{seat}"])
        after = board.get(rig.host, other)
        assert after.text == before.text
        assert after.headers["ETag"] == before.headers["ETag"]


# ---- time ----

def test_a_hold_past_its_end_is_free_without_a_sweep(own_rig):
    rig = own_rig(conf="YoyakuSweepInterval 1min\n")
    slot = rig.slot({"Stalls": (1, 4)})
    rig.hold(slot, ["Stalls-1-2"])
    assert board.content(board.get(rig.host, slot).json())["Stalls"] == "0100"
    rig.advance(601)
    until(lambda: board.content(board.get(rig.host, slot).json())["Stalls"] ==
          "0000", 3, "the end of the hold")
    assert rig.value("SELECT COUNT(*) FROM yoyaku_order WHERE state=1") == 1


# ---- restarts ----

def test_generations_never_go_back(own_rig):
    rig = own_rig()
    rig.announce("AH00161")
    slot = rig.slot({"Stalls": (4, 10)})
    epochs, last = [], 0

    def look():
        nonlocal last
        said = until(lambda: board.get(rig.host, slot), 5, "an answer").json()
        assert said["generation"] >= last
        last = said["generation"]
        if said["epoch"] not in epochs:
            epochs.append(said["epoch"])
        assert board.content(said) == board.in_book(rig, slot)

    for row, again in enumerate((
            lambda: None, rig.host.graceful, rig.host.restart,
            lambda: (rig.host.stop(), rig.host.start()))):
        again()
        for seat in (1, 2):
            rig.hold(slot, [f"Stalls-{row + 1}-{seat}"])
            look()
    assert len(epochs) == 1
    rig.host.stop()
    shutil.rmtree(rig.host.httpd.state)
    rig.host.start()
    look()
    assert len(epochs) == 2


def test_killed_workers_leave_right_boards(own_rig):
    """Workers are killed while they write; the board is the book's."""
    rig = own_rig()
    rig.announce("AH00161")
    rig.announce(r"YK030[23]", r"YK02\d\d", r"AH00045", r"AH0005")
    slot = rig.slot({"Stalls": (10, 40)})
    stop, last = threading.Event(), 0

    def book(number):
        chance = random.Random(number)
        while not stop.is_set():
            booker = Booker(rig.url, timeout=60)
            try:
                booker.hold(slot, [f"Stalls-{chance.randint(1, 10)}-"
                                   f"{chance.randint(1, 40)}"])
                if chance.random() < 0.5 and booker.token:
                    booker.release()
            except requests.RequestException:
                pass

    threads = [threading.Thread(target=book, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    end, chance = time.monotonic() + 6, random.Random(9)
    while time.monotonic() < end:
        children = rig.host.children()
        if children:
            rig.host.kill_child(chance.choice(children))
        time.sleep(0.15)
        try:
            said = board.get(rig.host, slot)
            assert said.json()["generation"] >= last
            last = said.json()["generation"]
        except requests.RequestException:
            pass
    stop.set()
    for thread in threads:
        thread.join()
    until(lambda: board.content(board.get(rig.host, slot).json()) ==
          board.in_book(rig, slot), 10, "the board to be the book's")


def test_stopped_workers_never_make_the_board_older(own_rig):
    """Workers stand still at any moment, after COMMIT too, and go on later."""
    rig = own_rig()
    rig.announce("AH00161")
    slot = rig.slot({"Stalls": (10, 40)})
    stop = threading.Event()

    def book(number):
        chance = random.Random(number)
        while not stop.is_set():
            booker = Booker(rig.url, timeout=60)
            booker.hold(slot, [f"Stalls-{chance.randint(1, 10)}-"
                               f"{chance.randint(1, 40)}"])
            if booker.token:
                booker.release()

    threads = [threading.Thread(target=book, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    chance, end, last = random.Random(2), time.monotonic() + 6, 0
    while time.monotonic() < end:
        some = chance.sample(rig.host.children(), 2)
        for pid in some:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.3)
        for pid in some:
            os.kill(pid, signal.SIGCONT)
        said = board.get(rig.host, slot).json()
        assert said["generation"] >= last
        last = said["generation"]
    stop.set()
    for thread in threads:
        thread.join()
    until(lambda: board.content(board.get(rig.host, slot).json()) ==
          board.in_book(rig, slot), 10, "the board to be the book's")


def test_a_late_update_never_wins_over_a_newer_one(rig, wire):
    """A worker learns that its hold was committed long after others have seen
    it come and go."""
    slot = rig.slot({"Stalls": (1, 4)})
    host = rig.add_host(params=rig.params(port=wire.port), workers=8,
                        conf="KeepAlive Off\n")

    def first():
        return board.content(board.get(host, slot).json())["Stalls"][0]

    answers = []
    try:
        assert host.booker().hold(slot, ["Stalls-1-4"]).status_code == 201
        assert first() == "0"
        rule = wire.rule(lambda sql: b"COMMIT" in sql and
                         b"yoyaku_booking" in sql, "late")
        late = threading.Thread(target=lambda: answers.append(
            host.booker().hold(slot, ["Stalls-1-1"]).status_code))
        late.start()
        assert rule.seen.wait(60)
        until(lambda: first() == "1", 5, "the hold, from the journal")
        order = rig.value("SELECT order_id FROM yoyaku_order "
                          "ORDER BY begun_us DESC LIMIT 1")
        rig.ctl("order", "release", board.number_of(order))
        until(lambda: first() == "0", 5, "the release, from the journal")
        wire.let_go()
        late.join()
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            assert first() == "0"
    finally:
        wire.let_go()
        host.stop()
        rig.hosts.remove(host)
    assert answers == [201]


def test_the_board_is_shown_while_the_database_is_away(own_rig):
    rig = own_rig()
    rig.announce("AH00161")
    rig.announce("AH0", "YK0")
    slot = rig.slot({"Stalls": (1, 4)})
    rig.hold(slot, ["Stalls-1-2"])
    assert board.get(rig.host, slot).status_code == 200
    rig.database.stop()
    end = time.monotonic() + 3
    while time.monotonic() < end:
        said = board.get(rig.host, slot)
        assert said.status_code == 200
        assert board.content(said.json())["Stalls"] == "0100"
    rig.database.start()
    until(lambda: rig.booker().hold(slot, ["Stalls-1-3"]).status_code == 201,
          20, "the database")
    assert board.content(board.get(rig.host, slot).json())["Stalls"] == "0110"


# ---- access ----

def test_access_control_of_a_slots_path_is_never_passed_by(rig):
    slot = rig.slot({"Stalls": (1, 4)})
    host = rig.add_host(conf=f'''
<Location "/yoyaku/slots/{slot}">
    Require ip 192.0.2.1
</Location>
''')
    try:
        for path in ("", "/availability", "/availability?since=1.1", "/plan"):
            for method in ("GET", "HEAD"):
                said = host.booker().ask(method,
                                         f"/yoyaku/slots/{slot}{path}")
                assert said.status_code == 403, path
        assert board.get(rig.host, slot).status_code == 200
    finally:
        host.announce("AH01630")
        host.stop()
        rig.hosts.remove(host)


def test_nothing_is_looked_for_on_the_disk(rig):
    """What ends like a file's name is none, and no .htaccess has a say."""
    folder = os.path.join(rig.folder, "documents")
    os.makedirs(folder)
    os.chmod(folder, 0o755)
    with open(os.path.join(folder, ".htaccess"), "w") as file:
        file.write("ThereIsNoSuchDirective\n")
    host = rig.add_host(conf=f'''
DocumentRoot "{folder}"
<Directory "{folder}">
    AllowOverride All
    Require all granted
</Directory>
AddEncoding x-gzip .gz
''')
    slot = rig.slot({"Stalls": (1, 4)}, key="evening.gz")
    try:
        assert host.get("/yoyaku.html").status_code == 500
        for path in ("", f"/{slot}", f"/{slot}/availability", f"/{slot}/plan"):
            said = host.get("/yoyaku/slots" + path,
                            headers={"Accept-Encoding": "identity"})
            assert said.status_code == 200, path
            assert "Content-Encoding" not in said.headers
    finally:
        host.announce("ThereIsNoSuchDirective")
        host.stop()
        rig.hosts.remove(host)


# ---- room ----

def test_without_room_boards_are_right_at_a_bounded_rate(own_rig):
    rig = own_rig(conf="YoyakuMemory 1M\n")
    rows = 1000
    slot = rig.slot({"Stalls": (rows, 40), "Circle": (rows, 40)})
    small = rig.slot({"Stalls": (1, 4)})
    rig.hold(slot, ["Stalls-1-2"])
    said = until(lambda: board.get(rig.host, slot), 20, "an answer")
    assert said.status_code == 200
    assert board.content(said.json()) == board.in_book(rig, slot)
    assert board.get(rig.host, small).status_code == 200
    answers = []

    def ask():
        for _ in range(20):
            answers.append(board.get(rig.host, slot).status_code)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {200, 503} and answers.count(200) > 0


@pytest.fixture
def cache(tmp_path):
    made = Memcached(str(tmp_path)).start()
    yield made
    made.stop()


class Crowd:
    """Visitors of one slot, each from the look to the purchase, until every
    worker has answered every step of it."""

    def __init__(self, rig, slot, section):
        self.rig, self.slot, self.section = rig, slot, section
        self.log = os.path.join(rig.host.httpd.folder, "steps.log")
        self.read_to = os.path.getsize(self.log)
        self.seats = iter(range(1000))
        self.asked = set()
        self.answers = []

    def visit(self):
        n = next(self.seats)
        seats = [f"{self.section}-{1 + n // 20}-{1 + n % 20 + side}"
                 for side in (0, 20)]
        booker = self.rig.booker()

        def step(name):
            self.asked.add(name)
            booker.http.headers["X-Step"] = name
            return booker

        def said(answer):
            self.answers.append(answer.status_code)
            return answer

        def look(name, path, coding="identity"):
            return said(step(name).get(f"/yoyaku/slots/{self.slot}{path}",
                                       headers={"Accept-Encoding": coding}))
        look("slot", "")
        for coding in ("gzip", "identity"):
            look(f"plan-{coding}", "/plan", coding)
            seen = look(f"board-{coding}", "/availability", coding).json()
        look("section", f"/plan?section={self.section}")
        said(step("hold").hold(self.slot, [seats[0]]))
        look("since", f"/availability?since={seen['epoch']}."
             f"{seen['generation']}")
        said(step("exchange").exchange(
            [{"line": 1}], [{"slot": self.slot, "place": seats[1]}]))
        said(step("order").order())
        said(step("checkout").checkout())
        if n % 2:
            said(step("confirm").confirm())
        else:
            said(step("release").release())

    def workers(self):
        """Which steps each has answered so far."""
        found = {pid: set() for pid in self.rig.host.children()}
        with open(self.log) as file:
            file.seek(self.read_to)
            for line in file:
                pid, step = line.split()
                found.setdefault(int(pid), set()).add(step)
        return found

    def own_kb(self):
        """{worker: KiB} when all have been at all of it, and some more."""
        def round_():
            threads = [threading.Thread(target=self.visit) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return all(steps >= self.asked
                       for steps in self.workers().values())
        until(round_, 30, "every worker to answer every step")
        assert set(self.answers) <= {200, 201}, self.answers
        time.sleep(0.6)  # and one reads the journal once more
        board.get(self.rig.host, self.slot)
        return {pid: proc.memory(pid)["private"]
                for pid in self.rig.host.children()}


@pytest.mark.prefork
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "memcached"])
def test_a_workers_own_memory_does_not_grow_with_the_hall(own_rig, cache,
                                                          shared):
    conf = 'KeepAlive Off\nCustomLog steps.log "%P %{X-Step}i"\n'
    if shared:
        conf += f"YoyakuMemcached {cache.address}\n"
    rig = own_rig(workers=4, conf=conf, location="YoyakuConfirm booker")
    rig.announce("AH00161")
    small = {"Stalls": (5, 40)}
    Crowd(rig, rig.slot(small), "Stalls").own_kb()
    after_small = Crowd(rig, rig.slot(small), "Stalls").own_kb()
    large = rig.slot({f"Block {i}": (50, 40) for i in range(40)})
    after_large = Crowd(rig, large, "Block 3").own_kb()
    assert after_large.keys() == after_small.keys()
    for pid, kb in after_large.items():
        assert kb - after_small[pid] < 256, (after_small, after_large)
        assert kb < 2048, after_large


# ---- the drawing ----

def test_a_plan_is_served_whole_and_by_section(house):
    rig, slot = house
    path = f"/yoyaku/slots/{slot}/plan"
    whole = rig.host.get(path, headers={"Accept-Encoding": "identity"})
    packed = rig.host.get(path, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.json() == whole.json()
    parts = [rig.host.get(f"{path}?section={section['section']}").json()
             for section in whole.json()["sections"]]
    assert [part["sections"] for part in parts] == \
        [[section] for section in whole.json()["sections"]]
    said = board.get(rig.host, slot).json()
    assert said["plan"] == whole.json()["hash"]
    assert whole.headers["ETag"].strip('"') == said["plan"]
    none = rig.host.get(f"{path}?section=Attic")
    assert (none.status_code, none.json()["field"]) == (404, "section")
