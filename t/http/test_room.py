# SPDX-License-Identifier: Apache-2.0
"""YoyakuWaitingRoom on a real server: numbers, turns, passes."""
import concurrent.futures
import hashlib
import hmac
import http.client
import itertools
import json
import os
import pathlib
import re
import subprocess
import time

import pytest
from crowd import House
from servers import Httpd, ServerError, until

pytestmark = pytest.mark.own
NUMBERS = itertools.count(1)
PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def house(folder, build, mpm, tmp_path):
    made = []
    for name in ("key", "old-key"):
        (tmp_path / name).write_bytes(os.urandom(32))
        os.chmod(tmp_path / name, 0o600)

    def make(terms="active=1 rate=100/s grace=1s", more="", keys="key",
             ready=True, desk="/yoyaku", **server):
        name = os.path.join(folder, f"room{next(NUMBERS)}")
        files = " ".join(str(tmp_path / key) for key in keys.split())
        made.append(House(name, build, mpm, f"""
YoyakuKeyFile {files}
<Location "{desk}">
    SetHandler yoyaku
</Location>
<Location "/app">
    YoyakuWaitingRoom sale {terms}
</Location>
{more}
""", **server))
        made[-1].app.is_open = True
        made[-1].start()
        if ready:  # a new file calls nobody for one grace
            grace = int(re.search(r"grace=(\d+)s", terms).group(1))
            time.sleep(grace + 0.1)
        return made[-1]

    yield make
    for one in made:
        one.stop()


class Visitor:
    """A browser: keeps cookies, follows one redirect when told."""

    def __init__(self, house, headers=PAGE, cookies=True):
        self.house, self.headers, self.keeps = house, headers, cookies
        self.jar = {}
        self.status = self.got = None

    def ask(self, method="GET", path="/app/x", **headers):
        line = http.client.HTTPConnection("127.0.0.1",
                                          self.house.httpd.port, timeout=60)
        sent = {**self.headers, **headers}
        if self.jar:
            sent["Cookie"] = "; ".join(f"{k}={v}" for k, v in
                                       self.jar.items())
        line.request(method, path, headers=sent)
        answer = line.getresponse()
        self.body = answer.read()
        self.status, self.got = answer.status, answer.headers
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = cookie.split(";")[0].partition("=")
            assert "HttpOnly" in cookie and "SameSite=Lax" in cookie
            if self.keeps:
                self.jar.pop(name, None)
                if value:
                    self.jar[name] = value
        line.close()
        return self.status

    def enter(self):
        status = self.ask()
        return self.ask() if status == 302 else status

    def where(self):
        status = self.ask(**{"Yoyaku-Room": "ask"})
        assert status == 200, status
        return json.loads(self.body)


def room_of(h):
    return h.status()["rooms"][0]


def test_with_room_a_visitor_is_sent_back_once_and_enters(house):
    h = house()
    one = Visitor(h)
    assert one.ask() == 302
    assert one.got["Location"].endswith("/app/x")
    assert one.got["Cache-Control"] == "no-store"
    assert one.ask() == 200
    assert list(one.jar) == ["yoyaku_pass_sale"]
    assert [one.ask() for _ in range(30)] == [200] * 30  # a whole purchase
    assert [one.ask("POST") for _ in range(5)] == [200] * 5
    assert room_of(h)["passes"] == 1


def test_who_finds_no_room_waits_with_a_number_and_a_page(house):
    h = house()
    one, two, three = Visitor(h), Visitor(h), Visitor(h)
    assert one.enter() == 200
    assert two.ask() == 503
    assert int(two.got["Retry-After"]) > 0
    assert two.got["Cache-Control"] == "no-store"
    assert b"waiting room" in two.body
    assert b"<noscript>" in two.body
    assert b'data-key="" data-room="sale"' in two.body
    assert two.ask() == 503  # his number came back: the marks know it now
    assert re.search(rb'data-key="[0-9a-f]{16}" data-room="sale"', two.body)
    three.headers = {"Accept": "application/json"}
    assert three.ask() == 503
    assert json.loads(three.body)["reason"] == "queue"
    assert two.where()["position"] == 1
    where = three.where()
    assert (where["position"], where["inWaitingRoom"]) == (2, True)
    assert 20 <= where["refreshIntervalSeconds"] <= 40
    h.app.headers = {"Yoyaku-Leave": "1"}
    assert one.ask() == 200
    assert "Yoyaku-Leave" not in one.got
    h.app.headers = {}
    until(lambda: two.where()["inWaitingRoom"] is False, 5, "his turn")
    assert three.where()["inWaitingRoom"] is True
    assert three.ask() == 503
    assert two.ask() == 200
    assert one.ask() == 503  # left: at the end of the line
    assert one.where()["position"] == 2


def shown(visitor):
    """The place on his page, or None where it has no line for it."""
    found = re.search(rb'<div id="line"( hidden)?>.*?id="place">(\d*)<',
                      visitor.body)
    return None if found.group(1) else int(found.group(2))


def test_the_first_page_of_a_crowd_does_not_say_first_to_all(house):
    """Nobody's number has come back yet: those with an earlier one may still do
    so, and are before him on his page."""
    h = house()
    Visitor(h).enter()
    crowd = [Visitor(h) for _ in range(5)]
    assert [visitor.ask() for visitor in crowd] == [503] * 5
    assert [shown(visitor) for visitor in crowd] == [1, 2, 3, 4, 5]
    assert crowd[2].where()["position"] == 1  # nobody else can be called
    assert [visitor.where()["position"] for visitor in crowd] == \
        [1, 2, 3, 4, 5]
    late = Visitor(h)
    assert late.ask() == 503 and shown(late) == 6
    assert late.where()["position"] == 6


def test_pictures_of_a_page_get_no_number_and_posts_do(house):
    h = house()
    Visitor(h).enter()
    picture = Visitor(h)
    assert picture.ask(**{"Accept": "image/png,*/*", "Sec-Fetch-Dest":
                          "image"}) == 503
    assert picture.jar == {}
    post = Visitor(h)
    assert post.ask("POST") == 503
    assert list(post.jar) == ["yoyaku_number_sale"]


def test_never_under_a_room(house):
    h = house(more="""
YoyakuWaitingRoom sale
<Location "/server-status">
    SetHandler server-status
</Location>
""")
    Visitor(h).enter()
    assert Visitor(h).ask(path="/elsewhere") == 503
    for path in ("/yoyaku-status?json", "/yoyaku-metrics", "/yoyaku-health",
                 "/server-status", "/yoyaku/rooms/sale"):
        assert Visitor(h).ask(path=path) == 200, path


def test_forged_foreign_and_other_kinds_of_cookies_are_worth_nothing(house):
    h = house(more='<Location "/other">\nYoyakuWaitingRoom other active=1 '
                   'grace=1s\n</Location>\n'
                   'RewriteEngine on\nRewriteRule "^/other$" "-" [R=204]')
    one, two = Visitor(h), Visitor(h)
    one.enter()
    two.ask()
    number = two.jar["yoyaku_number_sale"]
    for jar in ({"yoyaku_pass_sale": number},
                {"yoyaku_pass_sale": number.replace("N.", "P.")},
                {"yoyaku_pass_other": one.jar["yoyaku_pass_sale"]},
                {"yoyaku_pass_sale": one.jar["yoyaku_pass_sale"][:-1] + "x"},
                {"yoyaku_pass_sale": "P.1.1.00"}):
        thief = Visitor(h)
        thief.jar = dict(jar)
        assert thief.ask() == 503, jar
    assert room_of(h)["counters"]["forged"] == 4


def test_an_old_key_still_verifies_until_it_is_no_longer_named(house,
                                                               tmp_path):
    h = house("active=5 rate=100/s grace=1s", keys="old-key")
    one = Visitor(h)
    assert one.enter() == 200
    conf = h.form.replace("old-key", "key")
    both = h.form.replace(str(tmp_path / "old-key"),
                          f"{tmp_path}/key {tmp_path}/old-key")
    h.conf(both)
    h.graceful()
    assert one.ask() == 200
    h.conf(conf)
    h.graceful()
    until(lambda: one.ask() != 200, 5, "the old key is out")


def test_restart_and_stop_keep_the_order(house):
    h = house()
    inside = Visitor(h)
    inside.enter()
    line = [Visitor(h) for _ in range(6)]
    for visitor in line:
        visitor.ask()
    positions = [visitor.where()["position"] for visitor in line]
    assert positions == [1, 2, 3, 4, 5, 6]
    h.httpd.restart()
    assert [v.where()["position"] for v in line] == positions
    h.httpd.stop()
    h.httpd.start()
    assert [v.where()["position"] for v in line] == positions
    assert inside.ask() == 200
    h.httpd.stop()
    for name in os.listdir(h.httpd.state):
        if name.startswith("room"):
            os.unlink(os.path.join(h.httpd.state, name))
    h.httpd.start()  # the file was lost: numbers and passes are not
    assert inside.ask() == 200
    for visitor in reversed(line):
        visitor.where()
    time.sleep(0.1)
    assert [v.where()["position"] for v in line] == positions


def test_before_the_opening_all_wait_and_anybody_can_check_the_draw(house):
    opens = int(time.time()) + 6
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(opens))
    h = house(f"active=1 rate=100/s grace=1s opens={when}")
    line = [Visitor(h) for _ in range(8)]
    for visitor in line:
        assert visitor.ask() == 503
        assert b"has not begun" in visitor.body
        assert visitor.where()["position"] is None
    before = json.loads(Visitor(h).ask(path="/yoyaku/rooms/sale") and
                        h.get("/yoyaku/rooms/sale").answer)
    assert before["state"] == "before"
    assert "seed" not in before and before["marks"] == []
    until(lambda: time.time() > opens + 0.2, 10, "the opening")
    after = json.loads(h.get("/yoyaku/rooms/sale").answer)
    seed = bytes.fromhex(after["seed"])
    assert hashlib.sha256(seed).hexdigest() == before["seed_hash"]

    def key(visitor):
        number = int(visitor.jar["yoyaku_number_sale"].split(".")[1], 16)
        mac = hmac.new(seed, number.to_bytes(8, "little"), "sha256").digest()
        return int.from_bytes(mac[:8], "big") & (2 ** 63 - 1)

    order = sorted(line, key=key)
    entered = [v for v in order if v.where()["inWaitingRoom"] is False]
    assert entered == order[:1]
    positions = [v.where()["position"] for v in order[1:]]
    assert positions == list(range(1, 8))


def test_the_public_document_and_its_snapshot(house, folder):
    shots = pathlib.Path(folder, f"shots{next(NUMBERS)}")
    shots.mkdir()
    shots.chmod(0o777)
    h = house(more=f'YoyakuSnapshotDir "{shots}"')
    Visitor(h).enter()
    for _ in range(3):
        Visitor(h).enter()
    answer = h.get("/yoyaku/rooms/sale")
    assert answer.got["Cache-Control"] == "public, max-age=2"
    assert answer.got.get("Set-Cookie") is None
    public = json.loads(answer.answer)
    assert (public["state"], public["issued"]) == ("open", 4)
    assert h.get("/yoyaku/rooms/nowhere").status == 404
    file = shots / "room-sale.json"
    until(file.exists, 10, "a snapshot")
    assert json.loads(file.read_text())["room"] == "sale"


@pytest.mark.parametrize("desk, path", [
    ("/yoyaku", "/yoyaku"), ("/house/booking desk/", "/house/booking%20desk"),
    ("/", "")])
def test_the_page_reads_where_the_handler_is(desk, path, house):
    h = house(desk=desk, more="""
<LocationMatch "^/yoyaku-">
    SetHandler None
</LocationMatch>
""" if desk == "/" else "")
    Visitor(h).enter()
    one = Visitor(h)
    assert one.ask() == 503
    rooms, = re.findall(rb'data-room="sale" data-rooms="([^"]*)"', one.body)
    assert rooms.decode() == path + "/rooms"
    public = h.get(f"{path}/rooms/sale")
    assert public.status == 200
    assert json.loads(public.answer)["room"] == "sale"


def test_a_virtual_host_has_the_page_of_its_own_handler(house):
    h = house(more="""
<VirtualHost *:*>
    ServerName other.example
    <Location "/tickets">
        SetHandler yoyaku
    </Location>
    <Location "/app">
        YoyakuWaitingRoom sale
    </Location>
</VirtualHost>
<VirtualHost *:*>
    ServerName third.example
    <Location "/app">
        YoyakuWaitingRoom sale
    </Location>
</VirtualHost>
""")
    Visitor(h, {**PAGE, "Host": "other.example"}).enter()
    for host, rooms in (("other.example", b"/tickets/rooms"),
                        ("third.example", b"/yoyaku/rooms")):
        one = Visitor(h, {**PAGE, "Host": host})
        assert one.ask() == 503
        assert b'data-rooms="' + rooms + b'"' in one.body


def ctl(h, *args):
    done = subprocess.run(
        [os.path.join(h.httpd.build, "yoyakuctl"), "room", *args],
        env={**os.environ, "YOYAKU_STATE": h.httpd.state}, text=True,
        capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_operator_pauses_resumes_rates_and_says(house):
    h = house("active=50 rate=100/s grace=1s")
    ctl(h, "pause", "sale")
    one = Visitor(h)
    assert one.ask() == 503
    ctl(h, "say", "sale", "Back <b>soon</b>")
    assert one.ask() == 503
    assert b"Back &lt;b&gt;soon&lt;/b&gt;" in one.body
    assert json.loads(h.get("/yoyaku/rooms/sale").answer)["state"] == "paused"
    ctl(h, "rate", "sale", "30/min")
    assert '"rate":"0.500/s"' in ctl(h, "list", "--json")
    ctl(h, "resume", "sale")
    until(lambda: one.ask() == 200, 5, "in")
    ctl(h, "rate", "sale", "reset")
    assert '"rate":"100/s"' in ctl(h, "list", "--json")


def test_stay_for_ever_is_the_longest_stay(house):
    h = house("active=1 rate=100/s grace=1s idle=1s visit=2s")
    one = Visitor(h)
    h.app.headers = {"Yoyaku-Stay": "9223372036854775807"}
    assert one.enter() == 200
    h.app.headers = {}
    time.sleep(3)
    assert room_of(h)["passes"] == 1


def test_stay_keeps_a_pass_that_would_idle_out(house):
    h = house("active=1 rate=100/s grace=1s idle=1s visit=2s")
    one = Visitor(h)
    h.app.headers = {"Yoyaku-Stay": "4"}
    assert one.enter() == 200
    h.app.headers = {}
    time.sleep(3)
    assert one.ask() == 200
    time.sleep(1.8)
    assert room_of(h)["passes"] == 0
    assert Visitor(h).enter() == 200


def test_cookies_switched_off_and_ten_tabs_jam_nothing(house):
    h = house("active=3 rate=100/s grace=1s")
    none = Visitor(h, cookies=False)
    seen = [none.ask() for _ in range(8)]
    assert set(seen) <= {302, 503} and seen[-1] == 503
    tabs = Visitor(h)
    for _ in range(10):
        fresh = Visitor(h)
        fresh.ask()
        tabs.jar.update(fresh.jar)
    until(lambda: tabs.ask() == 200, 5, "the tab whose cookie stayed")
    double = [tabs.ask("POST"), tabs.ask("POST")]
    assert double == [200, 200]
    assert room_of(h)["passes"] == 1


def test_two_clicks_at_once_are_one_visitor(house):
    h = house("active=2 rate=100/s grace=1s")
    one = Visitor(h)
    assert one.ask() == 302
    twins = [Visitor(h), Visitor(h)]
    for twin in twins:
        twin.jar = dict(one.jar)
    h.app.pause = 0.3
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda twin: twin.ask(), twins)) == [200, 200]
    seen = room_of(h)
    assert seen["passes"] == seen["counters"]["redeemed"] == 1


def test_the_visitor_s_clock_changes_nothing(house):
    """How long a number or a pass holds is counted here alone: no cookie names
    a time, and what a client says of the time is not heard."""
    h = house()
    inside, waiting = Visitor(h), Visitor(h)
    wrong = {"Date": "Thu, 01 Jan 1970 00:00:00 GMT",
             "If-Modified-Since": "Fri, 31 Dec 2099 23:59:59 GMT"}
    assert inside.ask(**wrong) == 302
    for visitor, status in ((inside, 200), (waiting, 503)):
        assert visitor.ask(**wrong) == status
        for cookie in visitor.got.get_all("Set-Cookie"):
            if "Max-Age=0" not in cookie:
                assert "expires" not in cookie.lower()
                assert "max-age" not in cookie.lower()
    # a pass dated by hand is another's
    kind, number, issued, mac = inside.jar["yoyaku_pass_sale"].split(".")
    thief = Visitor(h)
    thief.jar = {"yoyaku_pass_sale": f"{kind}.{number}."
                 f"{int(issued, 16) + 1:x}.{mac}"}
    assert thief.ask() == 503
    assert room_of(h)["counters"]["forged"] == 1


def test_the_page_may_be_replaced(house, tmp_path):
    page = tmp_path / "own.html"
    page.write_text("<p>{{room}} {{position}}</p>")
    h = house(more=f'YoyakuWaitingPage "{page}"')
    Visitor(h).enter()
    one = Visitor(h)
    one.ask()
    assert one.ask() == 503
    assert one.body == b"<p>sale 1</p>"


def test_a_thousand_visitors_of_whom_three_hundred_leave(house):
    h = house("active=100 rate=400/s grace=5s", workers=40)
    ctl(h, "pause", "sale")
    everybody = [Visitor(h) for _ in range(1000)]
    for visitor in everybody:  # one after another, so the order is known
        assert visitor.ask() == 503
        visitor.ask()  # its number came back
    assert room_of(h)["waiting"] == 1000
    h.app.headers = {"Yoyaku-Leave": "1"}  # one request is the whole visit
    waiting = {n: v for n, v in enumerate(everybody) if n % 10 >= 3}
    entered = {}
    ctl(h, "resume", "sale")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        for turn in range(1000):
            time.sleep(0.1)
            names = list(waiting)
            for n, status in zip(names, pool.map(
                    lambda name: waiting[name].ask(), names)):
                if status == 200:
                    entered[n] = turn
                    del waiting[n]
            if not waiting:
                break
    assert not waiting and len(entered) == 700
    last = 0
    for n in sorted(entered):  # nobody came in a turn before those ahead
        assert entered[n] >= last - 1, f"{n} in {entered[n]}, after {last}"
        last = max(last, entered[n])
    counters = room_of(h)["counters"]
    assert counters["redeemed"] == counters["left"] == 700
    until(lambda: room_of(h)["counters"]["passed_over"] == 300, 30,
          "those who left were passed over")


@pytest.mark.parametrize("conf,says", [
    ('<Location "/a">\nYoyakuWaitingRoom sale active=1\n</Location>',
     "YoyakuKeyFile"),
    ('<Location "/a">\nYoyakuWaitingRoom sale active=0\n</Location>',
     "active=0"),
    ('<Location "/a">\nYoyakuWaitingRoom sale opens=today\n</Location>',
     "opens=today"),
    ('YoyakuKeyFile /nowhere', "/nowhere"),
])
def test_errors_name_the_value(folder, build, mpm, conf, says):
    httpd = Httpd(os.path.join(folder, f"bad{next(NUMBERS)}"), build, conf,
                  mpm)
    with pytest.raises(ServerError) as error:
        httpd.start()
    assert says in str(error.value) + httpd.read_log()
