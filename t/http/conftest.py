# SPDX-License-Identifier: Apache-2.0
"""Servers for the tests over HTTP: started once a run, slots made for each test.

  --mpm prefork|event   which httpd (YK_MPM)
  --build DIR           where the module was built (YK_BUILD)
  --db-options A=1,B=2  options of mariadbd for the whole run (YK_DB_OPTIONS)
  --lanes on|off        YoyakuLane of every host that does not say it itself

A test asks for `rig` and makes itself a slot. After it the log of every host
must hold nothing that was not announced, and the book must agree.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "loadtest"), str(ROOT / "t" / "http")]

from crowd import House  # noqa: E402
from servers import Database  # noqa: E402
from yk import Host, Rig, Wire  # noqa: E402

HOUSES = []  # the run's rig, once it stands


def pytest_addoption(parser):
    group = parser.getgroup("yoyaku")
    group.addoption("--mpm", default=os.environ.get("YK_MPM", "prefork"),
                    choices=["prefork", "event", "worker"])
    group.addoption("--build", default=os.environ.get(
        "YK_BUILD", str(ROOT / "build")))
    group.addoption("--db-options",
                    default=os.environ.get("YK_DB_OPTIONS", ""))
    group.addoption("--lanes", default="on", choices=["on", "off"])


def pytest_configure(config):
    Host.lanes = config.getoption("--lanes")
    House.in_test = True
    config.addinivalue_line("markers",
                            "own: the test starts servers of its own")
    config.addinivalue_line("markers", "prefork: says nothing about event")
    config.addinivalue_line("markers", "threads: says nothing about prefork")
    build = pathlib.Path(config.getoption("--build"))
    for name in ("mod_yoyaku.so", "yoyakuctl"):
        if not (build / name).exists():
            raise pytest.UsageError(f"{build}/{name} is missing: build first, "
                                    "or say where with --build")


def pytest_collection_modifyitems(config, items):
    other = "threads" if config.getoption("--mpm") == "prefork" else "prefork"
    gone = [item for item in items if item.get_closest_marker(other)]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]


def _options(request):
    pairs = [pair for pair in request.config.getoption("--db-options").split(",")
             if pair]
    return dict(pair.split("=", 1) for pair in pairs)


@pytest.fixture(scope="session")
def mpm(request):
    return request.config.getoption("--mpm")


@pytest.fixture(scope="session")
def build(request):
    return os.path.abspath(request.config.getoption("--build"))


@pytest.fixture(scope="session")
def folder(build, mpm):
    """Where this run's servers live; what an earlier run left is dropped."""
    path = os.path.join(build, "t", f"{mpm}-{os.getpid()}")
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    Database.templates = path
    yield path
    if not os.environ.get("YK_KEEP"):
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def clock(folder):
    """A library that puts a process's date off: by YK_CLOCK_OFF seconds, or by
    what stands in the file YK_CLOCK_FILE."""
    made = os.path.join(folder, "clock.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made,
                    str(ROOT / "t" / "http" / "yk" / "clock.c"), "-ldl"],
                   check=True)
    return made


@pytest.fixture(scope="session")
def database(request, folder):
    """The run's database server; `rig` and `office` have a schema each on it."""
    made = Database(os.path.join(folder, "db"), _options(request), clock=True,
                    sockets=os.environ.get("YK_SOCKETS"))
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="session")
def _house(database, folder, build, mpm):
    made = Rig(os.path.join(folder, "main"), build, mpm, database)
    try:
        made.start()
        HOUSES.append(made)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def office(database, folder, build, mpm):
    """A schema without web hosts, for what operators do."""
    return Rig(os.path.join(folder, "office"), build, mpm, database,
               "yoyaku_office").start(hosts=0)


@pytest.fixture
def rig(_house):
    """The run's rig; what this test makes on it is examined after it."""
    yield from _examined(_house)


def _examined(made):
    made.slots, made.books = [], True
    made.complaints()
    yield made
    wrong = made.complaints()
    assert not wrong, "the server complained:\n" + "\n".join(wrong[:20])
    if made.books and made.slots:
        made.verify_book(made.slots)


@pytest.fixture(scope="module", autouse=True)
def _announcements_end():
    """What a module announced is bad again in the next one."""
    yield
    for made in HOUSES:
        for host in made.hosts:
            host.announced.clear()


@pytest.fixture
def own_rig(request, folder, build, mpm):
    """A function that starts a rig of the test's own: own_rig(options={...},
    hosts=2, location="YoyakuHoldTTL 30s"). All of it is examined and stopped."""
    made = []

    def make(options=None, env=None, clock=True, hosts=1, database=None,
             **host):
        name = f"own{os.getpid()}-{len(os.listdir(folder))}"
        rig_made = Rig(os.path.join(folder, name), build, mpm,
                       database=database, env=env, clock=clock,
                       options={**_options(request), **(options or {})})
        made.append(rig_made)
        return rig_made.start(hosts, **host)

    yield make
    wrong = []
    try:
        for one in made:
            wrong += one.complaints()
            if one.books and one.slots:
                one.verify_book(one.slots)
    finally:
        for one in made:
            one.stop()
    assert not wrong, "the server complained:\n" + "\n".join(wrong[:20])


@pytest.fixture
def wire(rig):
    """A wire to the run's database (see yk/wire.py)."""
    with Wire(rig.database.port) as made:
        yield made
