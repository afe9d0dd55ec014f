# SPDX-License-Identifier: Apache-2.0
"""Without a database, with an unfit one, and with one that comes back."""
import os
import re
import time
from email.utils import parsedate_to_datetime

import pytest

from servers import until
from yk import beside_main

AWAY = r"dbd:error|AH0062|AH0063|AH02655"
PROBE = r"YK0410"


@pytest.fixture
def house(own_rig):
    rig = own_rig(clock=False, workers=4)
    return rig, rig.slot({"Stalls": (4, 10)})


def hold(rig, slot, place):
    return rig.hold(slot, [f"Stalls-1-{place}"])[1]


def is_away(answer):
    assert answer.status_code == 503, answer.text
    assert answer.json()["reason"] == "away"
    assert 0 < int(answer.headers["Retry-After"]) < 60
    assert answer.headers["Cache-Control"] == "no-store"
    return True


def back(rig, slot, place, deadline=10):
    """Wait until a hold of this place succeeds."""
    began = time.monotonic()
    until(lambda: hold(rig, slot, place).status_code == 201, deadline,
          "holds are taken again")
    return time.monotonic() - began


def lines_of(rig, number):
    return re.findall(number + r": .*", rig.host.read_log())


def test_the_server_runs_without_a_database_and_finds_it(house):
    rig, slot = house
    rig.announce(AWAY, PROBE)
    assert hold(rig, slot, 1).status_code == 201
    rig.database.stop()
    is_away(hold(rig, slot, 2))
    is_away(rig.host.get("/yoyaku/slots"))
    is_away(rig.host.get("/yoyaku/order", token="A" * 26 + "Q"))
    rig.host.graceful()
    is_away(hold(rig, slot, 2))
    rig.host.restart()
    is_away(hold(rig, slot, 2))
    # bad input needs none
    assert rig.booker().post("/yoyaku/holds", {}).status_code == 422
    assert rig.host.get("/yoyaku/").status_code == 200
    rig.database.start()
    assert back(rig, slot, 2) < 20
    assert until(lambda: rig.availability(slot).json().get("free"), 5,
                 "boards are read again") == 38


def test_a_server_that_never_saw_a_database_starts(house, build, folder, mpm):
    rig, slot = house
    port = rig.database.port
    rig.database.stop()
    host = rig.add_host(params=rig.params(port=port))
    host.announce(AWAY, PROBE)
    rig.announce(AWAY, PROBE)
    is_away(host.booker().hold(slot, ["Stalls-1-1"]))
    rig.database.start()
    until(lambda: host.booker().hold(slot, ["Stalls-1-1"]).status_code == 201,
          10, "holds are taken")


@pytest.mark.parametrize("conf", [
    "DBDPersist Off\n", "DBDPersist On\nDBDKeep 4\nDBDMax 8\n",
    "DBDPersist On\nDBDKeep 4\nDBDMax 8\nYoyakuConnections 0\n"])
def test_lines_that_died_idle_are_not_noticed_by_a_booker(conf, own_rig):
    rig = own_rig(clock=False, workers=4, conf=conf)
    slot = rig.slot({"Stalls": (4, 10)})
    rig.announce(AWAY)
    for place in range(1, 9):
        assert hold(rig, slot, place).status_code == 201
    killed = 0
    for row in rig.rows("SHOW PROCESSLIST"):
        if row["User"] == "yoyaku":
            rig.database.sql(f"KILL {row['Id']}")
            killed += 1
    assert killed
    answers = [rig.hold(slot, [f"Stalls-2-{place}"])[1].status_code
               for place in range(1, 9)]
    assert answers == [201] * 8


def test_a_restarted_database_is_back_within_seconds(house):
    rig, slot = house
    rig.announce(AWAY, PROBE)
    assert hold(rig, slot, 1).status_code == 201
    rig.database.restart()
    assert back(rig, slot, 2) < 20


def test_a_clock_set_back_keeps_nobody_out(clock, folder, own_rig):
    """For as long as the hour that comes twice, say."""
    off = os.path.join(folder, "off")
    with open(off, "w", encoding="ascii") as file:
        file.write("0")
    rig = own_rig(clock=False, workers=4)
    host = rig.add_host(workers=1, env={"LD_PRELOAD": clock,
                                        "YK_CLOCK_FILE": off})
    slot = rig.slot({"Stalls": (4, 10)})
    for one in (rig, host):
        one.announce(AWAY, PROBE)

    def takes(place):
        return host.booker().hold(slot, [f"Stalls-1-{place}"])

    assert takes(1).status_code == 201
    rig.database.stop()
    for _ in range(8):
        is_away(takes(2))
    with open(off, "w", encoding="ascii") as file:
        file.write("-3600")
    date = parsedate_to_datetime(host.get("/yoyaku/").headers["Date"])
    assert date.timestamp() < time.time() - 3000, "its clock is not off"
    rig.database.start()
    until(lambda: takes(2).status_code == 201, 10, "holds are taken again")


UNFIT = [
    ("SET GLOBAL read_only=1", "SET GLOBAL read_only=0", "read only"),
    ("ALTER TABLE yoyaku_slot_place ENGINE=MyISAM",
     "ALTER TABLE yoyaku_slot_place ENGINE=InnoDB", "InnoDB"),
    ("RENAME TABLE yoyaku_journal TO yoyaku_gone",
     "RENAME TABLE yoyaku_gone TO yoyaku_journal", "yoyaku"),
    ("UPDATE yoyaku_schema_version SET version = version - 1 ORDER BY version",
     "UPDATE yoyaku_schema_version SET version = version + 1 "
     "ORDER BY version DESC", "schema"),
]


@pytest.mark.parametrize("spoil, mend, word", UNFIT,
                         ids=["read-only", "engine", "table", "schema"])
def test_an_unfit_database_takes_no_holds_and_is_told_once(spoil, mend, word,
                                                          house):
    rig, slot = house
    rig.announce(PROBE, r"YK02\d\d")
    rig.database.sql(spoil, rig.name)
    rig.host.graceful()  # workers that know nothing yet
    for _ in range(12):
        is_away(hold(rig, slot, 1))
    assert rig.host.get(f"/yoyaku/slots/{slot}").status_code == 200
    assert rig.availability(slot).json()["free"] == 40
    assert rig.host.get("/yoyaku/slots").status_code == 200
    told = lines_of(rig, "YK0410")
    assert len(told) == 1, told
    assert word.lower() in told[0].lower()
    rig.database.sql(mend, rig.name)
    back(rig, slot, 1)
    for place in range(2, 9):
        until(lambda p=place: hold(rig, slot, p).status_code == 201, 5,
              "every worker has seen it")
    assert len(lines_of(rig, "YK0410")) == 1
    assert len(lines_of(rig, "YK0411")) >= 1


def test_new_lines_are_tried_out_anew(house):
    """A fail-over to a replica that may not be written to."""
    rig, slot = house
    rig.announce(AWAY, PROBE, r"YK02\d\d")
    for place in range(1, 9):
        assert hold(rig, slot, place).status_code == 201
    rig.database.options["read_only"] = "1"
    rig.database.restart()
    until(lambda: lines_of(rig, "YK0410"), 10, "the probe has told")
    is_away(rig.hold(slot, ["Stalls-2-1"])[1])
    assert "read only" in lines_of(rig, "YK0410")[-1]


def test_a_database_that_becomes_read_only_is_noticed(house):
    """Without a line breaking: by what the database itself says."""
    rig, slot = house
    rig.announce(PROBE, r"YK02\d\d")
    assert hold(rig, slot, 1).status_code == 201
    rig.database.sql("SET GLOBAL read_only=1")
    until(lambda: is_away(hold(rig, slot, 2)) and lines_of(rig, "YK0410"), 10,
          "the probe has told")
    rig.database.sql("SET GLOBAL read_only=0")
    assert back(rig, slot, 2) < 20


def test_a_tenant_nobody_made_is_told_once(rig):
    host = rig.add_host(location="YoyakuTenant nobody")
    host.announce("YK0409")
    try:
        for _ in range(5):
            is_away(host.get("/yoyaku/slots"))
            is_away(host.booker().hold(lines=[{"slot": "a", "place": "b"}]))
        told = re.findall(r"YK0409: .*", host.read_log())
        assert 1 <= len(told) <= len(host.children())
        assert "setup" in told[0] and "nobody" in told[0]
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_two_tenants_never_meet(rig):
    rig.ctl("setup", "--tenant", "house-b")
    host = rig.add_host(location="YoyakuTenant house-b",
                        shop="YoyakuTenant house-b")
    key = f"same-{next(rig.numbers)}"
    rig.slot(key=key, pools={"Floor": 3})
    rig.ctl("slot", "add", "--tenant", "house-b", "--key", key, "--title",
            "theirs", "--starts", "2039-01-01T20:00Z", "--pool", "Floor=5")
    rig.ctl("slot", "open", key, "--tenant", "house-b")
    try:
        ours = rig.booker("Ann").hold(key, area="Floor", quantity=2, key="k")
        theirs = host.booker("Ann").hold(key, area="Floor", quantity=2, key="k")
        assert (ours.status_code, theirs.status_code) == (201, 201)
        assert ours.json()["number"] != theirs.json()["number"]
        assert rig.availability(key).json()["free"] == 1
        assert host.get(
            f"/yoyaku/slots/{key}/availability").json()["free"] == 3
        stranger = host.booker()
        stranger.token = ours.json()["token"]
        assert stranger.order().status_code == 404
        assert stranger.release().status_code == 404
        assert host.shop().order(ours.json()["number"]).status_code == 404
        assert rig.shop().order(ours.json()["number"]).status_code == 200
        found = host.shop().orders(booker="Ann").json()["orders"]
        assert [order["number"] for order in found] == \
            [theirs.json()["number"]]
    finally:
        host.stop()
        rig.hosts.remove(host)


def test_two_databases_on_one_host_never_meet(own_rig):
    """Halls of two databases have equal numbers; plans must not be mixed."""
    rig = own_rig(clock=False)
    rig.books = False
    rig.database.create("yoyaku_b")
    first, name = rig.name, "yoyaku_b"
    one = rig.slot({"Stalls": (1, 4)}, key="one")
    rig.name = name
    rig.halls.clear()
    rig.ctl("schema")
    two = rig.slot({"Pit": (2, 2)}, key="one")
    rig.name = first
    host = rig.add_host(conf=beside_main("other.example",
                                         rig.database.params(name)))
    for where, slot, section in (("main.example", one, "Stalls"),
                                 ("other.example", two, "Pit")) * 4:
        for path in ("plan", "availability"):
            said = host.get(f"/yoyaku/slots/{slot}/{path}",
                            headers={"Host": where}).json()
            assert [part["section"] for part in said["sections"]] == [section]


def test_a_database_that_is_away_takes_no_other_with_it(own_rig):
    """Away is a database, not a process: one worker serves both."""
    rig = own_rig(clock=False)
    slot = rig.slot({"Stalls": (4, 10)})
    host = rig.add_host(workers=1, conf=beside_main(
        "away.example", "sock=/nowhere/mysqld.sock,user=nobody,dbname=none"))
    host.announce(AWAY, PROBE)
    for place in range(1, 5):
        for where, status in (("away.example", 503), ("main.example", 201)):
            answer = host.booker().hold(slot, [f"Stalls-1-{place}"],
                                        headers={"Host": where})
            assert answer.status_code == status, answer.text


def test_stopping_does_not_wait_for_the_database(house):
    rig, slot = house
    rig.announce(AWAY, PROBE)
    assert hold(rig, slot, 1).status_code == 201
    began = time.monotonic()
    rig.host.stop()
    assert time.monotonic() - began < 20
