# SPDX-License-Identifier: Apache-2.0
"""YoyakuThrottle on a real server: who runs, who waits, who is sent away."""
import base64
import hashlib
import itertools
import os
import pathlib
import re
import socket

import pytest
from crowd import House, hang_up, tally
from servers import until

pytestmark = pytest.mark.own
NUMBERS = itertools.count(1)


@pytest.fixture
def house(folder, build, mpm):
    made = []

    def make(conf, **more):
        name = os.path.join(folder, f"throttle{next(NUMBERS)}")
        made.append(House(name, build, mpm, conf, **more))
        return made[-1].start()

    yield make
    for one in made:
        one.stop()
        for line in one.httpd.read_log().splitlines():
            assert "AddressSanitizer" not in line, line


def rule(terms, more=""):
    return f'<Location "/app">\nYoyakuThrottle app {terms}\n{more}\n</Location>'


def test_order_of_service_is_order_of_arrival(house):
    h = house("YoyakuThrottleWait 220\n" + rule("limit=1 refuse-after=0"),
              workers=240)
    clients = [h.come("/app/0")]
    h.await_rule("app", running=1)
    for n in range(1, 201):
        clients.append(h.come(f"/app/{n}"))
        if n % 5 == 0:  # as they come, one after another
            h.await_rule("app", queued=n)
        else:
            until(lambda: n <= h.rule("app")["queued"], 10, f"{n} queued")
    h.app.open_gate()
    for client in clients:
        client.join(60)
    assert tally(clients) == {200: 201}
    assert h.app.order == [f"/app/{n}" for n in range(201)]
    assert h.app.most == 1


def test_more_than_busy_are_refused_with_retry_after(house):
    h = house(rule("limit=1 busy=2"))
    first = h.come("/app/1")
    h.await_rule("app", running=1)
    second = h.come("/app/2")
    h.await_rule("app", queued=1)
    third = h.get("/app/3", headers={"Accept": "application/json"})
    assert third.status == 503
    assert 1 <= int(third.got["Retry-After"]) <= 60
    assert third.got["Content-Type"] == "application/problem+json"
    assert b'"reason":"throttled"' in third.answer
    page = h.get("/app/4", headers={"Accept": "text/html"})
    assert page.got["Content-Type"].startswith("text/html")
    assert page.got["Cache-Control"] == "no-store"
    h.app.open_gate()
    first.join(), second.join()
    assert (first.status, second.status) == (200, 200)
    assert h.rule("app")["refused"]["busy"] == 2


def test_a_body_of_a_refused_request_is_not_waited_for(house):
    h = house(rule("limit=1 busy=1"))
    first = h.come("/app/1")
    h.await_rule("app", running=1)
    with socket.create_connection(("127.0.0.1", h.httpd.port), 5) as line:
        line.sendall(b"POST /app/2 HTTP/1.1\r\nHost: x\r\n"
                     b"Content-Length: 1000000000\r\n\r\nbegun")
        told = b""
        for part in iter(lambda: line.recv(4096), b""):
            told += part
    assert told.startswith(b"HTTP/1.1 503") and b"Connection: close" in told
    h.app.open_gate()
    first.join()


AUTH = """AuthType Basic
AuthName app
AuthUserFile "@FILE@"
Require valid-user"""


def basic(name):
    return {"headers": {"Authorization": "Basic " + base64.b64encode(
        f"{name}:{name}".encode()).decode()}}


@pytest.mark.parametrize("by,one,other", [
    ("", basic("anna"), basic("otto")),  # REMOTE_USER where nothing is said
    ("by=%{HTTP_COOKIE}", {"headers": {"Cookie": "who=a"}},
     {"headers": {"Cookie": "who=b"}}),
    ("by=%{REMOTE_ADDR}", {"source": "127.0.0.2"}, {"source": "127.0.0.3"}),
], ids=["user", "cookie", "address"])
def test_a_user_at_per_user_waits_and_blocks_nobody(house, by, one, other,
                                                    folder):
    users = pathlib.Path(folder, "users")  # its reader is not root
    users.write_text("".join(
        f"{name}:{{SHA}}"
        + base64.b64encode(hashlib.sha1(name.encode()).digest()).decode()
        + "\n" for name in ("anna", "otto")))
    auth = "" if by else AUTH.replace("@FILE@", str(users))
    said = f'"{by}"' if by else ""
    h = house(f'<Location "/app">\n{auth}\n'
              f"YoyakuThrottle app limit=3 per-user=1 {said}\n</Location>")
    clients = [h.come("/app/1", **one)]
    h.await_rule("app", running=1)
    clients.append(h.come("/app/2", **one))
    h.await_rule("app", running=1, queued=1)
    clients.append(h.come("/app/3", **other))
    h.await_rule("app", running=2, queued=1)
    h.app.open_gate()
    for client in clients:
        client.join()
    assert tally(clients) == {200: 3}


def test_a_path_at_its_limit_leaves_others_unharmed(house):
    h = house(rule("limit=2"))
    slow = [h.come(f"/app/{n}") for n in range(6)]
    h.await_rule("app", running=2, queued=4)
    for _ in range(20):
        assert h.get("/yoyaku-health").status == 200
        assert h.get("/elsewhere").status == 404
    assert h.rule("app")["queued"] == 4
    h.app.open_gate()
    for client in slow:
        client.join()
    assert tally(slow) == {200: 6}


def test_who_waited_refuse_after_is_refused_and_run_after_runs(house):
    h = house(rule("limit=1 refuse-after=600ms")
              + '\n<Location "/app/run">\nYoyakuThrottle run limit=1 '
              "run-after=400ms refuse-after=30s\n</Location>")
    first = h.come("/app/1")
    h.await_rule("app", running=1)
    assert h.get("/app/2").status == 503
    inside = h.come("/app/run/1")
    h.await_rule("run", running=1)
    past = h.come("/app/run/2")
    h.await_rule("run", running=2)
    h.app.open_gate()
    for client in (first, inside, past):
        client.join()
        assert client.status == 200
    assert h.rule("app")["refused"]["timed_out"] == 1
    assert h.rule("run")["ran_after"] == 1


def test_a_client_that_went_away_gives_up_its_place_in_the_queue(house):
    h = house(rule("limit=1"))
    first = h.come("/app/1")
    h.await_rule("app", running=1)
    gone = hang_up(h.httpd.port, "/app/2")
    h.await_rule("app", queued=1)
    gone.close()
    h.await_rule("app", queued=0, deadline=2)
    assert h.rule("app")["refused"]["gone"] == 1
    h.app.open_gate()
    first.join()
    assert h.app.order == ["/app/1"]


def test_one_request_never_waits_for_itself(house, folder):
    root = pathlib.Path(folder, f"root{next(NUMBERS)}")
    (root / "d").mkdir(parents=True)
    (root / "d" / "index.html").write_text("index")
    (root / "busy.html").write_text("custom busy")
    (root / "lost.html").write_text("custom lost")
    (root / "page.shtml").write_text('in<!--#include virtual="/d/" -->out')
    h = house(f"""
DocumentRoot "{root}"
<Directory "{root}">
    Require all granted
    Options +Includes +Indexes
    AddOutputFilter INCLUDES .shtml
</Directory>
DirectoryIndex index.html
ErrorDocument 503 /busy.html
ErrorDocument 404 /lost.html
RewriteEngine on
RewriteRule ^/old$ /d/index.html [PT]
<Location "/">
    YoyakuThrottle all limit=1 busy=1 refuse-after=2s
</Location>
<Location "/yoyaku-status">
    YoyakuThrottle off
</Location>
""", modules=["dir", "include"])
    for path, answer in [("/d/", b"index"), ("/page.shtml", b"inindexout"),
                         ("/old", b"index"), ("/missing", b"custom lost")]:
        assert h.get(path).answer.strip() == answer
        h.await_rule("all", running=0)
    inside = h.come("/app/1")
    h.await_rule("all", running=1)
    refused = h.get("/d/")
    assert (refused.status, refused.answer) == (503, b"custom busy")
    assert int(refused.got["Retry-After"]) > 0
    h.app.open_gate()
    inside.join()
    until(lambda: h.rule("all")["running"] == 0, 5, "nobody runs")


def test_container_and_server_rule_are_two_questions(house):
    h = house("YoyakuThrottle server limit=2\n" + rule("limit=1"))
    one = h.come("/app/1")
    h.await_rule("app", running=1)
    h.await_rule("server", running=1)
    two = h.come("/app/2")
    h.await_rule("app", running=1, queued=1)
    assert h.rule("server")["running"] == 1  # it waits in neither P nor Q
    assert h.rule("server")["queued"] == 0
    assert h.get("/other").status == 404
    h.app.open_gate()
    one.join(), two.join()
    assert (one.status, two.status) == (200, 200)
    h.await_rule("server", running=0)


def test_off_frees_a_path_and_a_virtual_host_has_its_own_rule(house):
    h = house("""
YoyakuThrottle main limit=1
<Location "/app/free">
    YoyakuThrottle off
</Location>
""")
    one = h.come("/app/1")
    h.await_rule("main", running=1)
    free = h.come("/app/free/1")
    until(lambda: len(h.app.inside) == 2, 5, "the free one inside")
    h.app.open_gate()
    one.join(), free.join()
    assert h.rule("main")["arrivals"] == 1


def test_a_bypassed_request_runs_at_once_and_counts(house):
    h = house(rule("limit=1", "YoyakuThrottleBypass "
                   "\"%{req:X-Box-Office} == 'yes'\""))
    one = h.come("/app/1")
    h.await_rule("app", running=1)
    two = h.come("/app/2", headers={"X-Box-Office": "yes"})
    h.await_rule("app", running=2)
    assert h.rule("app")["bypassed"] == 1
    h.app.open_gate()
    one.join(), two.join()


def test_dry_run_counts_and_lets_all_run(house):
    h = house(rule("limit=1 busy=2 dry-run"))
    clients = [h.come(f"/app/{n}") for n in range(4)]
    h.await_rule("app", running=4)
    counted = h.rule("app")
    assert counted["dry_run_queued"] == 1
    assert counted["dry_run_refused"] == 2
    assert "would have refused it" in h.httpd.read_log()
    h.app.open_gate()
    for client in clients:
        client.join()
    assert tally(clients) == {200: 4}


def test_the_reserve_is_left_free(house):
    h = house("YoyakuThrottleReserve 36\n" + rule("limit=30"), workers=40)
    clients = [h.come(f"/app/{n}") for n in range(4)]
    h.await_rule("app", running=4)
    assert h.get("/app/5").status == 503
    assert h.rule("app")["refused"]["reserve"] == 1
    h.app.open_gate()
    for client in clients:
        client.join()


def test_notes_say_what_became_of_it(house, tmp_path):
    log = tmp_path / "notes.log"
    h = house(f'CustomLog "{log}" "%U %{{yoyaku-rule}}n '
              f'%{{yoyaku-outcome}}n %{{yoyaku-queue-ms}}n"\n'
              + rule("limit=1 busy=1"))
    one = h.come("/app/1")
    h.await_rule("app", running=1)
    h.get("/app/2")
    h.app.open_gate()
    one.join()
    until(lambda: log.exists() and log.read_text().count("/app") == 2, 5,
          "two lines")
    assert re.search(r"/app/2 app throttled \d{1,2}$", log.read_text(), re.M)
    assert "/app/1 app - 0" in log.read_text()


@pytest.mark.parametrize("line,says", [
    ("YoyakuThrottle x limit=four", "limit=four"),
    ("YoyakuThrottle x limit=5 overflow=3", "overflow=3"),
    ("YoyakuThrottle x limit=5 colour=3", "colour=3"),
    ("YoyakuThrottle x limit=5 busy=9 limit=6", "limit=6 is said twice"),
    ("YoyakuThrottle a/b limit=5", "a/b"),
    ("YoyakuThrottle x", "stand nowhere"),
    ("YoyakuThrottle x limit=1\n<Location /y>\nYoyakuThrottle x limit=2\n"
     "</Location>", "says something else"),
    ("YoyakuThrottleWait many", "many"),
    ("YoyakuThrottle x limit=1 run-after=30s", "run-after=30s"),
])
def test_errors_name_the_value_and_an_example(folder, build, mpm, line, says):
    from servers import Httpd, ServerError
    name = os.path.join(folder, f"bad{next(NUMBERS)}")
    httpd = Httpd(name, build, line, mpm)
    with pytest.raises(ServerError) as error:
        httpd.start()
    text = str(error.value) + httpd.read_log()
    assert says in text
    assert "for example" in text or "the name alone joins" in text
