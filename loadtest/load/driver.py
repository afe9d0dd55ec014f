# SPDX-License-Identifier: Apache-2.0
"""The crowd: writes the driver's script, starts it, reads what it says."""
import glob
import json
import os
import pathlib
import re
import shlex
import subprocess
import threading

from servers import ServerError

from .hdr import Hdr, merged

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "loadtest" / "scenarios"


def mix_text(name):
    """A mix by its name, or a file of the user's own."""
    for path in (pathlib.Path(name), SCENARIOS / f"{name}.mix"):
        if path.is_file():
            return path.read_text()
    known = " ".join(sorted(p.stem for p in SCENARIOS.glob("*.mix")))
    raise ServerError(f'there is no mix "{name}"; known are {known}, or a file')


def mix_areas(name):
    """[(area, "assigned" | "pooled:N")] that a mix wants of its slots."""
    found = []
    for line in mix_text(name).splitlines():
        if line.split()[:1] == ["area"]:
            words = shlex.split(line)
            if len(words) != 4 or not re.fullmatch(
                    r"assigned|pooled(:\d+)?", words[2]):
                raise ServerError(f'mix {name}: "{line}" is not "area NAME '
                                  'assigned|pooled:N PERCENT"')
            found.append((words[1], words[2]))
    return found


class Driver:
    """
    build    where yoyaku-driver is
    folder   script and record go there
    options  lines of the script, last of all
    """

    def __init__(self, build, folder, url, arm_text, mix, slots, places,
                 options, record=True):
        self.binary = os.path.join(build, "yoyaku-driver")
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.record = self.folder / "record"
        for old in glob.glob(f"{self.record}.*"):
            os.unlink(old)
        lines = [f"url {url}", arm_text, mix_text(mix)]
        lines += [f"slot {slot}" for slot in slots]
        if places:
            (self.folder / "places").write_text("\n".join(places) + "\n")
            lines.append(f"places {self.folder}/places")
        if record:
            lines.append(f"record {self.record}")
        lines += [f"{key} {value}" for key, value in options.items()
                  if value is not None]
        self.script = self.folder / "script"
        self.script.write_text("\n".join(lines) + "\n")
        self.progress, self.result = [], None
        self.child = self.reader = None

    def start(self, on_progress=None):
        self.child = subprocess.Popen(
            [self.binary, str(self.script)], stdout=subprocess.PIPE,
            stderr=open(self.folder / "driver.err", "w"), text=True)
        self.reader = threading.Thread(target=self._read, args=(on_progress,),
                                       daemon=True)
        self.reader.start()
        return self

    def _read(self, on_progress):
        for line in self.child.stdout:
            said = json.loads(line)
            if "result" in said:
                self.result = said["result"]
            else:
                self.progress.append(said["progress"])
                if on_progress:
                    on_progress(said["progress"])

    @property
    def pid(self):
        return self.child.pid

    def running(self):
        return self.child.poll() is None

    def stop(self):
        if self.child is not None and self.running():
            self.child.kill()
            self.child.wait()

    def wait(self, deadline=None):
        """Its result as a Result."""
        try:
            status = self.child.wait(deadline)
        except subprocess.TimeoutExpired:
            self.stop()
            raise ServerError(f"the driver did not end in {deadline} s"
                              ) from None
        self.reader.join()
        if status != 0 or self.result is None:
            said = (self.folder / "driver.err").read_text()
            raise ServerError(f"the driver ended with {status}: {said}")
        return Result(self.result)

    def recorded(self):
        """Every change that was answered, and every doubt, by time."""
        rows = []
        for path in sorted(glob.glob(f"{self.record}.*")):
            with open(path) as file:
                rows += [json.loads(line) for line in file]
        rows.sort(key=lambda row: row["at"])
        return rows


CHANGES = ("hold", "more", "exchange", "checkout", "confirm", "release",
           "post")
LOOKS = ("slot", "plan", "board")


class Result(dict):
    """The driver's result with questions that are often asked."""

    def hdr(self, action=None, outcome=None, since="from_due"):
        return merged(self[since], action, outcome)

    def count(self, action=None, outcome=None):
        return self.hdr(action, outcome).total

    @property
    def answers(self):
        return self["ends"]["done"]

    @property
    def rate(self):
        """Answers that are no failure, a second."""
        good = self.count(outcome=("ok", "refused"))
        return good / self["wall_seconds"] if self["wall_seconds"] else 0.0

    @property
    def orders_begun(self):
        return self.count(("hold",), ("ok",))

    @property
    def late(self):
        return Hdr(self["late"])

    @property
    def cpu_of_a_core(self):
        """How busy the busiest may be: all threads over their time."""
        wall = self["wall_seconds"] * self["threads"]
        return self["cpu_seconds"] / wall if wall else 0.0

    @property
    def failures(self):
        return {end: n for end, n in self["ends"].items()
                if end != "done" and n}
