# SPDX-License-Identifier: Apache-2.0
"""stop the rig and everything it started"""
import argparse

from . import house


def run(argv):
    argparse.ArgumentParser(prog="loadtest/rig down",
                            description=__doc__).parse_args(argv)
    house.say("stopped" if house.down() else "nothing was up")
    return 0
