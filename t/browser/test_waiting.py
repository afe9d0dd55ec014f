# SPDX-License-Identifier: Apache-2.0
"""The waiting room's page: it shows the place, polls, and goes in."""
import http.client
import itertools
import os
import subprocess

import pytest
from crowd import House
from servers import until

NUMBERS = itertools.count(1)
# Time goes so much faster for the page's script: it waits half a minute.
FASTER = 20
SCRIPT = f"""(function () {{
  const late = window.setTimeout;
  window.setTimeout = (act, ms, ...more) => late(act, ms / {FASTER}, ...more);
  const ask = window.fetch;
  window.unanswered = {{}};
  window.fetch = (path, ...more) => ask(path, ...more).catch(error => {{
    window.unanswered[new URL(path, location.href).pathname] = true;
    throw error;
  }});
}}());"""


class Guest:
    """Somebody else, without a browser: his cookies, one request at a time."""

    def __init__(self, house):
        self.house, self.jar = house, {}

    def ask(self):
        line = http.client.HTTPConnection("127.0.0.1", self.house.httpd.port,
                                          timeout=60)
        line.request("GET", "/app/x", headers={
            "Accept": "text/html",
            "Cookie": "; ".join(f"{k}={v}" for k, v in self.jar.items())})
        answer = line.getresponse()
        answer.read()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = cookie.split(";")[0].partition("=")
            self.jar.pop(name, None)
            if value:
                self.jar[name] = value
        line.close()
        return answer.status

    def enter(self):
        until(lambda: self.ask() == 200, 20, "a guest's turn")
        return self

    def leave(self):
        self.house.app.headers = {"Yoyaku-Leave": "1"}
        assert self.ask() == 200
        self.house.app.headers = {}


@pytest.fixture
def house(folder, build, tmp_path):
    """A room for one; the public document stands under /booking."""
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    made = House(os.path.join(folder, f"room{next(NUMBERS)}"), build,
                 "prefork", f"""
YoyakuKeyFile {key}
<Location "/booking">
    SetHandler yoyaku
</Location>
<Location "/app">
    YoyakuWaitingRoom sale active=1 rate=100/s grace=2s
</Location>
""", workers=20)
    made.app.is_open = True
    yield made.start()
    made.stop()


@pytest.fixture
def page(browser, house):
    """Waiting, behind one who is inside and one who waits."""
    inside, first = Guest(house).enter(), Guest(house)
    for _ in range(2):  # he is in the line once his cookie has come back
        assert first.ask() == 503
    made = browser.page(SCRIPT)
    made.inside, made.first = inside, first
    made.go(f"{house.httpd.url}/app/x")
    until(lambda: made.text("#place") == "2", 20, "the page with its place")
    return made


def asked(house, request):
    with open(house.httpd.access_log) as file:
        return file.read().count(f'"GET {request} ')


def ctl(house, *args):
    subprocess.run([os.path.join(house.httpd.build, "yoyakuctl"), "room",
                    *args], env={**os.environ,
                                 "YOYAKU_STATE": house.httpd.state},
                   check=True, capture_output=True, timeout=120)


def test_the_page_shows_the_place_polls_and_enters_at_its_turn(house, page):
    assert "You are in the waiting room" in page.text("h1")
    for path in ("/app/x", "/booking/rooms/sale"):
        before = asked(house, path)
        until(lambda p=path, n=before: asked(house, p) >= n + 2, 20,
              f"the page asks {path} again and again")
    assert page.text("#place") == "2"
    assert house.app.order == ["/app/x"]  # the guest's alone
    page.inside.leave()
    page.first.enter()
    until(lambda: page.text("#place") == "1", 20, "the line to move")
    page.first.leave()
    until(lambda: page.text() == "ok", 20, "the page to go in")
    assert page.say("document.querySelector('main') === null")


def test_the_page_says_what_the_operator_says(house, page):
    assert page.text("#message") is None and page.text("#paused") is None
    ctl(house, "say", "sale", "Back <b>soon</b>")
    ctl(house, "pause", "sale")
    until(lambda: page.text("#message") == "Back <b>soon</b>", 20,
          "what the operator says")
    until(lambda: page.text("#paused"), 20, "that the room is paused")
    ctl(house, "resume", "sale")
    until(lambda: page.text("#paused") is None, 20, "that it goes on")
    assert page.text("#place") == "2"


def test_the_page_goes_on_after_a_time_without_an_answer(house, page):
    house.httpd.stop()
    paths = ("/app/x", "/booking/rooms/sale")
    until(lambda: page.say("Object.keys(unanswered).sort().join()") ==
          ",".join(paths), 20, "both questions to find no answer")
    house.httpd.start()
    for path in paths:
        before = asked(house, path)
        until(lambda p=path, n=before: asked(house, p) > n, 30,
              f"the page asks {path} again")
    assert page.text("#place") == "2"
