# SPDX-License-Identifier: Apache-2.0
"""yoyakuctl against the rig: loadtest/rig ctl slot list"""
import os

from servers import ServerError

from . import house


def run(argv):
    note = house.standing()
    if note is None:
        raise ServerError("nothing is up; loadtest/rig up starts it")
    os.environ["YOYAKU_DB"] = note["params"]
    if note.get("state"):
        os.environ["YOYAKU_STATE"] = note["state"]
    tool = os.path.join(note["build"], "yoyakuctl")
    os.execv(tool, [tool, *argv])
