# SPDX-License-Identifier: Apache-2.0
"""yoyakuctl: what operators type, and what they are told."""
import concurrent.futures
import json
import os
import pathlib
import pty
import re
import subprocess
import time

import pytest

pytestmark = pytest.mark.prefork  # the tool knows no MPM

HALLS = pathlib.Path(__file__).resolve().parents[2] / "loadtest" / "halls"
COUNT = {
    "halls": "SELECT COUNT(*) FROM yoyaku_hall",
    "places": "SELECT COUNT(*) FROM yoyaku_place",
    "slots": "SELECT COUNT(*) FROM yoyaku_slot",
}


def refused(done, *words, code=1):
    """It failed with one sentence that says these words."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    first = done.stderr.splitlines()[0]
    assert first.startswith("yoyakuctl: "), done.stderr
    for word in words:
        assert word in done.stderr
    return done


def terminal(argv, env):
    """Run it at a terminal; all that was shown there."""
    ours, its = pty.openpty()
    with subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=its,
                          stderr=its) as child:
        os.close(its)
        shown = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the terminal's way of saying that all is said
                more = b""
            if not more:
                break
            shown += more
    os.close(ours)
    assert child.returncode == 0, shown[-2000:]
    return shown.decode()


def counts(office):
    return {what: office.value(sql) for what, sql in COUNT.items()}


# ---- schema ----

def test_the_schema_is_applied_once_and_says_so(office):
    office.database.create("yoyaku_fresh")
    params = office.database.params("yoyaku_fresh")
    first = office.ctl("schema", "--db", params).stdout
    again = office.ctl("schema", "--db", params).stdout
    assert first.strip() and again.strip() and first != again
    assert office.database.sql(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema ="
        " 'yoyaku_fresh' AND engine <> 'InnoDB'") == ["0"]


def test_a_younger_schema_will_do_and_an_older_one_will_not(office):
    office.database.create("yoyaku_young")
    params = office.database.params("yoyaku_young")
    office.ctl("schema", "--db", params)
    last = "ORDER BY version DESC LIMIT 1"
    office.database.sql("UPDATE yoyaku_schema_version SET version = "
                        f"version + 1 {last}", "yoyaku_young")
    assert office.ctl("doctor", "--db", params).returncode == 0
    office.database.sql(f"DELETE FROM yoyaku_schema_version {last}",
                        "yoyaku_young")
    refused(office.ctl("doctor", "--db", params, check=False),
            "run yoyakuctl schema")


def test_two_hosts_apply_the_schema_at_once(office):
    office.database.create("yoyaku_twice")
    params = office.database.params("yoyaku_twice")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: office.ctl("schema", "--db", params,
                                                  check=False), range(4)))
    assert [one.returncode for one in done] == [0] * 4, \
        [one.stderr for one in done]
    assert office.ctl("doctor", "--db", params).returncode == 0


def test_the_rights_that_readme_grants_are_enough(office):
    office.database.sql(
        "CREATE OR REPLACE USER web@localhost IDENTIFIED BY 'web';"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {office.name}.* "
        "TO web@localhost")
    params = (f"host=localhost,sock={office.database.socket},user=web,"
              f"pass=web,dbname={office.name}")
    assert office.ctl("doctor", "--db", params).returncode == 0


# ---- where the database is ----

def test_without_a_database_it_asks_for_one(office):
    done = subprocess.run([os.path.join(office.build, "yoyakuctl"), "slot",
                           "list"], capture_output=True, text=True, check=False,
                          env={key: value for key, value in os.environ.items()
                               if key != "YOYAKU_DB"})
    refused(done, "--db", code=2)


@pytest.mark.parametrize("words", [("slot", "list"), ("doctor",), ("schema",),
                                   ("verify",)])
def test_a_database_out_of_reach_is_named_with_the_reason(office, words):
    refused(office.ctl(*words, "--db",
                       "host=127.0.0.1,port=1,user=x,pass=x,dbname=x",
                       check=False),
            "the database that --db names is out of reach", "127.0.0.1", "2002")
    refused(office.ctl(*words, "--db",
                       f"host=localhost,sock={office.database.socket},"
                       f"user=stranger,pass=x,dbname={office.name}",
                       check=False), "'stranger'@'localhost'", "1045")


@pytest.mark.parametrize("params", ["hots=x", "nothing", "host=x;userr=y"])
def test_what_names_no_database_is_asked_wrongly(office, params):
    refused(office.ctl("slot", "list", "--db", params, check=False),
            "--db is not", "dbname", code=2)


@pytest.mark.parametrize("between", [",", " ", ";", "|", ", "])
def test_params_are_read_as_mod_dbd_reads_them(office, between):
    params = between.join(office.params().split(",")) + between
    assert office.ctl("doctor", "--db", params).returncode == 0


def test_a_configuration_that_cannot_be_read_is_not_one_without_database(
        office, tmp_path):
    empty = tmp_path / "empty.conf"
    empty.write_text("# nothing\n")
    refused(office.ctl("slot", "list", "--config", empty, check=False),
            f"{empty} names no database")
    refused(office.ctl("slot", "list", "--config", tmp_path / "none.conf",
                       check=False), "none.conf cannot be read: No such file")


def test_it_reads_the_configuration_of_httpd(office, tmp_path):
    file = tmp_path / "yoyaku.conf"
    file.write_text("# a comment\n<IfModule mod_dbd.c>\n    DBDDriver mysql\n"
                    f'    DBDParams "{office.params()},reconnect=0,'
                    'readtimeout=10"\n</IfModule>\n')
    done = subprocess.run([os.path.join(office.build, "yoyakuctl"), "doctor",
                           "--config", str(file)], capture_output=True,
                          text=True, check=False,
                          env={**os.environ, "YOYAKU_DB": ""})
    assert done.returncode == 0, done.stderr


# ---- where the running server is ----

@pytest.mark.parametrize("text, runtime, where", [
    ("DefaultRuntimeDir ${APACHE_RUN_DIR}", "{there}", "{there}/yoyaku"),
    ("DefaultRuntimeDir ${APACHE_RUN_DIR}", None, "/run/apache2/yoyaku"),
    ("DefaultRuntimeDir ${APACHE_RUN_DIR}\nYoyakuStateDir mine", "{there}",
     "{there}/mine"),
    ("YoyakuStateDir mine", None, "/run/apache2/mine"),
    ("YoyakuStateDir ${APACHE_RUN_DIR}/mine", "{there}", "{there}/mine"),
    ('YoyakuStateDir "/nowhere/at all"', None, "/nowhere/at all")])
def test_it_finds_the_server_by_httpds_own_words(office, tmp_path, text,
                                                 runtime, where):
    file = tmp_path / "apache2.conf"
    file.write_text(text + "\n")
    env = {key: value for key, value in os.environ.items()
           if key not in ("APACHE_RUN_DIR", "YOYAKU_STATE")}
    if runtime:
        env["APACHE_RUN_DIR"] = runtime.format(there=tmp_path)
    done = subprocess.run([os.path.join(office.build, "yoyakuctl"), "throttle",
                           "list", "--config", str(file)], env=env,
                          capture_output=True, text=True, check=False)
    refused(done, "no server has its state in "
            f"{where.format(there=tmp_path)} (")


def test_a_server_without_a_room_lists_none(rig):
    state = ("--state", rig.host.httpd.state)
    done = rig.ctl("room", "list", *state)
    assert done.stdout.startswith("room ") and done.stdout.count("\n") == 1
    assert json.loads(rig.ctl("room", "list", "--json", *state).stdout) == \
        {"rooms": []}
    refused(rig.ctl("room", "pause", "sale", *state, check=False),
            'there is no room "sale"')
    refused(rig.ctl("room", "list", "--state", "/nowhere", check=False),
            "no server has its state in /nowhere")


# ---- asked wrongly ----

@pytest.mark.parametrize("words", [
    [], ["nothing"], ["help", "nothing"], ["--json"], ["--json", "nothing"],
    ["slot"], ["slot", "add"], ["slot", "open"],
    ["slot", "open", "a", "b"], ["slot", "list", "--colour", "red"],
    ["slot", "list", "--resource"], ["slot", "list", "--json=1"],
    ["price", "set", "45.00", "EUR"], ["order", "show", "not-a-number!"],
    ["limit", "add", "--per", "crowd", "--over", "all", "--count", "places",
     "--max", "4"],
    ["limit", "add", "--per", "order", "--over", "slot", "--count", "places",
     "--max", "4"],
    ["slot", "add", "--key", "a b", "--title", "x", "--starts",
     "2039-01-01T20:00Z", "--pool", "Floor=1"],
    ["slot", "add", "--key", "zoneless", "--title", "x", "--starts",
     "2039-01-01 20:00", "--pool", "Floor=1"],
    ["slot", "add", "--key", "poolless", "--title", "x", "--starts",
     "2039-01-01T20:00Z"],
    ["slot", "add", "--key", "minus", "--title", "x", "--starts",
     "2039-01-01T20:00Z", "--pool", "Floor=-1"],
    ["price", "set", "--slot", "x", "--tariff", "adult", "45.001", "EUR"],
    ["price", "set", "--slot", "x", "--tariff", "adult", "-1", "EUR"],
    ["price", "set", "--slot", "x", "--tariff", "adult", "1", "euro"],
    ["hall", "import", "generated:0x10"],
], ids=lambda words: " ".join(words)[:50])
def test_a_wrong_question_gets_two_and_changes_nothing(office, words):
    before = counts(office)
    done = office.ctl(*words, check=False)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert counts(office) == before


def test_a_second_word_that_is_wrong_is_named(office):
    done = office.ctl("slot", "opne", "x", check=False)
    assert done.returncode == 2
    assert done.stderr == 'yoyakuctl: there is no command "slot opne"\n'
    assert "yoyakuctl slot open" in done.stdout


@pytest.mark.parametrize("words", [("slot", "--help"), ("help", "slot"),
                                   ("--help", "slot"), ("slot", "-h")])
def test_who_asks_for_help_with_a_topic_gets_it(office, words):
    said = office.ctl(*words).stdout
    assert said.startswith("yoyakuctl slot add\n") and "hall" not in \
        [line.split()[1] for line in said.splitlines()
         if line.startswith("yoyakuctl ")]
    assert "YOYAKU_STATE" in said
    assert max(map(len, said.splitlines())) <= 78


def test_flags_of_every_command_may_stand_before_it(office):
    before = office.ctl("--json", "--db", office.params(), "slot", "list")
    behind = office.ctl("slot", "list", "--db", office.params(), "--json")
    assert before.stdout == behind.stdout and "slots" in before.stdout


def test_every_command_explains_itself(office):
    text = office.ctl("--help").stdout
    commands = [line[len("yoyakuctl "):] for line in text.splitlines()
                if line.startswith("yoyakuctl ") and ":" not in line]
    assert len(commands) > 10
    for command in commands:
        said = office.ctl(*command.split(), "--help").stdout
        assert said.startswith(f"yoyakuctl {command}\n")
        assert len(said.splitlines()) > 1


# ---- halls ----

@pytest.mark.parametrize("file, places", [("theatre-1011.json", 1011),
                                          ("arena-8724.json", 8724)])
def test_a_real_house_comes_in_once(office, file, places):
    name = f"real-{file}"
    done = office.ctl_json("hall", "import", HALLS / file, "--name", name)
    assert (done["hall"], done["places"]) == (name, places)
    before = counts(office)
    office.ctl("hall", "import", HALLS / file, "--name", name)
    assert counts(office) == before


def test_another_drawing_under_the_name_is_its_next_version(office, tmp_path):
    file = tmp_path / "hall.csv"
    for seats in (2, 3):
        file.write_text("section,row,place,x,y,grade\n" + "".join(
            f"S,1,{seat},{seat * 10},0,A\n" for seat in range(seats)))
        office.ctl("hall", "import", file, "--name", "growing")
    versions = [hall["version"] for hall in office.ctl_json("hall", "list")
                ["halls"] if hall["hall"] == "growing"]
    assert versions == [1, 2]


PLAN = {"name": "x", "size": {"width": 9, "height": 9},
        "categories": [{"name": "A", "color": "#fff"}],
        "zones": [{"name": "S", "position": {"x": 0, "y": 0}, "rows": [
            {"row_number": "1", "position": {"x": 0, "y": 0}, "seats": [
                {"seat_guid": "a", "seat_number": "1", "category": "A",
                 "position": {"x": 0, "y": 0}},
                {"seat_guid": "b", "seat_number": "2", "category": "A",
                 "position": {"x": 1, "y": 0}}]}]}]}


def broken(seat=1, **change):
    """The little plan with one seat changed; None takes the member away."""
    plan = json.loads(json.dumps(PLAN))
    made = plan["zones"][0]["rows"][0]["seats"][seat]
    for name, value in change.items():
        if value is None:
            del made[name]
        else:
            made[name] = value
    return json.dumps(plan).encode()


@pytest.mark.parametrize("text, word", [
    (broken(seat_guid="a"), "a"), (broken(category="B"), "B"),
    (broken(category=None), "category"), (broken(seat_guid=None), "guid"),
    (broken(position=None), "position"), (b"{not json", ""), (b"", ""),
    (b"section,row,place,x,y,grade\nS,1,1,0,0,\xff\xfe\n", "UTF-8"),
    (b"section,row,place,x,y,grade\n", ""),
    (b"section,row,place,x,y,grade\nS,1,1,zero,0,A\n", "x"),
    (b"section,row,place,x,y,grade,guid\nS,1,1,0,0,A,g\nS,1,2,1,0,A,g\n", "g"),
], ids=["guid twice", "unknown category", "no category", "no guid",
        "no position", "not json", "empty", "not utf-8", "no line",
        "not a number", "guid twice in csv"])
def test_a_bad_drawing_is_refused_whole(office, tmp_path, text, word):
    file = tmp_path / "bad"
    file.write_bytes(text)
    before = counts(office)
    refused(office.ctl("hall", "import", file, "--name", "bad", check=False),
            word)
    assert counts(office) == before


def test_eighty_thousand_places_come_in_within_seconds(office):
    """At a terminal it says how far it is."""
    begun = time.monotonic()
    argv = [f"{office.build}/yoyakuctl", "hall", "import", "generated:40x2000"]
    said = terminal(argv, {**os.environ, "YOYAKU_DB": office.params()})
    assert "80000 places" in said.splitlines()[-1], said[-300:]
    assert time.monotonic() - begun < 60
    steps = [int(n) for n in re.findall(r"(\d+) of 80000 places", said)]
    assert steps and steps == sorted(steps), said[-500:]


def test_a_table_may_come_from_a_pipe(office):
    text = "\ufeffsection;row;place;x;y;grade\r\n\"S;1\";1;1;0;0;A\r\n"
    done = office.ctl("hall", "import", "-", "--name", "piped", "--json",
                      stdin=text)
    assert json.loads(done.stdout)["places"] == 1
    assert office.value("SELECT name FROM yoyaku_section WHERE name = 'S;1'")


# ---- slots, prices, limits ----

def test_a_slot_says_its_key_and_may_be_added_again(office):
    args = ("slot", "add", "--key", "again", "--title", "Again 🎭",
            "--starts", "2039-01-01T20:00+01:00", "--pool", "Floor=10")
    assert office.ctl_json(*args) == {"slot": "again"}
    before = counts(office)
    assert office.ctl_json(*args) == {"slot": "again"}
    assert counts(office) == before
    row = office.rows("SELECT * FROM yoyaku_slot WHERE slot_key = 'again'")[0]
    assert row["title"].decode() == "Again 🎭"
    assert row["starts_us"] == 2177521200 * 10**6  # 19:00 UTC
    office.ctl(*args[:-1], "Floor=10", "--ends", "2039-01-01T22:00+01:00")
    refused(office.ctl(*args[:-1], "Floor=11", check=False))


def test_a_slot_shows_what_is_free_and_its_state(office):
    office.slot({"Stalls": (2, 5), "Gallery": (1, 4)}, key="listed",
                areas={"Gallery": "assigned"}, opened=False)
    slots = {slot["slot"]: slot for slot in
             office.ctl_json("slot", "list")["slots"]}
    assert (slots["listed"]["free"], slots["listed"]["places"]) == (14, 14)
    assert slots["listed"]["state"] == "closed"
    office.ctl("slot", "open", "listed")
    slots = {slot["slot"]: slot for slot in
             office.ctl_json("slot", "list")["slots"]}
    assert slots["listed"]["state"] == "open"
    office.ctl("slot", "close", "listed")
    assert "listed" in office.ctl("slot", "list").stdout


@pytest.mark.parametrize("words", [
    ["slot", "open", "nowhere"], ["slot", "close", "nowhere"],
    ["price", "set", "--slot", "nowhere", "--tariff", "adult", "1.00", "EUR"],
    ["slot", "add", "--key", "hall-less", "--title", "x", "--starts",
     "2039-01-01T20:00Z", "--hall", "nowhere"],
    ["order", "show", "0000000000000"], ["slot", "list", "--tenant", "nobody"],
], ids=lambda words: " ".join(words)[:40])
def test_what_is_not_there_is_named(office, words):
    refused(office.ctl(*words, check=False))


def test_an_area_that_the_hall_has_not_is_refused(office):
    hall = office.hall({"Stalls": (1, 3)})
    refused(office.ctl("slot", "add", "--key", "wrong-area", "--title", "x",
                       "--starts", "2039-01-01T20:00Z", "--hall", hall,
                       "--area", "Balcony=placed", check=False), "Balcony")
    assert office.value("SELECT COUNT(*) FROM yoyaku_slot WHERE slot_key ="
                        " 'wrong-area'") == 0


def test_a_place_kept_from_sale_is_not_sold(rig):
    slot = rig.slot({"Stalls": (1, 3), "Gallery": (1, 3)},
                    areas={"Gallery": "assigned"})
    rig.ctl("place", "close", "Stalls-1-1", "Gallery-1-2", "--slot", slot)
    rig.ctl("place", "close", "Stalls-1-1", "--slot", slot)
    refused(rig.ctl("place", "close", "Stalls-9-9", "--slot", slot,
                    check=False))
    answer = rig.booker().hold(slot, places=["Stalls-1-1"])
    assert answer.json()["reason"] == "taken", answer.text
    together = rig.booker().hold(slot, area="Gallery", quantity=2,
                                 together=True)
    assert together.json()["reason"] == "not_together", together.text
    assert rig.booker().hold(slot, places=["Stalls-1-2"]).status_code == 201
    refused(rig.ctl("place", "close", "Stalls-1-2", "--slot", slot,
                    check=False))
    rig.ctl("place", "open", "Stalls-1-1", "Gallery-1-2", "--slot", slot)
    assert rig.booker().hold(slot, places=["Stalls-1-1"]).status_code == 201
    assert rig.booker().hold(slot, area="Gallery", quantity=3,
                             together=True).status_code == 201


def test_an_order_is_shown_found_and_ended(rig):
    slot = rig.slot({"Stalls": (1, 4)}, prices={"adult": "45.00"})
    booker = rig.booker(f"anna-{slot}")
    booker.hold(slot, places=["Stalls-1-1"], reference=f"ref-{slot}")
    shown = rig.ctl_json("order", "show", booker.number)
    assert (shown["state"], shown["total"], shown["lines"][0]["place"]) == \
        ("held", "45.00", "Stalls-1-1")
    found = rig.ctl_json("order", "find", "--reference", f"ref-{slot}")
    assert [order["number"] for order in found["orders"]] == [booker.number]
    refused(rig.ctl("order", "cancel", booker.number, check=False))
    assert rig.ctl_json("order", "release", booker.number)["state"] == \
        "released"
    assert booker.order().json()["state"] == "released"


def test_the_book_is_verified_and_a_fault_is_named(rig):
    slot = rig.slot({"Stalls": (1, 4)}, pools={})
    booker = rig.booker()
    booker.hold(slot, places=["Stalls-1-1"])
    assert rig.ctl_json("verify", "--slot", slot)["agrees"] is True
    line = rig.connect()
    with line.cursor() as cursor:  # a place sold behind the book's back
        cursor.execute(
            "UPDATE yoyaku_slot_place t JOIN yoyaku_slot s USING (slot_id) "
            "SET t.order_id = 17 WHERE s.slot_key = %s AND t.state = 1",
            (slot,))
    line.close()
    rig.books = False
    done = rig.ctl("verify", "--slot", slot, check=False)
    assert done.returncode == 1
    assert "place" in done.stdout, done.stdout


def test_a_price_can_be_set_again(office):
    key = office.slot(pools={"Floor": 10}, key="priced")
    for amount, quota in (("45.00", None), ("40.00", 5), ("40.00", 5)):
        office.price(key, "adult", amount, quota=quota)
    rows = office.rows("SELECT p.* FROM yoyaku_price p JOIN yoyaku_slot s "
                       "USING (slot_id) WHERE slot_key = 'priced'")
    assert [(row["amount"], row["quota"]) for row in rows] == [(4000, 5)]


def test_a_limit_can_be_changed(office):
    office.slot(pools={"Floor": 10}, key="limited", series="autumn-2039",
                resource="course")
    for most in (4, 6):
        office.limit("booker", "series:autumn-2039", "places", most)
    rows = office.rows("SELECT * FROM yoyaku_limit WHERE reach_key = "
                       "'autumn-2039'")
    assert [row["max"] for row in rows] == [6]


def limits_of(office, key):
    return [limit for limit in office.ctl_json("limit", "list")["limits"]
            if key in limit["over"]]


def test_limits_are_listed_and_taken_away(office):
    key = office.slot(pools={"Floor": 10}, key="loosened", resource="course-2")
    words = ("--per", "booker", "--over", "resource:course-2", "--count")
    for count, most in (("places", 3), ("slots", 1)):
        office.limit("booker", "resource:course-2", count, most)
    listed = {"per": "booker", "over": "resource:course-2", "count": "slots",
              "max": 1, "in_force": True}
    assert limits_of(office, "course-2") == \
        [{**listed, "count": "places", "max": 3}, listed]
    line = " ".join([*words, "slots", "--max", "1"])
    assert line in office.ctl("limit", "list").stdout.splitlines()

    def version():
        return office.value("SELECT version FROM yoyaku_tenant WHERE "
                            "tenant_id = 1")
    before = version()
    assert "Removed" in office.ctl("limit", "remove", *words, "places").stdout
    assert limits_of(office, "course-2") == [listed]
    assert version() == before + 1  # which copies are compared with
    assert "no such limit" in office.ctl("limit", "remove", *words,
                                         "places").stdout
    assert version() == before + 1
    refused(office.ctl("limit", "remove", "--per", "order", "--over",
                       f"slot:{key}-else", "--count", "places", check=False))
    assert office.ctl("limit", "remove", "--per", "order", "--over", "all",
                      check=False).returncode == 2


def test_prices_are_listed(office):
    key = office.slot({"Stalls": (1, 2)}, pools={"Floor": 10})
    assert office.ctl_json("price", "list", "--slot", key)["prices"] == []
    office.price(key, "adult", "45.00", grade="A")
    office.price(key, "child", "7.50", area="Floor", quota=5)
    office.price(key, "gift", "0", currency="JPY")
    said = office.ctl_json("price", "list", "--slot", key)
    fields = ("tariff", "grade", "area", "amount", "currency", "quota")
    assert [tuple(price[name] for name in fields) for price in said["prices"]] \
        == [("adult", "A", None, "45.00", "EUR", None),
            ("child", None, "Floor", "7.50", "EUR", 5),
            ("gift", None, None, "0", "JPY", None)]
    text = office.ctl("price", "list", "--slot", key).stdout
    assert "45.00 EUR  grade A" in text and "area Floor  quota 5" in text
    refused(office.ctl("price", "list", "--slot", "nowhere", check=False))


def test_tenants_do_not_see_each_other(office):
    office.ctl("setup", "--tenant", "other")
    office.ctl("setup", "--tenant", "other")
    office.slot(pools={"Floor": 10}, key="mine")
    office.ctl("slot", "add", "--key", "mine", "--title", "theirs", "--starts",
               "2039-01-01T20:00Z", "--pool", "Floor=99", "--tenant", "other")
    theirs = office.ctl_json("slot", "list", "--tenant", "other")["slots"]
    assert [(slot["slot"], slot["places"]) for slot in theirs] == [("mine", 99)]
    refused(office.ctl("slot", "open", "priced-elsewhere", "--tenant", "other",
                       check=False))
