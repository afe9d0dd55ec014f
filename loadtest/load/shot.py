# SPDX-License-Identifier: Apache-2.0
"""One load on one stand with one arm: the unit that everything is made of."""
import itertools
import os
import time

from . import sampler, timetable
from .driver import Driver

NUMBERS = itertools.count(1)


class Shot:
    """
    arm, mix   what is done
    bookers    how many at once; closed unless `options` say otherwise
    slots      keys, made before; None: one fresh slot
    saturate   True: void unless nearly all workers (or bookers) were busy
    """

    def __init__(self, stand, arm, mix, bookers, seconds, slots=None,
                 options=None, saturate=False, watch=True, record=False,
                 name=None, places=None, prove=True, warm=0.0):
        self.stand, self.arm, self.mix = stand, arm, mix
        self.bookers, self.seconds, self.warm = bookers, seconds, warm
        self.slots = slots
        self.options = options or {}
        self.saturate, self.watch, self.record = saturate, watch, record
        self.name = name or f"{arm.name}-{next(NUMBERS)}"
        self.places = stand.places if places is None else places
        self.prove = prove
        self.result = self.seen = self.times = None
        self.voids = []

    def _driver(self, seconds):
        cores = self.stand.cpus.get("driver")
        options = {"plan": "closed", "bookers": self.bookers,
                   "seconds": seconds, "seed": 1, "progress_ms": 0,
                   "threads": min(len(cores) if cores else os.cpu_count(),
                                  self.bookers),
                   "cpus": ",".join(map(str, sorted(cores))) if cores
                   else None, **self.options}
        return Driver(self.stand.build, self.stand.folder / self.name,
                      self.stand.url, self.arm.text(), self.mix, self.slots,
                      self.places, options, self.record)

    def run(self, on_progress=None, beside=None):
        """`beside` is called a few times a second while it runs."""
        if self.slots is None:
            self.slots = [self.name]
            self.arm.fresh_slot(self.stand, self.name)
        if self.warm:
            self._driver(self.warm).start().wait(self.warm + 60)
        before = self.arm.counter(self.stand) if self.prove else 0
        log_from = self.stand.log_size()
        # a short load is looked at more often: five times at least
        every = min(0.5, max(0.1, (self.seconds or 3) / 6))
        watcher = sampler.Sampler(self.stand, every=every) if self.watch \
            else None
        driver = self._driver(self.seconds)
        if watcher:
            watcher.start()
        try:
            driver.start(on_progress)
            while driver.running():
                time.sleep(0.05)
                if beside:
                    beside()
            self.result = driver.wait()
        finally:
            driver.stop()
            if watcher:
                watcher.stop()
        self.driver = driver
        if self.prove:
            said = self.arm.proves(before, self.arm.counter(self.stand),
                                   self.result)
            if said:
                self.voids.append(said)
        if not self.result.answers:
            self.voids.append("nothing was answered")
        self.voids += sampler.driver_voids(self.result, os.cpu_count())
        if watcher:
            self._look(watcher, log_from)
        return self

    def _look(self, watcher, log_from):
        self.seen = watcher.summary()
        self.samples = watcher.samples
        self.voids += watcher.voids()
        self.times = timetable.times(self.stand, log_from, self.result,
                                     self.seen)
        self.paths = timetable.paths(self.stand, log_from)
        busy = self.seen["workers_working"]
        enough = 0.9 * min(self.stand.workers, self.bookers)
        if self.saturate and (busy is None or busy["max"] < enough):
            self.voids.append(
                f"workers were not saturated: "
                f"{busy['max'] if busy else 'none seen'} of "
                f"{min(self.stand.workers, self.bookers)} at work")

    @property
    def rate(self):
        return self.result.rate

    def cpu_us(self, action=None, outcome=None):
        """CPU of httpd and database for each answer of a kind."""
        n = self.result.count(action, outcome)
        cpu = self.seen["cpu_seconds"]
        return 1e6 * (cpu["httpd"] + cpu["db"]) / n if n else 0.0

    def said(self):
        """Everything about it, for a file."""
        return {"name": self.name, "arm": self.arm.name, "mix": self.mix,
                "bookers": self.bookers, "slots": len(self.slots),
                "rate": round(self.rate, 1), "result": dict(self.result),
                "seen": self.seen, "times": self.times, "voids": self.voids}
