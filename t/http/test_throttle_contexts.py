# SPDX-License-Identifier: Apache-2.0
"""YoyakuThrottle wherever a directive may stand, each rule with one who runs
and one who waits; and a CGI that is slow leaves other paths alone."""
import itertools
import os
import pathlib

import pytest
from crowd import Client, House, tally
from servers import free_port, until

pytestmark = pytest.mark.own
NUMBERS = itertools.count(1)

# Writes down that it runs and goes on when its file is there.
SLOW = """#!/bin/sh
echo "$QUERY_STRING" >> "@ROOT@/ran"
while [ ! -e "@ROOT@/gate-$QUERY_STRING" ]; do sleep 0.05; done
printf 'Content-Type: text/plain\\r\\n\\r\\nok\\n'
"""

CONF = """
Listen 127.0.0.1:@PORT@
ScriptSock "@ROOT@/cgi.sock"
<Directory "@ROOT@">
    Require all granted
    Options +ExecCGI
    AddHandler cgi-script .cgi
</Directory>
DocumentRoot "@ROOT@"
YoyakuThrottle of-server limit=1
<VirtualHost 127.0.0.1:@MAIN@>
    <LocationMatch "^/by-[l]ocation">
        YoyakuThrottle of-match limit=1
    </LocationMatch>
    <Location "/by-location.cgi/plain">
        YoyakuThrottle of-location limit=1
    </Location>
    <Directory "@ROOT@/dir">
        YoyakuThrottle of-directory limit=1
    </Directory>
    <Files "one.cgi">
        YoyakuThrottle of-files limit=1
    </Files>
    <If "%{QUERY_STRING} =~ /^of-if/">
        YoyakuThrottle of-if limit=1
    </If>
    <Location "/fast.txt">
        YoyakuThrottle off
    </Location>
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT@>
    YoyakuThrottle of-host 1/1,,,,,1:00
</VirtualHost>
"""


class Scripts:
    def __init__(self, root):
        self.root = root
        for name in ("plain.cgi", "one.cgi", "by-location.cgi", "dir/x.cgi"):
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(SLOW.replace("@ROOT@", str(root)))
            path.chmod(0o755)
        os.chmod(root, 0o1777)  # CGI is somebody else

    def ran(self):
        path = self.root / "ran"
        return path.read_text().split() if path.exists() else []

    def let_go(self, name):
        (self.root / f"gate-{name}").write_text("")


@pytest.fixture(scope="module")
def place(folder, build, mpm):
    root = pathlib.Path(folder, f"scripts{next(NUMBERS)}")
    root.mkdir()
    scripts = Scripts(root)
    main, other = free_port(), free_port()
    text = CONF if mpm != "prefork" else CONF.replace("ScriptSock", "#")
    for word, value in (("ROOT", root), ("PORT", other), ("MAIN", main)):
        text = text.replace(f"@{word}@", str(value))
    h = House(os.path.join(folder, f"contexts{next(NUMBERS)}"), build, mpm,
              text, port=main,
              modules=["cgi" if mpm == "prefork" else "cgid"])
    h.scripts, h.other = scripts, other
    yield h.start()
    h.stop()


def two_in_a_row(h, rule, come):
    """The second waits for the first, and both are served."""
    one = come(f"{rule}-1")
    until(lambda: f"{rule}-1" in h.scripts.ran(), 10, "the first runs")
    two = come(f"{rule}-2")
    h.await_rule(rule, running=1, queued=1)
    assert f"{rule}-2" not in h.scripts.ran()
    h.scripts.let_go(f"{rule}-1")
    until(lambda: f"{rule}-2" in h.scripts.ran(), 10, "the second runs")
    h.scripts.let_go(f"{rule}-2")
    one.join(90), two.join(90)
    assert tally([one, two]) == {200: 2}
    seen = h.await_rule(rule, running=0, queued=0)
    assert (seen["arrivals"], seen["admitted_after_waiting"]) == (2, 1)


@pytest.mark.parametrize("rule,path", [
    ("of-server", "/plain.cgi?"), ("of-match", "/by-location.cgi?"),
    ("of-location", "/by-location.cgi/plain?"),
    ("of-directory", "/dir/x.cgi?"), ("of-files", "/one.cgi?"),
])
def test_a_rule_queues_where_it_stands(place, rule, path):
    two_in_a_row(place, rule, lambda name: place.come(path + name))


def test_a_rule_of_an_if_is_for_whom_the_condition_holds(place):
    two_in_a_row(place, "of-if", lambda name: place.come("/plain.cgi?" + name))
    one = place.come("/plain.cgi?other")
    until(lambda: "other" in place.scripts.ran(), 10, "it runs")
    assert place.rule("of-if")["running"] == 0
    place.scripts.let_go("other")
    one.join(90)
    assert one.status == 200


def test_a_virtual_host_has_its_own(place):
    def come(name):
        client = Client(place.other, f"/plain.cgi?{name}")
        client.start()
        return client
    before = place.rule("of-server")["arrivals"]
    two_in_a_row(place, "of-host", come)
    assert place.rule("of-server")["arrivals"] == before


def test_a_slow_script_at_its_limit_leaves_a_fast_path_unharmed(place):
    slow = [place.come(f"/dir/x.cgi?slow-{n}") for n in range(4)]
    place.await_rule("of-directory", running=1, queued=3)
    (place.scripts.root / "fast.txt").write_text("fast")
    for _ in range(20):
        assert place.get("/fast.txt").answer == b"fast"
    for n in range(4):
        place.scripts.let_go(f"slow-{n}")
    for client in slow:
        client.join(90)
    assert tally(slow) == {200: 4}
