# SPDX-License-Identifier: Apache-2.0
"""what another module does in trouble, beside ours: experiment qos

Installs and builds what is missing, runs loadtest/arms/NAME/experiment and
prints what was seen. Exit status: 0 ours held, 1 it did not.
"""
import argparse
import subprocess
import sys

from . import house

ARMS = house.ROOT / "loadtest" / "arms"


def names():
    return sorted(path.parent.name for path in ARMS.glob("*/experiment"))


def run(argv):
    made = argparse.ArgumentParser(
        prog="loadtest/rig experiment", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("name", choices=names())
    made.add_argument("--json", action="store_true")
    args = made.parse_args(argv)
    house.prepare(("build", "run", "load"))
    return subprocess.run(
        [sys.executable, str(ARMS / args.name / "experiment"),
         *(["--json"] if args.json else [])], check=False).returncode
