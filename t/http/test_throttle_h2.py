# SPDX-License-Identifier: Apache-2.0
"""YoyakuThrottle under HTTP/2: every stream is a request."""
import itertools
import os

import pytest
from crowd import House
from servers import until
from yk.h2 import Line

# mod_http2 does not run under prefork
pytestmark = [pytest.mark.own, pytest.mark.threads]
NUMBERS = itertools.count(1)


@pytest.fixture
def house(folder, build, mpm):
    h = House(os.path.join(folder, f"h2-{next(NUMBERS)}"), build, mpm,
              "Protocols h2c http/1.1\n<Location \"/app\">\n"
              "YoyakuThrottle app limit=1 refuse-after=60s busy=4\n"
              "</Location>", modules=["http2"])
    yield h.start()
    h.stop()


def test_streams_of_one_line_run_in_turn(house):
    h, line = house, Line(house.httpd.port)
    streams = []
    for n in range(4):
        streams.append(line.get(f"/app/{n}"))
        h.await_rule("app", running=1, queued=n)
    refused = line.get("/app/too-many")
    until(lambda: line.ended(refused), 5, "the fifth is refused")
    assert line.ok(refused) is False
    assert not any(line.ended(stream) for stream in streams)
    for n, stream in enumerate(streams):
        h.app.let_go()
        until(lambda: line.ended(stream), 5, f"stream {n}")
        assert line.ok(stream)
    assert h.app.order == [f"/app/{n}" for n in range(4)]
    assert h.app.most == 1
    h.await_rule("app", running=0, queued=0)
    line.close()


def test_a_stream_given_up_leaves_the_queue_and_the_line_goes_on(house):
    h, line = house, Line(house.httpd.port)
    first = line.get("/app/0")
    h.await_rule("app", running=1)
    second = line.get("/app/1")
    h.await_rule("app", queued=1)
    third = line.get("/app/2")
    h.await_rule("app", queued=2)
    line.give_up(second)
    h.await_rule("app", running=1, queued=1, deadline=3)
    assert h.rule("app")["refused"]["gone"] == 1
    h.app.open_gate()
    until(lambda: line.ended(first) and line.ended(third), 5, "the others")
    assert line.ok(first) and line.ok(third)
    assert h.app.order == ["/app/0", "/app/2"]
    line.close()


def test_a_client_gone_with_all_his_streams_leaves_nothing_behind(house):
    h, line = house, Line(house.httpd.port)
    line.get("/app/0")
    h.await_rule("app", running=1)
    for n in (1, 2):
        line.get(f"/app/{n}")
        h.await_rule("app", queued=n)
    line.close()
    h.await_rule("app", queued=0, deadline=3)
    h.app.open_gate()
    h.await_rule("app", running=0, queued=0)
    assert h.get("/app/next").status == 200
