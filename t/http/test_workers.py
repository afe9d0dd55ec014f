# SPDX-License-Identifier: Apache-2.0
"""What is seen of workers and paths, and what is done about those that grew
or are short."""
import http.client
import itertools
import json
import os
import re
import time

import pytest
from crowd import House, tally
from servers import until

pytestmark = pytest.mark.own
NUMBERS = itertools.count(1)
GROW = """
function handle(r)
    if r.uri == "/grow/more" then
        kept = string.rep("x", 30 * 1024 * 1024)
    end
    local n = 0
    if r.uri == "/grow/busy" then
        for i = 1, 3000000 do n = n + i % 7 end
    end
    r.content_type = "text/plain"
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
def test_at_most_one_in_twenty_is_leaving_and_nobody_is_hurt(house):
    h = house("YoyakuRecycleAbove 20M", workers=20)
    least, clients = 20, []
    for _ in range(12):
        some = [h.come("/grow/more") for _ in range(18)]
        clients += some
        for client in some:
            client.join(30)
        least = min(least, len(h.httpd.children()))
        time.sleep(0.3)
    assert tally(clients) == {200: 12 * 18}
    totals = h.status()["totals"]
    assert totals["recycled"] > 1
    assert totals["recycle_put_off"] > 0
    assert least >= 17


@pytest.mark.prefork
def test_kept_connections_are_given_up_only_while_workers_are_short(house):
    h = house("KeepAlive On\nKeepAliveTimeout 20\nYoyakuKeepAlive adaptive",
              workers=12)

    def kept():
        line = http.client.HTTPConnection("127.0.0.1", h.httpd.port,
                                          timeout=10)
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
    paths = {(p["path"], p["handler"]): p for p in h.status()["paths"]}
    busy = paths["/grow/busy", "lua-map-handler"]
    more = paths["/grow/more", "lua-map-handler"]
    assert busy["count"] == more["count"] == 3
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
    history = json.loads(
        h.get("/yoyaku-status?json&history=2h&step=30").answer)["history"]
    assert len(history["rows"]) == 4
    assert history["all"]["requests"] >= 4
    assert sum(row["requests"] for row in history["rules"]["grow"]) == 4
    lock = tree["locks"][0]
    assert lock["write_locks"] >= 8
    assert lock["write_difference"] == 0


def test_health_is_ready_then_draining(house):
    h = house()
    assert json.loads(h.get("/yoyaku-health").answer)["state"] == "ready"
    assert h.get("/yoyaku-health", method="POST").status == 405


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
