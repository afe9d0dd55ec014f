# SPDX-License-Identifier: Apache-2.0
"""A whole house: database, hosts, memcached if asked for, and its tool."""
import contextlib
import itertools
import json
import os
import subprocess
import time

import pymysql

from servers import Database, Memcached, until

from . import book
from .host import Host

CURRENCY = "EUR"


# the row that counts a pool of a slot
POOL_ROW = ("SELECT used FROM yoyaku_lock_anchor WHERE kind = 2 AND owner = "
            "(SELECT slot_id FROM yoyaku_slot WHERE slot_key = %s) FOR UPDATE")


def hall_csv(sections, grade="A"):
    """{"Stalls": (rows, seats)} as a drawing; guids "Stalls-1-1"."""
    lines = ["section,row,place,x,y,grade,guid"]
    y = 0
    for name, (rows, seats) in sections.items():
        for row in range(1, rows + 1):
            y += 10
            lines += [f"{name},{row},{seat},{seat * 10},{y},{grade},"
                      f"{name}-{row}-{seat}" for seat in range(1, seats + 1)]
        y += 50
    return "\n".join(lines) + "\n"


class Rig:
    """
    folder   everything lies there; made when missing
    build    mod_yoyaku.so and yoyakuctl
    database an existing Database (then `name` says which schema of it), or
             None: one of our own, with `options` and `env`
    clock    True: advance() works
    """

    def __init__(self, folder, build, mpm="prefork", database=None,
                 name="yoyaku", options=None, env=None, clock=True):
        self.folder, self.build = os.path.abspath(folder), build
        self.mpm, self.name = mpm, name
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o755)
        self.owns_database = database is None
        self.database = database or Database(
            os.path.join(self.folder, "db"), options, clock, env=env,
            name=name, sockets=os.environ.get("YK_SOCKETS"))
        self.hosts, self.cache = [], None
        self.numbers, self.host_numbers = itertools.count(1), itertools.count()
        self.slots, self.halls = [], {}
        self.books = True

    # ---- life ----

    def start(self, hosts=1, **host):
        """Database, schema, so many hosts alike (see Host)."""
        if self.owns_database:
            self.database.start()
        self.database.create(self.name)
        self.ctl("schema")
        for _ in range(hosts):
            self.add_host(**host)
        return self

    def add_host(self, params=None, **host):
        """One more web host on this database, with directives of its own."""
        folder = os.path.join(self.folder, f"host{next(self.host_numbers)}")
        made = Host(folder, self.build, params or self.params(), self.mpm,
                    **host)
        self.hosts.append(made)
        return made.start()

    def add_memcached(self):
        self.cache = Memcached(os.path.join(self.folder, "memcached")).start()
        return self.cache

    def stop(self):
        for host in self.hosts:
            host.stop()
        if self.cache:
            self.cache.stop()
        if self.owns_database:
            self.database.stop()

    @property
    def host(self):
        return self.hosts[0]

    @property
    def url(self):
        return self.host.url

    def params(self, port=None):
        return self.database.params(self.name, port)

    # ---- the operator ----

    def ctl(self, *args, check=True, stdin=None):
        """yoyakuctl against this database. Returns the finished process."""
        done = subprocess.run(
            [os.path.join(self.build, "yoyakuctl"), *map(str, args)],
            env={**os.environ, "YOYAKU_DB": self.params()}, text=True,
            input=stdin, capture_output=True, check=False, timeout=300)
        if check and done.returncode != 0:
            raise AssertionError(f"yoyakuctl {' '.join(map(str, args))}: "
                                 f"{done.returncode}\n{done.stdout[-2000:]}"
                                 f"{done.stderr}")
        return done

    def ctl_json(self, *args):
        return json.loads(self.ctl(*args, "--json").stdout)

    def hall(self, sections=None, csv=None, name=None):
        """A hall by its sections {"Stalls": (rows, seats)}; known ones are
        not imported again. Returns its name."""
        text = csv or hall_csv(sections)
        if text not in self.halls:
            name = name or f"hall-{next(self.numbers)}-{os.getpid()}"
            path = os.path.join(self.folder, f"{name}.csv")
            with open(path, "w") as file:
                file.write(text)
            self.ctl("hall", "import", path, "--name", name)
            self.halls[text] = name
        return self.halls[text]

    def slot(self, sections=None, hall=None, areas=None, pools=None,
             prices=None, key=None, opened=True, starts="2039-01-01T20:00Z",
             **more):
        """A slot of its own, open unless told otherwise. Returns its key.

        sections  {"Stalls": (rows, seats)}, or `hall`: a name
        areas     {"Stalls": "assigned"} (placed when not named)
        pools     {"Floor": 100}
        prices    {"adult": "20.00"} for everything; None: free of charge
        more      flags of `slot add`: opens=, closes=, resource=, series=
        """
        key = key or f"s{next(self.numbers)}-{os.getpid()}"
        if sections:
            hall = self.hall(sections)
        args = ["slot", "add", "--key", key, "--title", key, "--starts", starts]
        if hall:
            args += ["--hall", hall]
        for name, mode in (areas or {}).items():
            args += ["--area", f"{name}={mode}"]
        for name, count in (pools or {}).items():
            args += ["--pool", f"{name}={count}"]
        for flag, value in more.items():
            args += [f"--{flag}", value]
        self.ctl(*args)
        for tariff, amount in (prices or {}).items():
            self.price(key, tariff, amount)
        if opened:
            self.ctl("slot", "open", key)
        self.slots.append(key)
        return key

    def price(self, slot, tariff, amount, grade=None, area=None, quota=None,
              currency=CURRENCY):
        args = ["price", "set", "--slot", slot, "--tariff", tariff]
        for flag, value in (("--grade", grade), ("--area", area),
                            ("--quota", quota)):
            if value is not None:
                args += [flag, str(value)]
        return self.ctl(*args, amount, currency)

    def limit(self, per, over, count, most):
        return self.ctl("limit", "add", "--per", per, "--over", over,
                        "--count", count, "--max", most)

    # ---- the people ----

    def booker(self, name="", cookies=False, host=0):
        return self.hosts[host].booker(name, cookies)

    def shop(self, user="shop", host=0):
        return self.hosts[host].shop(user)

    def hold(self, slot=None, places=None, name="", host=0, **more):
        """A booker nobody knows yet holds; returns (booker, response)."""
        booker = self.booker(name, host=host)
        return booker, booker.hold(slot, places, **more)

    def takes_over(self, slot, place):
        """Somebody else holds it after a jump of the clock: a board on which
        it was held has not heard of that yet, for half a second at most."""
        def taken():
            answer = self.hold(slot, [place])[1]
            assert answer.status_code in (201, 409), answer.text
            return answer.status_code == 201
        until(taken, 2, f"{place} of {slot}")

    def availability(self, slot, host=0):
        return self.hosts[host].get(f"/yoyaku/slots/{slot}/availability")

    # ---- the truth ----

    def connect(self, **more):
        """A line to the database of the test's own, as root."""
        return pymysql.connect(unix_socket=self.database.socket, user="root",
                               database=self.name, charset="utf8mb4",
                               init_command="SET time_zone = '+00:00'",
                               **{"autocommit": True, **more})

    def rows(self, sql, args=()):
        """One look without locks; a list of dictionaries."""
        line = self.connect()
        try:
            with line.cursor(pymysql.cursors.DictCursor) as cursor:
                cursor.execute(sql, args)
                return list(cursor.fetchall())
        finally:
            line.close()

    def value(self, sql, args=()):
        rows = self.rows(sql, args)
        return next(iter(rows[0].values())) if rows else None

    @contextlib.contextmanager
    def locked(self, select, args=()):
        """Somebody else's transaction has one row, FOR UPDATE, and nothing
        beside it, as no gap is locked; his line."""
        line = self.connect(autocommit=False)
        try:
            with line.cursor() as cursor:
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL "
                               "READ COMMITTED")
                cursor.execute(select, args)
                assert cursor.rowcount == 1
            yield line
        finally:
            line.close()

    @contextlib.contextmanager
    def one_test(self):
        """What every test of a shared rig leaves: no line in a log that was
        not announced, and a book that agrees."""
        self.slots = []
        yield self
        wrong = self.complaints()
        assert not wrong, wrong
        self.verify_book(self.slots)

    def advance(self, seconds):
        """So much time passes for the database alone."""
        self.database.advance(seconds)

    def now_us(self):
        """The database's clock."""
        return int(self.value("SELECT CAST(1000000 * UNIX_TIMESTAMP("
                              "SYSDATE(6)) AS SIGNED)"))

    def verify_book(self, slots=None):
        """Places, orders, lines, anchors and journal agree, else it raises."""
        wrong = book.faults(self, slots)
        assert not wrong, "the book does not agree:\n  " + "\n  ".join(
            wrong[:20]) + (f"\n  and {len(wrong) - 20} more"
                           if len(wrong) > 20 else "")

    def until(self, condition, deadline=15, what="a condition"):
        return until(condition, deadline, what)

    def announce(self, *patterns):
        for host in self.hosts:
            host.announce(*patterns)

    def complaints(self):
        return [line for host in self.hosts for line in host.complaints()]

    def after(self, seconds):
        """RFC 3339 of so many seconds from now, for --opens and --closes: by
        the database's clock, which advance() put off for all later tests."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ",
                             time.gmtime(self.now_us() / 1e6 + seconds))
