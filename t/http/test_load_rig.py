# SPDX-License-Identifier: Apache-2.0
"""The load rig: what it says of a small run, and that it turns red."""
import contextlib
import json
import os
import pathlib
import random
import re
import subprocess
import threading

import pytest

import load.stand
from load import (book, compare, edges, ladder, measure, measures, report,
                  runs, rush, sampler, sizing, timetable, verdict,
                  waiting)
from load.arms import Arm
from load.driver import Driver
from load.hdr import Hdr
from load.shot import Shot
from load.stand import Stand
from servers import ServerError, free_port, until
from servers.httpd import folder_of_modules
from yk import Wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
HALL = "generated:4x25"

pytestmark = pytest.mark.own


CPUS = sorted(os.sched_getaffinity(0))
FIRST, LAST = str(CPUS[0]), str(CPUS[-1])
ARMS = ("yoyaku", "trivial", "snapshot", "memcached-board")
TLS = """
LoadModule ssl_module {modules}/mod_ssl.so
Listen 127.0.0.1:{port}
<VirtualHost 127.0.0.1:{port}>
    SSLEngine on
    SSLCertificateFile "{folder}/cert.pem"
    SSLCertificateKeyFile "{folder}/key.pem"
</VirtualHost>
"""


HOUSE = "Section 2"
FAIR = f"""
area      Standing pooled:40 30
area      "{HOUSE}" assigned 35
together  50
steps     board hold more checkout confirm
more      0..1
party     1..4
keys      on
"""


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A certificate of our own for 127.0.0.1, and a port."""
    made = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
         "2", "-subj", "/CN=staging", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", made / "key.pem", "-out",
         made / "cert.pem"], check=True, capture_output=True)
    return made, free_port()


@pytest.fixture(scope="module")
def stand(folder, build, tls):
    if not os.path.exists(os.path.join(build, "yoyaku-driver")):
        pytest.fail(f"{build}/yoyaku-driver is missing: libevent-dev")
    conf = TLS.format(modules=folder_of_modules(), folder=tls[0], port=tls[1])
    conf += waiting.room_conf(str(tls[0] / "room"))
    with Stand(os.path.join(folder, "load"), HALL,
               [Arm(name) for name in ARMS], workers=6, build=build,
               conf=conf, cpus=f"driver={FIRST},db={LAST},httpd="
               + "+".join(map(str, CPUS))) as made:
        yield made


def crowd(stand, bookers=60, mix="opening", slots=None, **options):
    """A run of a second or two, with its record."""
    return Shot(stand, Arm("yoyaku"), mix, bookers, None, slots,
                {"plan": "crowd", "bookers": bookers, "stagger_ms": 300,
                 "think_ms": 5, "seconds": 60, **options}, record=True).run()


def judge(stand, shot):
    return verdict.of_run(stand, shot.slots, shot.result,
                          shot.driver.recorded())


def wrong(said):
    return [check["check"] for check in said.checks if not check["right"]]


@pytest.fixture(scope="module")
def sold(stand):
    """A right run that sold everything: what the lies below are told of."""
    shot = crowd(stand)
    said = judge(stand, shot)
    assert said.right, list(said.lines())
    return shot


# ---- what a right run says ----

def test_a_crowd_that_wants_more_than_there_is_sells_everything(stand, sold):
    row = sold.result["slots"][0]
    assert row["wanted"] > len(stand.places) >= row["got"]
    assert row["unmet"] > 0
    assert sold.result["journeys"]["full"] > 0
    assert sold.result["journeys"]["confirmed"] > 0
    assert not sold.result.failures


def test_the_arm_proved_itself(stand, sold):
    assert not [void for void in sold.voids if "counter" in void]
    lied = Arm("yoyaku").proves(0, sold.result.orders_begun - 1, sold.result)
    assert "counter" in lied


def test_latency_is_told_from_due_and_from_send(sold):
    for row in rush.latencies(sold.result):
        assert row["from_due"]["n"] == row["from_send"]["n"] > 0
        assert row["from_due"]["max"] >= row["from_send"]["max"]


def test_a_driver_without_connections_shows_lateness_from_due_only(stand):
    """Two connections for 200 journeys a second: who waits for one has waited
    since he was due."""
    shot = Shot(stand, Arm("trivial"), "boards", 1, 2, ["x"],
                {"plan": "open", "rate": 4000, "bookers": 1, "threads": 1},
                watch=False).run()
    due = shot.result.hdr(("board",))
    sent = shot.result.hdr(("board",), since="from_send")
    assert due.total == sent.total == 8000
    assert due.at(99) > 5 * sent.at(50)


def test_the_same_seed_makes_the_same_journeys(stand):
    kinds = [crowd(stand, 40, mix="opening", seed=9).result["journeys"]
             for _ in range(2)]
    assert kinds[0]["browsed"] == kinds[1]["browsed"] > 0


def test_dead_workers_and_restarts_leave_the_verdict_right(stand):
    class Args:
        graceful_every, kill_every, seed = 0.4, 150, 3
    trouble = rush.Trouble(stand, Args)
    shot = Shot(stand, Arm("yoyaku"), "opening", 80, None, None,
                {"plan": "crowd", "bookers": 80, "stagger_ms": 1500,
                 "think_ms": 5, "seconds": 60}, record=True, prove=False)
    shot.run(beside=trouble)
    said = judge(stand, shot)
    assert trouble.done["kill"] > 2 and trouble.done["graceful"] > 1
    assert said.right, list(said.lines())


def test_report_and_sizing_come_from_the_run(stand, sold):
    said = judge(stand, sold)
    sold.seen["memory"] = {
        "started": rush.memory(stand),
        "settled": rush.settled(stand, Arm("yoyaku"), sold.slots)}
    sold.seen["waiting"] = {"people": 9, "backlog_bytes": 4711,
                            "room_bytes": 77}
    run = {"kind": "rush", "conditions": stand.conditions(),
           "verdict": said.said(), "voids": sold.voids,
           "result": dict(sold.result), "times": sold.times,
           "latencies": rush.latencies(sold.result), "seen": sold.seen,
           "paths": sold.paths, "samples": sold.samples,
           "progress": sold.driver.progress, "asked": {"bookers": 60}}
    page = report.html([run])
    assert "<svg" in page
    assert not re.search(r"(src|href)\s*=", page)
    assert stand.conditions()["commit"] in page
    text = sizing.page(run)
    memory = sold.seen["memory"]["settled"]["marginal"]["median"]
    assert f"{memory} KiB" in text and "What not to do" in text
    assert "4711 bytes" in text and "77 bytes" in text
    assert "started: private" in text and "settled: private" in text
    run["verdict"]["right"] = False
    assert "<svg" not in report.html([run]), "a wrong run has no speed"
    assert "nothing is sized" in sizing.page(run)


def test_the_table_of_times_knows_everything_by_its_name(sold):
    names = {row["where"] for row in sold.times}
    assert names == {"backlog", "network", "throttle", "lane", "connection",
                     "row locks", "flush", "statements and their trips",
                     "cache", "handler"}
    ranked = [row["seconds"] for row in sold.times]
    assert ranked == sorted(ranked, reverse=True) and ranked[0] > 0
    by_name = {row["where"]: row["seconds"] for row in sold.times}
    assert by_name["backlog"] > 0, "sixty came to six workers"
    assert by_name["flush"] > 0 and by_name["lane"] > 0
    answers = sum(hdr_seconds(row["hdr"]) for row in sold.result["from_send"])
    assert sum(ranked) == pytest.approx(answers, rel=0.1, abs=0.1)


def hdr_seconds(hdr):
    return sum(high * count for high, count in hdr["cells"]) / 1e6


def test_what_a_wait_costs_is_seen_and_not_assumed(stand):
    cost = waiting.seen(stand)
    # the kernel's socket and the request in it
    assert 1000 < cost["backlog_bytes"] < 20000
    # one line of the room, and whole pages
    assert 60 <= cost["room_bytes"] < 1000
    assert waiting.room_bytes(stand.httpd.port, stand.folder / "nothing",
                              people=3) in (0, None)


def test_a_mix_sells_seats_parties_and_standing_room(stand, folder, build):
    """Each of the three is sold out exactly, though parties want more than is
    left at the end."""
    with Stand(os.path.join(folder, "fair"), "generated:2x40", [Arm("yoyaku")],
               workers=6, build=build, areas=[("Standing", "pooled:40"),
                                              (HOUSE, "assigned")]) as on:
        mix = pathlib.Path(folder, "fair.mix")
        mix.write_text(FAIR)
        shot = crowd(on, 120, mix=str(mix))
        said = judge(on, shot)
        assert said.right, list(said.lines())
        rows = {row["area"]: row for row in shot.result["slots"]}
        for area in ("", HOUSE, "Standing"):
            assert rows[area]["wanted"] > rows[area]["got"] > 30, rows[area]
            assert rows[area]["unmet"] > 0
        assert not shot.result.count(outcome=("bad", "broken"))
        # and it turns red
        on.database.sql("UPDATE yoyaku_booking SET quantity = quantity + 1 "
                        "WHERE live = 1 AND area_no = (SELECT area_no FROM "
                        "yoyaku_area WHERE name = 'Standing') LIMIT 1",
                        on.database.name)
        assert {"the book agrees with itself",
                "every answer is in the book"} <= set(wrong(judge(on, shot)))


@pytest.mark.parametrize("percent", [100, 0])
def test_who_is_refused_in_one_slot_goes_to_another(stand, undone, percent):
    """Nearly all want the first slot, which is too small for them."""
    slots = [f"first-{percent}", f"second-{percent}"]
    for slot in slots:
        stand.slot(slot)
    shot = crowd(stand, 80, slots=slots, spread="skew:100", browse=0,
                 elsewhere=percent)
    said = judge(stand, shot)
    assert said.right, list(said.lines())
    first, second = shot.result["slots"]
    assert first["wanted"] > len(stand.places) and first["unmet"] > 0
    assert (first["wanted"] == first["got"] + first["unmet"]
            + first["given_up"])
    assert not shot.result.count(outcome=("bad", "broken"))
    if percent == 0:
        assert shot.result["moved"] == second["wanted"] == 0
        return
    assert shot.result["moved"] > 5
    assert second["got"] > 5 and second["wanted"] > second["got"]
    # and it turns red: those who left the first slot left places there
    stand.database.sql(
        "UPDATE yoyaku_slot_place SET until_us = 1 WHERE state = 1 AND "
        f"slot_id = {slot_id(stand, shot)}", stand.database.name)
    stand.database.sql(
        "UPDATE yoyaku_slot_place SET order_id = 0, state = 0, until_us = 0 "
        f"WHERE slot_id = {slot_id(stand, shot)}", stand.database.name)
    assert "sold out exactly where demand exceeded supply" in wrong(
        judge(stand, shot))


# ---- where it runs ----

def allowed(pid):
    """CPUs of every thread of a process."""
    return {line.split()[1]
            for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status")
            for line in path.read_text().splitlines()
            if line.startswith("Cpus_allowed_list")}


def test_servers_and_driver_are_where_they_were_put(stand, monkeypatch):
    seen = set()
    shot = Shot(stand, Arm("trivial"), "posts", 2, 0.5, ["x"], watch=False)
    start = Driver.start

    def keep(driver, *args):
        shot.started = start(driver, *args)
        return shot.started
    monkeypatch.setattr(Driver, "start", keep)

    def look():
        try:
            seen.update(allowed(shot.started.pid))
        except OSError:
            pass
    shot.run(beside=look)
    assert FIRST in seen
    assert allowed(stand.database.pid) == {LAST}
    said = stand.conditions()["placement"]
    assert said["db"] == LAST and said["driver"] == FIRST
    assert said["httpd"] == " ".join(
        allowed(stand.httpd.children()[0])), "workers, not the parent alone"


def test_workers_are_where_httpd_was_put(folder, build):
    on = Stand(os.path.join(folder, "placed"), HALL, [Arm("trivial")],
               workers=2, build=build, cpus=f"httpd={LAST},memcached={FIRST}")
    with on:
        for pid in on.httpd.children():
            assert allowed(pid) == {LAST}
        assert allowed(on.memcached.pid) == {FIRST}
        assert on.conditions()["placement"]["httpd"] == LAST
    with pytest.raises(ServerError, match="--cpus"):
        with Stand(os.path.join(folder, "nowhere"), HALL, [], build=build,
                   cpus="db=4000"):
            pass


def test_a_board_as_a_file_and_through_memcached_are_the_same(stand):
    """And each of the arms proves itself."""
    sizes = set()
    for name in ("snapshot", "memcached-board"):
        shot = Shot(stand, Arm(name), "boards", 4, 0.5, watch=False,
                    name=f"board-{name}").run()
        assert not [void for void in shot.voids if "counter" in void]
        assert shot.result["statuses"] == {"200": shot.result.answers}
        sizes.add(shot.result["bytes_in"] // shot.result.answers)
    # the slots differ in their names' length and in nothing else
    assert max(sizes) - min(sizes) < 20


# ---- a staging server ----

@pytest.fixture
def target(stand, tls, build, monkeypatch, tmp_path, capfd):
    """A function: rig rush --target over TLS; (its status, what it said)."""
    monkeypatch.setattr(load.stand, "prepare", lambda *_: None)
    monkeypatch.setattr(load.stand, "BUILD", pathlib.Path(build))
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    stand.slot("staged")

    def drive(*more):
        status = rush.run(["--target", f"https://127.0.0.1:{tls[1]}", "--slot",
                           "staged", "--bookers", "20", "--stagger", "0.2",
                           *more])
        return status, capfd.readouterr().err
    yield drive
    stand.database.sql("UPDATE yoyaku_slot SET state = 3 WHERE slot_key = "
                       "'staged'", stand.database.name)


def test_a_server_behind_tls_is_driven_when_it_is_believed(stand, tls, target,
                                                           monkeypatch):
    with pytest.raises(ServerError, match="not believed.*--insecure"):
        target()
    status, said = target("--insecure")
    assert status == 0 and "right  sold at most once" in said
    assert "yoyakuctl verify --slot staged" in said
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[0] / "cert.pem"))
    status, said = target()
    assert status == 0, said
    assert stand.ctl("verify", "--slot", "staged").returncode == 0


def test_the_driver_itself_checks_the_certificate(stand, tls, build, tmp_path):
    for host in ("127.0.0.1", "localhost"):
        driver = Driver(build, tmp_path, f"https://{host}:{tls[1]}",
                        Arm("trivial").text(), "posts", ["x"], stand.places,
                        {"plan": "crowd", "bookers": 2, "seconds": 10,
                         "tries": 0})
        result = driver.start().wait(80)
        assert result.answers == 0
        assert result["ends"]["tls"] == 2
        assert "certificate" in (tmp_path / "driver.err").read_text()
        said = verdict.of_target(result, [])
        assert wrong(said) == ["somebody was answered"]


# ---- it turns red ----

LIES = {
    "a place has another owner": (
        "UPDATE yoyaku_slot_place SET order_id = (SELECT MIN(order_id) FROM "
        "yoyaku_order) WHERE slot_id = {slot} AND place_no = 3",
        "the book agrees with itself"),
    "a booked place came free": (
        "UPDATE yoyaku_slot_place SET order_id = 0, state = 0, until_us = 0 "
        "WHERE slot_id = {slot} AND state = 2 LIMIT 1",
        "the book agrees with itself"),
    "a confirmed order is released": (
        "UPDATE yoyaku_order SET state = 4 WHERE state = 3 AND order_id IN "
        "(SELECT order_id FROM yoyaku_booking WHERE slot_id = {slot}) LIMIT 1",
        "every answer is in the book"),
    "an order is gone": (
        "DELETE o, b FROM yoyaku_order o JOIN yoyaku_booking b ON b.order_id "
        "= o.order_id WHERE o.order_id = (SELECT m FROM (SELECT MAX(order_id) "
        "m FROM yoyaku_booking WHERE slot_id = {slot}) x)",
        "every answer is in the book"),
    "a line is in two orders": (
        "INSERT INTO yoyaku_booking SELECT (SELECT MIN(order_id) FROM "
        "yoyaku_booking WHERE slot_id = {slot} AND live = 1), 99, tenant_id, "
        "booker_hash, live, slot_id, area_no, place_no, quantity, price_no, "
        "amount, currency, tariff, holder FROM yoyaku_booking WHERE slot_id = "
        "{slot} AND live = 1 ORDER BY order_id DESC LIMIT 1",
        "the book agrees with itself"),
    "an order nobody was told of": (
        "INSERT INTO yoyaku_order SELECT order_id + 1, tenant_id, 3, version, "
        "0, begun_us, max_until_us, checkout_end_us, confirmed_us, attempt, "
        "late, next_line, pass, UNHEX(SHA2('ghost', 256)), booker_hash, "
        "currency, booker, reference, contact, payment, data FROM "
        "yoyaku_order ORDER BY order_id DESC LIMIT 1; INSERT INTO "
        "yoyaku_booking SELECT order_id + 1, 1, tenant_id, booker_hash, 0, "
        "{slot}, area_no, place_no, quantity, price_no, amount, currency, "
        "tariff, holder FROM yoyaku_booking WHERE order_id = (SELECT "
        "MAX(order_id) FROM yoyaku_order WHERE token_hash <> "
        "UNHEX(SHA2('ghost', 256))) LIMIT 1",
        "every row was answered"),
    "a row of the journal is gone": (
        "DELETE FROM yoyaku_journal WHERE slot_id = {slot} LIMIT 1",
        "the book agrees with itself"),
    "a place is free that was wanted": (
        "UPDATE yoyaku_slot_place SET until_us = 1 WHERE slot_id = {slot}",
        "sold out exactly where demand exceeded supply"),
}
TABLES = ("yoyaku_slot_place", "yoyaku_order", "yoyaku_booking",
          "yoyaku_journal", "yoyaku_lock_anchor")


@pytest.fixture(scope="module")
def counted(stand):
    """A right run on a slot with a quota that was reached."""
    stand.slot("counted")
    stand.ctl("price", "set", "--slot", "counted", "--tariff", "standard",
              "--quota", "90", "45.00", "EUR")
    shot = crowd(stand, slots=["counted"], tries=3)
    assert "the book agrees with itself" not in wrong(judge(stand, shot))
    return shot


@pytest.fixture
def undone(stand, sold, counted):
    """Whatever a test does to the book is taken back."""
    name = stand.database.name
    stand.database.sql("".join(
        f"DROP TABLE IF EXISTS kept_{table}; CREATE TABLE kept_{table} AS "
        f"SELECT * FROM {table};" for table in TABLES), name)
    yield
    stand.database.sql("SET check_constraint_checks = 0;" + "".join(
        f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM "
        f"kept_{table}; DROP TABLE kept_{table};" for table in TABLES), name)


def test_a_ladder_or_measure_over_a_wrong_book_is_not_right(stand, sold,
                                                            undone):
    assert not wrong(verdict.of_books(stand, sold.slots))
    stand.database.sql(LIES["a booked place came free"][0].replace(
        "{slot}", slot_id(stand, sold)), stand.database.name)
    assert wrong(verdict.of_books(stand, sold.slots)) == [
        "the book agrees with itself"]

    class Args:
        workers, mpm, cpus = 6, "prefork", None
    context = measures.Context(Args, None)
    context.stands, context.sold = [stand], [(stand, sold.slots[0])]
    assert context.wrong()


def test_the_reference_models_book_is_looked_at_too(stand):
    arm = Arm("php-slotrow")
    arm.prepare(stand)
    arm.fresh_slot(stand, "compared")
    assert book.slotrow_findings(stand)[0] == []
    stand.database.sql("UPDATE slotrow_place SET state = 1 LIMIT 1",
                       stand.database.name)
    assert len(book.slotrow_findings(stand)[0]) == 2, "the place, the count"


def slot_id(stand, shot):
    return stand.database.sql(
        "SELECT slot_id FROM yoyaku_slot WHERE slot_key = "
        f"'{shot.slots[0]}'", stand.database.name)[0]


@pytest.mark.parametrize("lie", LIES)
def test_the_verdict_turns_red_when(stand, sold, undone, lie):
    sql, check = LIES[lie]
    stand.database.sql(sql.replace("{slot}", slot_id(stand, sold)),
                       stand.database.name)
    assert check in wrong(judge(stand, sold))


def test_the_verdict_turns_red_when_a_count_was_lost(stand, counted, undone):
    stand.database.sql("UPDATE yoyaku_lock_anchor SET used = used - 1 WHERE "
                       "kind = 3 AND used > 0", stand.database.name)
    said = judge(stand, counted)
    assert "the book agrees with itself" in wrong(said)
    assert any("quota" in line for line in said.lines())


def test_an_answer_that_was_never_given_turns_it_red(stand, sold):
    rows = sold.driver.recorded()
    first = next(row for row in rows if row["what"] == "hold")
    rows.append({**first, "number": "0000000000001"})
    said = verdict.of_run(stand, sold.slots, sold.result, rows)
    assert "every answer is in the book" in wrong(said)
    assert "sold at most once" in wrong(said)


def test_a_5xx_nobody_meant_turns_it_red(stand, sold):
    result = type(sold.result)(sold.result)
    ok = result["from_due"][0]
    result["from_due"] = result["from_due"] + [{**ok, "outcome": "broken"}]
    said = verdict.of_run(stand, sold.slots, result, sold.driver.recorded())
    assert wrong(said) == ["no 5xx but deliberate 503s"]


@pytest.fixture
def mutant(folder, build):
    """A stand whose web host lost a word on its way to the database."""
    made, wires = [], []

    def make(change):
        def stand_before(port):
            wire = Wire(port)
            wire.rule(lambda sql: change(sql) != sql, change, times=-1)
            wires.append(wire)
            return wire
        on = Stand(os.path.join(folder, "mutant"), "generated:2x8",
                   [Arm("yoyaku")], workers=12, build=build)
        on.wire = stand_before
        made.append(on)
        return on.start()
    yield make
    for on in made:
        on.stop()
    for wire in wires:
        wire.close()


def scramble(on, slot, seed):
    """Many reach for few places at the same moment."""
    on.slot(slot)
    shot = crowd(on, 60, slots=[slot], stagger_ms=50, spread="best", seed=seed,
                 browse=0, exchange=0, seconds=10, tries=20)
    return judge(on, shot)


def unlocked(sql):
    """The probe sees to it that row locks lock; it is left alone."""
    return (sql.replace(b" FOR UPDATE", b"") if b"yoyaku_slot_place" in sql
            else sql)


def test_without_the_lock_the_verdict_is_red(mutant):
    on = mutant(unlocked)
    for seed in range(4):
        said = scramble(on, f"unlocked-{seed}", seed)
        if not said.right:
            break
    assert "the book agrees with itself" in wrong(said), list(said.lines())


def test_with_the_lock_the_same_is_right(mutant):
    said = scramble(mutant(lambda sql: sql), "locked", 0)
    assert said.right, list(said.lines())


def test_a_build_that_loses_a_count_is_red(mutant):
    on = mutant(lambda sql: sql.replace(b"used=VALUES(used)", b"used=used"))
    on.slot("counted")
    on.ctl("price", "set", "--slot", "counted", "--tariff", "standard",
           "--quota", "12", "45.00", "EUR")
    shot = crowd(on, 30, slots=["counted"], seconds=10, tries=3)
    assert "the book agrees with itself" in wrong(judge(on, shot))


# ---- ladders and measures ----

def slots_of(rungs):
    return sorted({slot for rung in rungs for shot in rung.shots["yoyaku"]
                   for slot in shot.slots})


def test_a_small_ladder_has_ratios_slopes_and_charts(stand, tmp_path):
    args = ladder.parser().parse_args(["--rounds", "6", "--seconds", "0.3"])
    arms = stand.arms[:2]
    rungs = ladder.climb(stand, arms, args, [ladder.Rung(bookers, 1, arms)
                                             for bookers in (2, 6)])
    run = {"kind": "ladder", "arms": [arm.name for arm in arms],
           "conditions": stand.conditions(), "asked": {},
           "verdict": verdict.of_books(stand, slots_of(rungs)).said(),
           "rungs": [rung.said() for rung in rungs],
           "slopes": ladder.slopes(rungs)}
    for rung in run["rungs"]:
        one = rung["ratios"][0]
        assert one["of"] == "yoyaku" and one["low"] <= one["value"]
        assert one["value"] < 1, "nothing is faster than answering from memory"
        for arm in rung["arms"].values():
            assert not [void for void in arm["voids"] if "counter" in void]
            assert arm["times"] and arm["cpu_us"] > 0
            assert arm["seen"]["probes"]["n"] > 0, "also of a short round"
    assert run["slopes"]["yoyaku"][0]["value"] == pytest.approx(1, abs=0.5)
    assert run["verdict"]["right"], run["verdict"]
    assert report.html([run]).count("<svg") >= 4
    wrong_run = {**run, "verdict": {**run["verdict"], "right": False}}
    assert "<svg" not in report.html([wrong_run]), "no verdict, no speed"
    kept = tmp_path / "run.json"
    kept.write_text(json.dumps(run))
    assert compare.run([str(kept), str(kept)]) == 0


def test_where_places_come_back_none_is_kept_when_the_time_is_over(stand):
    """Or each round of a measure would find a smaller hall than the last."""
    shot = Shot(stand, Arm("yoyaku"), "visitors", 40, 0.5).run()
    held = stand.database.sql(
        "SELECT COUNT(*) FROM yoyaku_slot_place WHERE order_id <> 0 AND "
        f"slot_id = {slot_id(stand, shot)}", stand.database.name)
    journeys = shot.result["journeys"]
    assert journeys["released"] > 40 and held == ["0"], journeys


def test_a_rung_whose_workers_had_nothing_to_do_is_void(stand):
    shot = Shot(stand, Arm("trivial"), "posts", 6, 1, ["x"],
                {"think_ms": 400}, saturate=True).run()
    assert any("not saturated" in void for void in shot.voids)


def test_an_arm_that_knows_none_of_the_clicks_is_void(stand):
    shot = Shot(stand, Arm("snapshot"), "posts", 2, 0.2, ["x"]).run()
    assert any("nothing was answered" in void for void in shot.voids)


def test_a_measure_whose_feature_is_not_here_exits_3(monkeypatch, capsys,
                                                     tmp_path):
    monkeypatch.setattr(measure.stand, "prepare", lambda *_: None)
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    monkeypatch.setitem(measures.MEASURES, "of_tomorrow", measures.Measure(
        "what is not here", ("YoyakuOfTomorrow",), None))
    assert measure.run(["of_tomorrow", "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert said["measures"]["of_tomorrow"]["valid"] is False
    assert "not here yet" in said["measures"]["of_tomorrow"]["reason"]
    assert "commit" in said["conditions"]


# ---- figures ----

def test_a_share_of_time_is_never_more_than_what_it_is_part_of():
    row = "0 1 POST /yoyaku/x 201 9 10000 held 1.0 3.0 4.0".split()
    inside = timetable.Inside([[*row, "0"], [*row, "1"]])
    hdr = {"cells": [[20000, 1], [11000, 1]]}
    result = {"from_send": [{"hdr": hdr}], "opened_us": 20000,
              "connects": {"cells": [[500, 1]]}}
    seen = {"probes": {"commit_us": 3000, "connect_us": 100000, "get_us": 500},
            "status": {"Innodb_row_lock_time": 1, "Com_commit": 1,
                       "Connections": 1},
            "cache": {"cmd_get": 1, "cmd_set": 1}}
    found = timetable.shares(result, inside, seen)
    wanted = {"backlog": 9.5, "network": 2, "throttle": 2, "lane": 6,
              "row locks": 1, "flush": 3, "connection": 4,
              "statements and their trips": 0, "cache": 1, "handler": 3}
    assert {name: 1000 * value for name, value in found.items()} == \
        pytest.approx(wanted, abs=1e-6)
    assert sum(found.values()) == pytest.approx(0.0315)


# As each server gives them: MySQL 8 names a table without quotes.
WAITS = {"10.11.19-MariaDB-0+deb12u1": (41, 40, "`yoyaku`.`slotrow_slot`",
                                        "PRIMARY", "RUNNING", 1, 12500, 9000),
         "8.0.36": (41, 40, "yoyaku.slotrow_slot", "PRIMARY", "RUNNING", 1,
                    12500, 9000)}


@pytest.mark.parametrize("version", WAITS)
def test_a_lock_wait_is_read_alike_of_either_server(version):
    assert ("data_lock_waits" in edges.query(version)) == \
        ("MariaDB" not in version)
    seen = edges.Edges()
    row = WAITS[version]
    seen.add(row)
    seen.add((*row[:4], "LOCK WAIT", 0, 20000, 100))
    seen.add((*row[:4], "RUNNING", 0, None, None))
    seen.add((*row[:6], 99000, 50))
    assert seen.said()[0] == {
        "table": "slotrow_slot", "index": "PRIMARY", "kind": "hostage",
        "seen": 2, "oldest_us": 99000, "waited_us": 9000}
    assert [one["kind"] for one in seen.said()] == ["hostage", "queue",
                                                    "at work"]


def test_a_lock_wait_is_seen_while_it_lasts(stand):
    name = stand.database.name
    stand.database.sql("CREATE TABLE seen_waiting (n INT PRIMARY KEY) "
                       "ENGINE=InnoDB; INSERT INTO seen_waiting VALUES (1)",
                       name)
    holder, asker = stand.connect(), stand.connect()
    try:
        holder.begin()
        holder.cursor().execute("SELECT * FROM seen_waiting FOR UPDATE")
        asking = threading.Thread(target=lambda: asker.cursor().execute(
            "SELECT * FROM seen_waiting FOR UPDATE"))
        asking.start()
        looking = sampler.Sampler(stand, every=0.05).start()
        until(looking.edges.said, 5, "the edge")
        looking.stop()
        holder.rollback()
        asking.join()
    finally:
        holder.close()
        asker.close()
    edge = looking.summary()["edges"][0]
    assert (edge["table"], edge["index"], edge["kind"]) == \
        ("seen_waiting", "PRIMARY", "hostage")
    assert edge["oldest_us"] > 0 and edge["waited_us"] > 0


def connections(stand):
    return int(stand.database.sql("SELECT COUNT(*) - 1 FROM information_schema"
                                  ".processlist WHERE command <> 'Daemon' AND "
                                  "user = 'root'")[0])


def test_a_look_that_hangs_holds_up_no_other(stand):
    with contextlib.ExitStack() as opened:
        hung = sampler.Probes(stand, opened)
        hung.db.begin()
        with hung.db.cursor() as cursor:
            cursor.execute("UPDATE load_probe SET n = n + 1 WHERE id = %s",
                           (hung.row,))
            cursor.execute("SET GLOBAL innodb_lock_wait_timeout = 1")
        try:
            looking = sampler.Sampler(stand, every=0.05).start()
            until(lambda: len(looking.samples) > 2, 5, "looks")
            said = looking.stop().summary()
        finally:
            stand.database.sql("SET GLOBAL innodb_lock_wait_timeout = 50")
    assert said["missed"] == 0 and said["probes"]["n"] > 2


def test_a_sampler_that_cannot_begin_leaves_nothing_open(stand, monkeypatch):
    before = connections(stand)
    with monkeypatch.context() as patch:
        patch.setattr(sampler.proc, "busy_cpu", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            sampler.Sampler(stand).start()
    until(lambda: connections(stand) == before, 5, "the end of its connections")
    looking = sampler.Sampler(stand).start()
    with monkeypatch.context() as patch:
        patch.setattr(sampler.proc, "busy_cpu", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            looking.stop()
    until(lambda: connections(stand) == before, 5, "the end of its connections")


def test_histograms_add_up_without_averaging():
    draw = random.Random(4)
    ones = Hdr({"total": 3, "min": 1, "max": 900,
                "cells": [[1, 1], [30, 1], [900, 1]]})
    ones.add({"total": 1, "min": 7, "max": 7, "cells": [[7, 1]]})
    assert ones.total == 4 and ones.min == 1 and ones.max == 900
    assert ones.at(50) == 7 and ones.at(100) == 900
    values = sorted(draw.randrange(2000) for _ in range(999))
    whole = Hdr({"total": 999, "min": values[0], "max": values[-1],
                 "cells": [[v, values.count(v)] for v in set(values)]})
    assert whole.at(50) == values[499] and whole.at(99) == values[989]


def test_an_arm_nobody_knows_is_named():
    with pytest.raises(ServerError, match="there is no arm"):
        Arm("nobody")


def rig(*args, **more):
    return subprocess.run([str(ROOT / "loadtest" / "rig"), *args], text=True,
                          capture_output=True, check=False, **more)


def test_every_measure_is_listed():
    listed = rig("measure", "--list").stdout
    for name in """one_slot_over_sixteen one_slot_over_php_slotrow
            lanes_on_over_off hold_over_trivial_post refusal_over_hold_cpu
            p95_over_median_80 hall_80000_over_200 hold_50000_over_first
            old_5m_rows_over_empty worker_private_kb_after_200
            worker_private_kb_after_80000 board_304_over_trivial
            board_200_over_trivial snapshot_over_memcached_pass
            memcached_1mb_over_none arrival_p95_ms
            throttle_cost_percent room_poll_over_trivial day_two_over_day_one
            connections_kept_200_workers""".split():
        assert re.search(rf"^{name} ", listed, re.M), name


def test_compare_refuses_absolutes(tmp_path):
    one = tmp_path / "run.json"
    one.write_text(json.dumps({"kind": "rush", "conditions": {}}))
    done = rig("compare", str(one), str(one))
    assert done.returncode == 1 and "not compared" in done.stderr
