# SPDX-License-Identifier: Apache-2.0
"""The same day at the desk under settings of the database that others chose:
isolation, time zone, sql_mode, character set. The product leans on none."""
import calendar
import os
import time

import pytest

from yk import Rig
from yk.exact import HOUSES, crowd

EVERY_MODE = ("STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ANSI_QUOTES,"
              "ERROR_FOR_DIVISION_BY_ZERO,PIPES_AS_CONCAT,ONLY_FULL_GROUP_BY,"
              "NO_BACKSLASH_ESCAPES,IGNORE_SPACE,NO_UNSIGNED_SUBTRACTION")
LATIN1 = {"character_set_server": "latin1",
          "collation_server": "latin1_swedish_ci",
          "skip_character_set_client_handshake": "ON",
          "init_connect": "SET NAMES latin1"}
# name: (options of mariadbd, its environment, what the clock says)
SETTINGS = {
    "snapshot isolation": ({"innodb_snapshot_isolation": "ON"}, {}, None),
    "repeated hour": ({}, {"TZ": "Europe/Brussels"}, "2026-10-25T00:52:00"),
    "strict and latin1": ({"sql_mode": EVERY_MODE, **LATIN1}, {}, None),
    "serializable and empty": ({"transaction_isolation": "SERIALIZABLE",
                                "autocommit": "0", "sql_mode": ""}, {}, None),
}


@pytest.fixture(scope="module", params=SETTINGS)
def setting(request):
    return request.param


@pytest.fixture(scope="module")
def house(setting, folder, build, mpm):
    """Servers with this setting; the clock stands where it says."""
    options, env, clock = SETTINGS[setting]
    made = Rig(os.path.join(folder, f"set-{setting.replace(' ', '-')}"), build,
               mpm, options=options, env=env)
    try:
        made.start(workers=8)
        if clock:
            said = calendar.timegm(time.strptime(clock, "%Y-%m-%dT%H:%M:%S"))
            made.advance(said - made.now_us() / 1e6)
        yield made
    finally:
        made.stop()


@pytest.fixture
def rig(house):
    with house.one_test():
        yield house


def test_the_setting_is_what_it_says(setting, rig):
    """Else the rest proves nothing."""
    options, env, _ = SETTINGS[setting]
    for name, value in options.items():
        if name in ("skip_character_set_client_handshake", "init_connect"):
            continue
        name = "tx_isolation" if name == "transaction_isolation" else name
        said = rig.rows(f"SHOW GLOBAL VARIABLES LIKE '{name}'")[0]["Value"]
        assert set(value.replace("0", "OFF").split(",")) <= \
            set(said.split(",")), (name, said)
    if env:
        assert rig.database.sql("SELECT HOUR(TIMEDIFF(NOW(), "
                                "UTC_TIMESTAMP()))") in (["1"], ["2"])


def test_it_sells_out_exactly(rig):
    made, journey = HOUSES["all three"](rig)
    crowd(16, journey)
    made.agree()


def test_a_hold_lasts_ten_minutes_and_not_seventy(rig):
    """Over the hour's change, where that is the setting: eight minutes lie
    before it, two after."""
    slot = rig.slot({"Stalls": (1, 4)})
    booker, answer = rig.hold(slot, ["Stalls-1-1"])
    assert answer.status_code == 201, answer.text
    begun = rig.now_us()
    ends = calendar.timegm(time.strptime(answer.json()["expires"],
                                         "%Y-%m-%dT%H:%M:%SZ"))
    assert abs(ends - begun / 1e6 - 600) < 5
    left = answer.json()["seconds_left"]
    for step in (300, 285):
        rig.advance(step)
        assert rig.hold(slot, ["Stalls-1-1"])[1].status_code == 409
        left -= step
        assert abs(booker.order().json()["seconds_left"] - left) <= 10
    rig.advance(30)
    assert booker.order().json()["state"] == "expired"
    rig.takes_over(slot, "Stalls-1-1")


def test_opening_and_closing_are_moments_and_not_local_times(rig):
    """opens and closes stand in UTC, asked a minute before and after."""
    slot = rig.slot({"Stalls": (1, 4)}, opens=rig.after(60),
                    closes=rig.after(180))
    assert rig.hold(slot, ["Stalls-1-1"])[1].json()["state"] == "before"
    rig.advance(90)
    assert rig.hold(slot, ["Stalls-1-1"])[1].status_code == 201
    rig.advance(120)
    assert rig.hold(slot, ["Stalls-1-2"])[1].json()["state"] == "over"


def test_the_whole_way_of_an_order(rig):
    slot = rig.slot({"Stalls": (2, 10), "Gallery": (2, 10)},
                    areas={"Gallery": "assigned"}, pools={"Floor": 10},
                    prices={"adult": "20.00", "child": "7.50"})
    booker, answer = rig.hold(slot, ["Stalls-1-1", "Stalls-1-2"],
                              tariff="adult",
                              name="Zoë".encode().decode("latin1"))
    assert answer.json()["total"] == "40.00"
    more = booker.hold(slot, area="Gallery", quantity=2, tariff="child")
    assert more.status_code == 200, more.text
    line = more.json()["lines"][-1]["line"]
    swapped = booker.exchange([{"line": line}], [
        {"slot": slot, "area": "Floor", "quantity": 3, "tariff": "child"}])
    assert swapped.status_code == 200, swapped.text
    assert booker.remove(1).status_code == 200
    assert booker.patch(reference="Zoë\u0308 🎭 ' \\ \" ", contact="z@x",
                        data="{}", holders=[{"line": 2, "holder": "Ångström"}]
                        ).status_code == 200
    said = booker.order().json()
    assert said["reference"] == "Zoë\u0308 🎭 ' \\ \" "
    assert said["total"] == "50.00"
    attempt = booker.checkout(key="k" * 30).json()["attempt"]
    paid = rig.shop().confirm(booker.number, attempt, "50.00", "EUR", "p")
    assert paid.json()["state"] == "confirmed", paid.text
    assert paid.json()["booker"] == "Zoë"
    assert rig.shop().cancel(booker.number, "malade €").status_code == 200
    assert rig.availability(slot).json()["free"] == 50
    key = "settings-key-" + slot.ljust(20, "x")
    once = [rig.booker().hold(slot, ["Stalls-2-2"], tariff="adult", key=key)
            for _ in range(2)]
    assert once[0].json()["token"] == once[1].json()["token"]


def test_texts_stay_what_they_are(rig):
    text = ('section,row,place,x,y,grade,guid\n'
            'Zürich 🎭,é,1,10,10,A,ä-1\nZürich 🎭,é,2,20,10,A,Ä-1\n'
            'Zürich 🎭,é,3,30,10,A,a\u0308-1\n')
    slot = rig.slot(hall=rig.hall(csv=text))
    said = rig.host.get(f"/yoyaku/slots/{slot}/plan").json()
    assert said["sections"][0]["section"] == "Zürich 🎭"
    for guid in ("ä-1", "Ä-1", "a\u0308-1"):
        answer = rig.hold(slot, [guid])[1]
        assert answer.status_code == 201, answer.text
        line = answer.json()["lines"][0]
        assert (line["place"], line["section"], line["row"]) == \
            (guid, "Zürich 🎭", "é")
