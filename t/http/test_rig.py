# SPDX-License-Identifier: Apache-2.0
"""loadtest/rig: up, what it prints, status, ctl, down."""
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

from servers import until

pytestmark = [pytest.mark.own, pytest.mark.prefork]

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMBERS = ["url", "hosts", "httpd_pid", "mariadb_pid", "mariadb_socket",
           "database", "memcached", "memcached_pid", "error_log", "build"]


class TheRig:
    """The command, kept apart from a rig that somebody may have up."""

    def __init__(self, build):
        self.argv = [str(ROOT / "loadtest" / "rig")]
        self.env = {**os.environ, "YOYAKU_RIG_BUILD": build}

    def run(self, *args, code=0):
        done = subprocess.run(self.argv + list(args), env=self.env, text=True,
                              capture_output=True, timeout=300, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def status(self):
        return json.loads(self.run("status", "--json").stdout)

    def up(self, *args):
        """Detached; its output and its status."""
        return self.run("up", "--detach", *args).stdout, self.status()


@pytest.fixture
def the_rig(build):
    made = TheRig(build)
    made.run("down")
    yield made
    made.run("down")


def sessions(pids):
    """What still runs of servers and of everything they started."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                text = pathlib.Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            fields = text.rsplit(")", 1)[1].split()
            if int(fields[3]) in pids and fields[0] != "Z":
                found.append(int(name))
    return found


def pids_of(status):
    return {status["httpd_pid"], status["mariadb_pid"],
            status["memcached_pid"]}


def paste(line):
    """As a shell would run it; each answer is a line."""
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True,
                          check=True, timeout=240)
    return [json.loads(answer) for answer in done.stdout.splitlines() if answer]


def test_what_up_prints_works_when_it_is_pasted(the_rig):
    printed, status = the_rig.up()
    assert list(status) == MEMBERS
    assert printed.startswith(status["url"])
    for path in ("/yoyaku-status", "/yoyaku-metrics", "/yoyaku-health"):
        with urllib.request.urlopen(status["url"] + path) as answer:
            assert answer.status == 200
    lines = [line for line in printed.splitlines() if line.startswith("curl")]
    assert len(lines) == 4
    held, = paste(lines[0])
    assert held["state"] == "held" and len(held["lines"]) == 2
    assert {line["tariff"] for line in held["lines"]} == {"standard"}
    looked, = paste(lines[1])
    assert (looked["number"], looked["state"]) == (held["number"], "held")
    confirmed, = paste(lines[2])
    assert (confirmed["number"], confirmed["state"]) == \
        (held["number"], "confirmed")
    second, released = paste(lines[3])
    assert second["number"] == released["number"] != held["number"]
    assert released["state"] == "released"

    slots = json.loads(the_rig.run("ctl", "slot", "list", "--json").stdout)
    assert [(slot["slot"], slot["free"], slot["places"], slot["state"])
            for slot in slots["slots"]] == [("demo", 1009, 1011, "open")]
    again = the_rig.run("up", "--detach", code=1)
    assert status["url"] in again.stderr

    the_rig.run("down")
    assert sessions(pids_of(status)) == []
    the_rig.run("status", "--json", code=1)


def test_more_hosts_another_hall_and_a_configuration_of_ones_own(the_rig,
                                                                 tmp_path):
    conf = tmp_path / "last.conf"
    conf.write_text('<Location "/yoyaku">\n    YoyakuHoldTTL 77s\n'
                    '</Location>\n')
    _, status = the_rig.up("--hosts", "2", "--mpm", "event", "--hall",
                           "generated:2x50", "--conf", str(conf))
    assert len(status["hosts"]) == 2
    answers = []
    for number, url in enumerate(status["hosts"], 1):
        answers += paste(
            "curl -s -w '\\n' -H 'Content-Type: application/json' -d " +
            shlex.quote(json.dumps({"places": [f"1-1-{number}"]})) +
            f" {url}/yoyaku/slots/demo/holds")
    assert [answer["seconds_left"] for answer in answers] == [77, 77]
    the_rig.run("down")
    assert sessions(pids_of(status)) == []


def test_a_port_that_is_taken_is_avoided(the_rig):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _, status = the_rig.up("--port", str(port), "--hall", "generated:1x10")
    assert int(re.search(r":(\d+)$", status["url"]).group(1)) > port


def test_a_port_that_cannot_be_is_refused(the_rig):
    assert "--port" in the_rig.run("up", "--port", "70000", code=1).stderr


@pytest.mark.parametrize("flags", [("--slot", "x"), ("--insecure",)])
def test_a_flag_of_target_alone_is_not_passed_over(the_rig, flags):
    assert "--target" in the_rig.run("rush", *flags, code=1).stderr


@pytest.mark.parametrize("hall", ["nix", "generated:4", "generated:0x5", "/"])
def test_a_hall_that_is_none_is_said_in_one_sentence(the_rig, hall):
    for command in ("up", "rush", "ladder"):
        said = the_rig.run(command, "--hall", hall, code=1).stderr
        assert said.count("\n") == 1 and "there is no such file" in said
        assert hall in said and "generated:SECTIONSxPLACES" in said


def listens():
    """A shell's background jobs are deaf to SIGINT, and so are their children:
    whoever runs the tests, this one shall hear it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def at_terminal(the_rig):
    """`up` as somebody runs it who stays to see it."""
    with subprocess.Popen(the_rig.argv + ["up", "--hall", "generated:1x10"],
                          env=the_rig.env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          preexec_fn=listens) as process:
        yield process
        process.kill()


def databases(build):
    """Who runs on the data of the rig of this build; not what makes it."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if f"--datadir={build}/rig/db/data".encode() in words:
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_stopped_while_he_starts_leaves_nothing(at_terminal, build,
                                                       number):
    until(lambda: databases(build), 120, "the database's first moment")
    at_terminal.send_signal(number)
    _, err = at_terminal.communicate(timeout=240)
    assert at_terminal.returncode in (0, 130), err
    assert databases(build) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_without_detach_it_stays_until_it_is_stopped(the_rig, at_terminal,
                                                     number):
    until(lambda: subprocess.run(
        the_rig.argv + ["status"], env=the_rig.env, check=False,
        capture_output=True).returncode == 0, 120, "the rig")
    status = the_rig.status()
    time.sleep(0.5)  # it is to stay: nothing tells but that it does
    assert at_terminal.poll() is None
    at_terminal.send_signal(number)
    out, err = at_terminal.communicate(timeout=240)
    assert at_terminal.returncode == 0, err
    assert out.startswith(status["url"])
    assert sessions(pids_of(status)) == []


def test_a_rig_whose_keeper_was_killed_is_still_taken_down(the_rig):
    _, status = the_rig.up("--hall", "generated:1x10")
    os.kill(status["httpd_pid"], signal.SIGKILL)
    the_rig.run("down")
    assert sessions(pids_of(status)) == []
