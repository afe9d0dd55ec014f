# SPDX-License-Identifier: Apache-2.0
"""conf.d/yoyaku-reference.conf says what the built module does."""
import os
import pathlib
import re
import subprocess

import pytest

from servers import Httpd
from servers.database import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANUAL = ROOT / "conf.d" / "yoyaku-reference.conf"
FIELDS = ["Syntax", "Default", "Range", "Context", "Watch"]
ANYWHERE = "server config, virtual host, directory"


def entries():
    """{name: {"title", "Syntax", ..., "text", "line"}} as the manual has it."""
    found, name = {}, None
    for line in MANUAL.read_text().splitlines():
        head = re.match(r"# (Yoyaku\w+) -- (.+)$", line)
        field = re.match(r"#   (\w+): +(.+)$", line)
        if head:
            name = head.group(1)
            assert name not in found, f"{name} stands twice"
            found[name] = {"title": head.group(2), "text": ""}
        elif name and field and field.group(1) in FIELDS:
            found[name][field.group(1)] = field.group(2)
        elif name and line.startswith("#   "):
            found[name]["text"] += line[4:] + " "
        elif name and line.startswith("#Yoyaku"):
            found[name]["line"], name = line[1:], None
    return found


MANUAL_ENTRIES = entries()
DURATION = re.compile(r"^(\d+)(ms|s|min|h)$")
UNITS = {"ms": 1, "s": 1000, "min": 60000, "h": 3600000}


def milliseconds(text):
    number, unit = DURATION.match(text).groups()
    return int(number) * UNITS[unit]


@pytest.fixture(scope="module")
def configuration(folder, build, mpm):
    """A function that says what `httpd` makes of a text: (0 or not, words)."""
    place = os.path.join(folder, "manual")
    os.makedirs(place, exist_ok=True)

    def run(conf, *options):
        server = Httpd(place, build, conf, mpm)
        server.write()
        done = subprocess.run(
            [program("apache2", "httpd"), *options, "-f", server.config_file],
            capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def listed(configuration):
    """{name: (help, where)} as `httpd -L` prints our directives."""
    code, said = configuration("", "-L")
    assert code == 0, said
    return {name: (text, where) for name, text, where in re.findall(
        r"^(\w+) \(mod_yoyaku\.c\)\n\t(.*)\n\tAllowed in (.*)$", said, re.M)}


def test_the_manual_and_the_module_name_the_same_directives(listed):
    assert listed
    assert set(MANUAL_ENTRIES) == set(listed)


@pytest.mark.parametrize("name", MANUAL_ENTRIES)
def test_an_entry_has_every_field_and_a_text(name):
    entry = MANUAL_ENTRIES[name]
    assert [field for field in FIELDS if field not in entry] == []
    assert len(entry["text"].split()) >= 10
    assert entry["line"] == entry["Default"]
    assert entry["Syntax"].startswith(name + " ")


@pytest.mark.parametrize("name", MANUAL_ENTRIES)
def test_an_entry_says_where_a_directive_may_stand(name, listed):
    in_directories = listed[name][1] == "*.conf anywhere"
    assert ("directory" in MANUAL_ENTRIES[name]["Context"]) == in_directories
    if in_directories:
        assert MANUAL_ENTRIES[name]["Context"] == ANYWHERE


@pytest.mark.parametrize("name", MANUAL_ENTRIES)
def test_a_directive_stands_where_the_manual_says_and_nowhere_else(
        name, configuration):
    context = MANUAL_ENTRIES[name]["Context"]
    line = MANUAL_ENTRIES[name]["Default"]
    places = {
        "server config": line,
        "virtual host": f"<VirtualHost *:1>\n{line}\n</VirtualHost>",
        "directory": f'<Location "/y">\n{line}\n</Location>',
    }
    for place, text in places.items():
        code, said = configuration(text, "-t")
        assert (code == 0) == (place in context), f"{place}: {said}"


def test_the_manual_can_be_included_as_it_is(configuration):
    code, said = configuration(f'Include "{MANUAL}"', "-t")
    assert code == 0, said


def bounds():
    for name, entry in MANUAL_ENTRIES.items():
        found = re.match(r"(?:on, off, )?(\S+) \.\. (\S+)$", entry["Range"])
        if found:
            yield name, found.group(1), found.group(2)


def beside(least, most):
    """What lies just outside of a range, written as the directive wants it."""
    if DURATION.match(least):
        return [f"{milliseconds(least) - 1}ms", f"{milliseconds(most) + 1}ms",
                "0", "-1", "x", "99999999999999999999h"]
    return [str(int(least) - 1), str(int(most) + 1), "-1", "x", "1x",
            "99999999999999999999"]


@pytest.mark.parametrize("name, least, most", bounds())
def test_a_range_is_the_range(name, least, most, configuration):
    for value in (least, most):
        code, said = configuration(f"{name} {value}", "-t")
        assert code == 0, f"{name} {value}: {said}"
    for value in beside(least, most):
        code, said = configuration(f"{name} {value}", "-t")
        assert code != 0, f"{name} {value} was taken"
        assert name in said and f"'{value}'" in said and \
            least in said and most in said and "for example" in said, said


@pytest.mark.parametrize("line", [
    "YoyakuTenant a/b", "YoyakuTenant " + "x" * 65,
    'YoyakuBooker "%{REMOTE_USER"', "YoyakuConfirm maybe",
    "YoyakuAllowOrigin *", "YoyakuAllowOrigin https://Example.org",
    "YoyakuAllowOrigin https://example.org/", "YoyakuAllowOrigin example.org",
    "YoyakuLane some", "YoyakuLane +2", "YoyakuConnections +5",
    "YoyakuWaitingRoom sale active=5 active=6",
    "YoyakuThrottle shop limit=5 LIMIT=6", "YoyakuWaitingRoom off active=5", "YoyakuThrottle off limit=5",
    "YoyakuCheckoutURL javascript:alert(1)", "YoyakuCheckoutURL //else.where",
    'YoyakuCheckoutURL "https://a b"'])
def test_what_cannot_be_meant_is_refused_with_an_example(line, configuration):
    code, said = configuration(line, "-t")
    assert code != 0, f"{line} was taken"
    assert f"for example: {line.split()[0]}" in said, said


@pytest.mark.parametrize("name, value, most", [
    # cut to 64 or 32 bits these would lie inside
    ("YoyakuRecycleAbove", "17592186044417G", "1024G"),
    ("YoyakuRecycleAbove", "99999999999999999999K", "1024G"),
    ("YoyakuRecycleAbove", "1025G", "1024G"),
    ("YoyakuRecycleAbove", "1023K", "1M"),
    ("YoyakuMemory", "17179869185G", "16G"),
    ("YoyakuMemory", "17G", "16G"),
    ("YoyakuStatusHistory", "4294967303d", "28d"),
    ("YoyakuStatusHistory", "29d", "28d")])
def test_what_is_too_large_is_refused_with_its_range(name, value, most,
                                                     configuration):
    code, said = configuration(f"{name} {value}", "-t")
    assert code != 0, f"{name} {value} was taken"
    assert f"{name}: '{value}'" in said and most in said, said


@pytest.mark.parametrize("conf", [
    "DBDriver sqlite3\n{desk}",
    "<VirtualHost *:1>\nDBDriver sqlite3\n{desk}\n</VirtualHost>",
    "DBDriver sqlite3\n<VirtualHost *:1>\n{desk}\n</VirtualHost>",
    "DBDriver mysql\n{desk}\n<VirtualHost *:1>\nDBDriver sqlite3\n"
    "</VirtualHost>"])
def test_a_driver_that_cannot_take_bookings_is_refused(conf, configuration):
    desk = '<Location "/y">\nSetHandler yoyaku\n</Location>'
    code, said = configuration(conf.format(desk=desk), "-t")
    assert code != 0
    assert "YK0401" in said and "DBDriver mysql" in said, said


def test_a_driver_of_somebody_else_is_nobodys_business(configuration):
    desk = '<Location "/y">\nSetHandler yoyaku\n</Location>'
    code, said = configuration(
        "DBDriver sqlite3\n<VirtualHost *:1>\nDBDriver mysql\n"
        f"{desk}\n</VirtualHost>", "-t")
    assert code == 0, said


def test_a_pool_of_one_line_is_refused(configuration):
    desk = '<Location "/y">\nSetHandler yoyaku\n</Location>'
    code, said = configuration(f"DBDriver mysql\nDBDMax 1\n{desk}", "-t")
    assert code != 0 and "YK0402" in said
