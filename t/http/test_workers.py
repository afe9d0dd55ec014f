# SPDX-License-Identifier: Apache-2.0
"""What is seen of workers and paths, and what is done about those that grew
or are short."""
import http.client
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import time

import pytest
from crowd import House, tally
from servers import until

pytestmark = pytest.mark.own
NUMBERS = itertools.count(1)
GROW = """
function pid()
    local file = io.open("/proc/self/stat")
    local n = file:read("*n")
    file:close()
    return n
end
function handle(r)
    if r.uri == "/grow/more" then
        kept = string.rep("x", 30 * 1024 * 1024)
    end
    local n = 0
    if r.uri == "/grow/busy" then
        for i = 1, 3000000 do n = n + i % 7 end
    end
    r.content_type = "text/plain"
    r.headers_out["X-Worker"] = string.format("%d", pid())
    r:puts("ok")
    return apache2.OK
end
"""


@pytest.fixture
def house(folder, build, mpm):
    made = []
    script = os.path.join(folder, "grow.lua")
    with open(script, "w") as file:
        file.write(GROW)

    def make(conf="", **more):
        name = os.path.join(folder, f"workers{next(NUMBERS)}")
        made.append(House(name, build, mpm, f"""
LuaMapHandler "^/grow/" "{script}" handle
LuaScope thread
{conf}
""", modules=["lua"], **more))
        return made[-1].start()

    yield make
    for one in made:
        one.stop()


@pytest.mark.prefork
def test_a_worker_that_has_grown_ends_after_its_response(house):
    h = house("YoyakuRecycleAbove 20M", workers=20)
    before = set(h.httpd.children())
    time.sleep(1.1)  # statm is looked at once a second
    assert h.get("/grow/more").status == 200
    until(lambda: h.status()["totals"]["recycled"] == 1, 5, "recycled")
    until(lambda: len(before - set(h.httpd.children())) == 1, 5, "one ended")
    until(lambda: len(h.httpd.children()) == 20, 10, "replaced")
    assert "has grown to" in h.httpd.read_log()


@pytest.mark.prefork
def test_a_kept_connection_is_ended_with_a_word(house):
    """Nobody sends into a connection that its worker has closed."""
    h = house("YoyakuRecycleAbove 20M\nKeepAlive On\nKeepAliveTimeout 20",
              workers=4)
    line = http.client.HTTPConnection("127.0.0.1", h.httpd.port, timeout=60)
    pid, said = None, []
    for _ in range(3):
        line.request("GET", "/grow/more")
        answer = line.getresponse()
        answer.read()
        said.append(answer.headers.get("Connection", "").lower())
        pid = pid or int(answer.headers["X-Worker"])
        if said[-1] == "close":
            break
        time.sleep(1.1)  # statm is looked at once a second
    assert said[0] != "close" and said[-1] == "close"
    until(lambda: pid not in h.httpd.children(), 5, "its worker ended")
    assert h.status()["totals"]["recycled"] == 1


@pytest.mark.prefork
def test_at_most_one_in_twenty_is_leaving_and_nobody_is_hurt(house):
    h = house("YoyakuRecycleAbove 20M", workers=20)
    least, clients, began = 20, [], time.monotonic()
    for _ in range(12):
        some = [h.come("/grow/more") for _ in range(18)]
        clients += some
        for client in some:
            client.join(90)
        least = min(least, len(h.httpd.children()))
        time.sleep(0.3)
    assert tally(clients) == {200: 12 * 18}
    totals = h.status()["totals"]
    # one in twenty is missed for two seconds: of twenty one goes in two
    assert 1 < totals["recycled"] <= 1 + (time.monotonic() - began) / 2
    assert totals["recycle_put_off"] > 0
    assert least >= 17


@pytest.mark.prefork
def test_kept_connections_are_given_up_only_while_workers_are_short(house):
    h = house("KeepAlive On\nKeepAliveTimeout 20\nYoyakuKeepAlive adaptive",
              workers=12)

    def kept():
        line = http.client.HTTPConnection("127.0.0.1", h.httpd.port,
                                          timeout=60)
        line.request("GET", "/grow/x")
        answer = line.getresponse()
        answer.read()
        line.close()
        return answer.headers.get("Connection", "") != "close"

    assert kept()
    clients = [h.come(f"/app/{n}") for n in range(11)]
    until(lambda: len(h.app.inside) == 11, 10, "all inside")
    # how busy the server is, is looked at now and then
    until(lambda: not kept(), 5, "given up")
    h.app.open_gate()
    for client in clients:
        client.join()
    until(kept, 5, "kept again")
    assert h.status()["totals"]["keepalive_closed"] >= 1


def test_the_guilty_path_is_found(house):
    h = house()
    for _ in range(3):
        h.get("/grow/busy")
        h.get("/grow/more")
    for n in range(20):
        h.get(f"/nothing{n}")

    def counted():  # each is entered when it is logged, after its answer
        paths = {(p["path"], p["handler"]): p for p in h.status()["paths"]}
        found = [paths.get((f"/grow/{name}", "lua-map-handler"))
                 for name in ("busy", "more")]
        return all(row and row["count"] == 3 for row in found) and found
    busy, more = until(counted, 5, "three of each")
    assert busy["cpu_ms"] > 10
    assert more["grown_kb"] > 25000
    assert h.status()["paths"][0]["path"] in ("/grow/busy", "/grow/more")


def test_status_tells_the_same_as_page_lines_json_and_metrics(house):
    h = house('<Location "/grow/">\nYoyakuThrottle grow limit=3\n</Location>\n'
              '<Location "/server-status">\nSetHandler server-status\n'
              "</Location>\nExtendedStatus On")
    for _ in range(4):
        h.get("/grow/x")
    tree = h.status()
    assert h.rule("grow")["arrivals"] == 4
    page = h.get("/yoyaku-status").answer.decode()
    assert "<script" not in page and "{{" not in page
    assert "<td>grow</td><td>3</td>" in page
    lines = h.get("/yoyaku-status?auto").answer.decode()
    assert "Yoyaku.throttle.rules.grow.arrivals: 4\n" in lines
    metrics = h.get("/yoyaku-metrics").answer.decode()
    assert 'yoyaku_rule_arrivals_total{rule="grow"} 4\n' in metrics
    for line in metrics.splitlines():
        assert re.match(r"# (HELP|TYPE) yoyaku_\w+ .+$"
                        r"|yoyaku_\w+(\{[^}]*\})? -?[\d.e+]+$", line), line
    assert "Yoyaku.throttle.rules.grow.arrivals: 4\n" in \
        h.get("/server-status?auto").answer.decode()
    assert "<td>grow</td><td>3</td>" in \
        h.get("/server-status").answer.decode()

    def recorded():  # a request is when it is logged, after its answer
        found = json.loads(h.get(
            "/yoyaku-status?json&history=2h&step=30").answer)["history"]
        return sum(row["requests"] for row in
                   found["rules"]["grow"]) == 4 and found
    history = until(recorded, 5, "four requests")
    assert len(history["rows"]) == 4
    assert history["all"]["requests"] >= 4
    assert sum(row["requests"] for row in history["rules"]["grow"]) == 4
    total = next(one for one in history["rules_all"] if one["name"] == "grow")
    assert total["requests"] == total["connections"] == 4
    assert total["bytes_sent"] == total["bytes_before"] == 4 * len("ok")
    page = h.get("/yoyaku-status?history=2h").answer.decode()
    assert "<td>grow</td><td>4</td><td>4</td><td>8</td>" in page
    before = json.loads(h.get("/yoyaku-status?json&history=1h&until="
                              "2026-01-01T00:00:00Z").answer)["history"]
    assert before["all"]["requests"] == 0  # any period, here one long ago
    lock = tree["locks"][0]
    assert lock["write_locks"] >= 8
    assert lock["write_difference"] == 0


NO_PERIOD = {"history=banana": "24h", "history=48h": "28d",
             "history=0": "30min", "history=d": "1d",
             "history=2h&step=often": "minutes", "history=2h&step=0": "1440",
             "history=2h&until=noon": "18:00Z"}
PERIODS = {"history=30min": 30, "history=90": 1, "history=2d&step=60": 2880,
           "history=99d&step=1440": 40320,
           "history=2h&step=4294967297": 120}


def test_a_period_that_is_none_is_refused_and_told(house):
    h = house()
    for asked, names in NO_PERIOD.items():
        for way in ("", "json&", "auto&"):
            refused = h.get(f"/yoyaku-status?{way}{asked}")
            assert refused.status == 400, asked
            assert names in refused.answer.decode()
            assert "banana" not in refused.answer.decode()
    for asked, minutes in PERIODS.items():
        told = json.loads(h.get(f"/yoyaku-status?json&{asked}").answer)
        assert told["history"]["all"]["minutes"] == minutes, asked
    assert "history" not in json.loads(h.get("/yoyaku-status?json").answer)


def test_health_is_ready_and_looks_only(house):
    h = house()
    assert json.loads(h.get("/yoyaku-health").answer)["state"] == "ready"
    assert h.get("/yoyaku-health", method="POST").status == 405


def half_asked(h):
    """A question that has been begun and waits for its end."""
    line = socket.create_connection(("127.0.0.1", h.httpd.port), timeout=60)
    line.sendall(b"GET /yoyaku-health HTTP/1.1\r\nHost: x\r\n")
    return line


def rest_asked(line):
    line.sendall(b"Connection: close\r\n\r\n")
    text = b""
    while True:
        part = line.recv(4096)
        if not part:
            break
        text += part
    head, _, body = text.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["state"]


def test_health_says_draining_while_the_server_stops_and_not_before(house):
    h = house()
    one = half_asked(h)
    h.get("/yoyaku-health")  # by now the half question has its worker
    h.graceful()  # its worker ends, the server does not
    assert rest_asked(one) == (200, "ready")
    two = half_asked(h)
    time.sleep(0.5)
    os.kill(h.httpd.pid, signal.SIGWINCH)  # stops when its requests have ended
    until(lambda: "shutting down gracefully" in h.httpd.read_log()
          or "SIGWINCH" in h.httpd.read_log(), 10, "the stop")
    assert rest_asked(two) == (503, "draining")


def test_workers_settle_at_a_size_that_is_shown(house):
    h = house(workers=4)
    for _ in range(20):
        h.get("/grow/more")
    memory = h.status()["memory"]
    assert memory["measured"] > 0
    assert memory["private"]["largest_kb"] >= memory["private"]["median_kb"] > 0


def test_a_child_is_one_worker_in_the_table(house):
    h = house(workers=4)
    for _ in range(20):
        assert h.get("/grow/ok").status == 200
    assert h.status()["memory"]["alive"] == len(h.httpd.children())


def test_every_lock_is_told_from_one_list(house, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    os.chmod(key, 0o600)
    h = house(f'YoyakuKeyFile "{key}"\n<Location "/yoyaku">\n'
              'SetHandler yoyaku\n</Location>\n<Location "/grow/">\n'
              "YoyakuThrottle grow limit=3\nYoyakuWaitingRoom sale active=9\n"
              "</Location>")
    h.get("/grow/x")
    header = pathlib.Path(__file__).resolve().parents[2] / "include" / \
        "yoyaku" / "lock.h"
    listed = re.findall(r'^    X\(\w+, "(\w+)"', header.read_text(), re.M)
    locks = {lock["name"]: lock for lock in h.status()["locks"]}
    # the one of the layout before is there while somebody uses it
    assert set(listed) - set(locks) == {"throttle_before"}
    for lock in locks.values():
        taken = lock["read_locks"] + lock["write_locks"]
        assert lock["read_difference"] == 0
        assert sum(cell["n"] for cell in lock["waits_ns"]) == taken
        assert lock["ns_per_lock"] == (lock["wait_ns"] // taken if taken else 0)
    assert locks["throttle"]["write_locks"] > 0
    assert locks["room"]["write_locks"] > 0
    metrics = h.get("/yoyaku-metrics").answer.decode()
    for name in locks:
        assert f'lock="{name}"' in metrics
