# SPDX-License-Identifier: Apache-2.0
"""what is up, and where"""
import argparse
import json
import sys

from servers import ServerError

from . import house

SAID = ("url", "hosts", "httpd_pid", "mariadb_pid", "mariadb_socket",
        "database", "memcached", "memcached_pid", "error_log", "build")


def run(argv):
    made = argparse.ArgumentParser(prog="loadtest/rig status",
                                   description=__doc__)
    made.add_argument("--json", action="store_true")
    args = made.parse_args(argv)
    note = house.standing()
    if note is None:
        raise ServerError("nothing is up; loadtest/rig up starts it")
    note = {key: note[key] for key in SAID}
    if args.json:
        print(json.dumps(note))
    else:
        sys.stdout.write("".join(
            f"{key:15} {' '.join(value) if key == 'hosts' else value}\n"
            for key, value in note.items()))
    return 0
