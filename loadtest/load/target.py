# SPDX-License-Identifier: Apache-2.0
"""A staging server of somebody's own: driven from outside, judged there."""
import json
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request

from servers import ServerError

from . import sampler, stand, verdict
from .arms import Arm
from .driver import Driver


class Target:
    """Only its address is known."""

    def __init__(self, url, slots, insecure=False):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServerError(f"--target {url}: say http[s]://HOST[:PORT]")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.slots, self.insecure = slots, insecure
        self.places = self._places()

    def get(self, path):
        ask = urllib.request.Request(self.url + path,
                                     headers={"Accept": "application/json"})
        trust = ssl.create_default_context()
        if self.insecure:
            trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(ask, timeout=30,
                                        context=trust) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise ServerError(f"{self.url}{path} answers {error.code}"
                              ) from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise ServerError(
                    f"the certificate of {self.url} is not believed "
                    f"({error.reason.verify_message}); --insecure drives it "
                    "all the same") from None
            raise ServerError(f"{self.url}: {error.reason}") from None

    def _places(self):
        """The guids of the plan, in plan order."""
        plan = self.get(f"/yoyaku/slots/{self.slots[0]}/plan")
        return guids(plan)

    def conditions(self):
        return {**stand.conditions(), "target": self.url, "places": len(self.places),
                "seen": "from outside"}


def guids(plan):
    """Places of a plan document in order, whatever its nesting is called."""
    found = []

    def walk(node):
        if isinstance(node, dict):
            name = node.get("place") or node.get("guid") or \
                node.get("seat_guid")
            if isinstance(name, str):
                found.append(name)
            else:
                for value in node.values():
                    walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)
    walk(plan)
    return found


def rush(args, plan, where, progress):
    """The run without its latencies; what is left to do is printed."""
    target = Target(args.target, args.slot or ["demo"], args.insecure)
    driver = Driver(str(stand.BUILD), where, target.url,
                    Arm(args.arm).text(), args.mix, target.slots,
                    target.places, {"threads": os.cpu_count(),
                                    "insecure": "on" if args.insecure
                                    else None, **plan})
    result = driver.start(progress).wait()
    said = verdict.of_target(result, driver.recorded())
    print("\nthe rest of the verdict is taken there:", *(
        f"  yoyakuctl verify --slot {slot}" for slot in target.slots),
        sep="\n", file=sys.stderr)
    return {"kind": "rush", "conditions": target.conditions(),
            "verdict": said.said(),
            "voids": sampler.driver_voids(result, os.cpu_count()),
            "result": dict(result), "progress": driver.progress,
            "times": None, "seen": None}
