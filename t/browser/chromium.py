# SPDX-License-Identifier: Apache-2.0
"""Chromium without a screen, told what to do over a pair of pipes.

Its DevTools protocol: one JSON object a message, ended by a NUL; it reads them
from descriptor 3 and answers on 4.
"""
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import time

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage
--no-first-run --no-default-browser-check --disable-background-networking
--disable-component-update --disable-sync --disable-extensions --mute-audio
--no-proxy-server --remote-debugging-pipe""".split()
PATIENCE = 60


class BrowserError(Exception):
    pass


def program():
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """folder   its profile lies there"""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        ours = [*os.pipe(), *os.pipe()]  # out of the way of 3 and 4
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in ours]
        for fd in ours:
            os.close(fd)
        its_in, self.to, self.come, its_out = ends

        def place():
            os.dup2(its_in, 3)
            os.dup2(its_out, 4)
        with open(os.path.join(folder, "out.log"), "w") as log:
            self.process = subprocess.Popen(
                [program(), *FLAGS, f"--user-data-dir={folder}/profile",
                 "about:blank"], pass_fds=(3, 4), preexec_fn=place,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                env={**os.environ, "HOME": str(folder)})
        os.close(its_in)
        os.close(its_out)
        self.numbers, self.rest = itertools.count(1), b""

    def stop(self):
        try:
            self.ask("Browser.close")
            self.process.wait(10)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.to)
        os.close(self.come)

    def _message(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.come], [], [], left)[0]:
                raise BrowserError("the browser does not answer")
            got = os.read(self.come, 65536)
            if not got:
                raise BrowserError("the browser has ended")
            self.rest += got
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def ask(self, method, session=None, **params):
        """Call a method of the protocol; events in between are not heard."""
        call = {"id": next(self.numbers), "method": method, "params": params}
        if session:
            call["sessionId"] = session
        os.write(self.to, json.dumps(call).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            said = self._message(deadline)
            if said.get("id") == call["id"]:
                if "error" in said:
                    raise BrowserError(f"{method}: {said['error']}")
                return said["result"]

    def page(self, script=""):
        """A page with cookies of its own; the script runs before any of a
        document's."""
        own = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank",
                          browserContextId=own)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target,
                           flatten=True)["sessionId"]
        self.ask("Page.enable", session)
        self.ask("Page.addScriptToEvaluateOnNewDocument", session,
                 source=script)
        return Page(self, session)


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def go(self, url):
        self.browser.ask("Page.navigate", self.session, url=url)

    def say(self, expression):
        """What a JavaScript expression comes to; None while the document
        changes under it."""
        try:
            said = self.browser.ask("Runtime.evaluate", self.session,
                                    expression=expression, returnByValue=True)
        except BrowserError as error:
            if "context" in str(error) or "navigat" in str(error):
                return None
            raise
        return said["result"].get("value")

    def text(self, selector="body"):
        """What is to be seen of it; None: nothing, or it is not there."""
        found = json.dumps(selector)
        return self.say(f"(e => e && e.getClientRects().length ? e.innerText "
                        f": null)(document.querySelector({found}))")
