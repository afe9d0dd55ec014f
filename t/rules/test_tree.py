# SPDX-License-Identifier: Apache-2.0
"""What DESIGN and STYLE ask of the sources as text, and what a test can see."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("YK_BUILD", ROOT / "build"))
CODE = ("include", "mod_yoyaku", "t", "loadtest", "conf.d", ".ci")

HTTPD = re.compile(r"^(httpd|http_\w+|ap_\w+|util_\w+|mod_\w+|scoreboard|"
                   r"mpm_common|unixd|heartbeat)\.h$")
MYSQL = re.compile(r"(^|/)(mysql|mariadb|mysqld_error|errmsg)\w*\.h$|^mysql/")
MEMCACHED = re.compile(r"^libmemcached|^libhashkit")


def files(*folders, ends=(".c", ".h")):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.name.endswith(ends) and \
                    "__pycache__" not in path.parts:
                yield path


def name(path):
    return str(path.relative_to(ROOT))


def includes(path):
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(),
                      re.M)


def outside(folder):
    return [path for path in files("include", "mod_yoyaku")
            if folder not in name(path)]


@pytest.mark.parametrize("folder, pattern", [
    ("mod_yoyaku/http/", HTTPD), ("mod_yoyaku/store/", MYSQL),
    ("mod_yoyaku/cache/", MEMCACHED)])
def test_only_its_own_folder_knows_a_foreign_interface(folder, pattern):
    wrong = [(name(path), header) for path in outside(folder)
             for header in includes(path) if pattern.search(header)]
    assert wrong == []


def flags():
    done = subprocess.run(
        ["pkg-config", "--cflags", "apr-1", "apr-util-1", "jansson",
         "libmariadb"], capture_output=True, text=True, check=False)
    httpd = subprocess.run(["apxs", "-q", "INCLUDEDIR"], capture_output=True,
                           text=True, check=True).stdout.strip()
    return [*done.stdout.split(), f"-I{ROOT}/include", "-isystem", httpd]


@pytest.mark.parametrize("header", [name(path) for path in
                                    files("include", "mod_yoyaku",
                                          ends=(".h",))])
def test_a_header_compiles_alone(header, tmp_path):
    source = tmp_path / "alone.c"
    source.write_text(f'#include "{ROOT / header}"\nint alone;\n')
    done = subprocess.run(
        ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror",
         "-Wno-unused-parameter", "-fsyntax-only", *flags(), str(source)],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_header_of_the_interface_knows_neither_httpd_nor_databases():
    wrong = [(name(path), header) for path in files("include")
             for header in includes(path)
             if HTTPD.search(header) or MYSQL.search(header)
             or MEMCACHED.search(header)]
    assert wrong == []


def test_a_check_binary_includes_no_source():
    wrong = [name(path) for path in files("t")
             if any(header.endswith(".c") for header in includes(path))]
    assert wrong == []


def test_every_source_begins_with_its_licence():
    ends = (".c", ".h", ".py", ".sql", ".js", ".css", ".conf")
    wrong = [name(path) for path in files(*CODE, ends=ends)
             if "SPDX-License-Identifier: Apache-2.0" not in
             "\n".join(path.read_text(errors="replace").splitlines()[:3])]
    assert wrong == []


PATHS = re.compile(r"/(work|home|root|Users)/\w")
LEFT = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")


@pytest.mark.parametrize("pattern", [PATHS, LEFT], ids=["paths", "notes"])
def test_nothing_of_a_workshop_is_left_in_the_sources(pattern):
    wrong = []
    ends = (".c", ".h", ".py", ".sql", ".js", ".css", ".conf", ".html", "run",
            "rig", "README", "CMakeLists.txt", "packages")
    top = [ROOT / "CMakeLists.txt", ROOT / "README"]
    for path in [*files(*CODE, ends=ends), *top]:
        if path == pathlib.Path(__file__).resolve():
            continue
        for number, line in enumerate(
                path.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                wrong.append(f"{name(path)}:{number}: {line.strip()}")
    assert wrong == []


def test_a_log_number_stands_at_one_place():
    seen = {}
    for path in files("mod_yoyaku", ends=(".c",)):
        for number in re.findall(r'"[^"\n]*?(YK\d{4}):', path.read_text()):
            seen.setdefault(number, []).append(name(path))
    assert {number: where for number, where in seen.items()
            if len(where) > 1} == {}


def test_waits_are_measured_by_a_clock_that_nobody_sets():
    """Who sets the clock back must not make anybody wait longer: the desk, its
    lines and the store ask for the steady one (yk_state_now). The relay's note
    to other hosts is about the other."""
    wrong = [name(path) for folder in ("core", "store", "http")
             for path in files(f"mod_yoyaku/{folder}", ends=(".c",))
             if "apr_time_now" in path.read_text()
             and path.name != "board_relay.c"
             and (folder != "http" or path.name.startswith("desk_"))]
    assert wrong == []


def test_a_file_can_be_read_in_one_sitting():
    wrong = {name(path): len(path.read_text().splitlines())
             for path in files("include", "mod_yoyaku")
             if len(path.read_text().splitlines()) > 660}
    assert wrong == {}


def test_the_module_exports_only_itself():
    done = subprocess.run(["nm", "-D", "--defined-only",
                           str(BUILD / "mod_yoyaku.so")], capture_output=True,
                          text=True, check=True)
    symbols = {line.split()[-1] for line in done.stdout.splitlines()}
    assert symbols - {"_init", "_fini", "_edata", "_end", "__bss_start"} == \
        {"yoyaku_module"}


def test_the_library_asks_nothing_of_httpd():
    done = subprocess.run(["nm", "-u", str(BUILD / "libyoyaku.a")],
                          capture_output=True, text=True, check=True)
    asked = {line.split()[-1] for line in done.stdout.splitlines()
             if " ap_" in line or " unixd_" in line}
    assert asked == set()


def test_readme_names_the_two_commands():
    text = (ROOT / "README").read_text()
    assert "./loadtest/rig up" in text and "./t/run" in text


def test_readme_fits_a_terminal():
    lines = (ROOT / "README").read_text().splitlines()
    assert [line for line in lines if len(line) > 80] == []
