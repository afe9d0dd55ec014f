# SPDX-License-Identifier: Apache-2.0
"""What we compare with. An arm is a folder of loadtest/arms with arm.json:

  about     one sentence
  like      another arm whose description this one changes
  actions   {"hold": "METHOD PATH [BODY]"}: what a click looks like there;
            "hold-area" is the same of a booker who asks for a count in an area
  conf      its part of httpd's configuration, with @WORDS@ filled in
  module    a module built from the folder's mod_*.c
  schema    SQL, once a database
  slots     how a fresh slot is made: "yoyaku", "snapshot" (and its file is
            waited for), "memcached" (and its board is put there), "none", or
            a file of SQL
  proof     a counter read before and after: {"sql"|"http"|"log": ..,
            "counts": "orders" | "answers"}; the difference must be what the
            driver saw. "log" counts httpd's own rows of paths that begin so
"""
import json
import pathlib
import urllib.request

from servers import ServerError

ARMS = pathlib.Path(__file__).resolve().parents[1] / "arms"


def names():
    return sorted(path.parent.name for path in ARMS.glob("*/arm.json"))


class Arm:
    def __init__(self, name):
        if name not in names():
            raise ServerError(f'there is no arm "{name}"; known are '
                              + " ".join(names()))
        self.name, self.folder = name, ARMS / name
        self.is_ = json.loads((self.folder / "arm.json").read_text())
        if "like" in self.is_:
            base = Arm(self.is_["like"])
            self.folder = base.folder
            self.is_ = {**base.is_, **self.is_}
        self.packages = self.is_.get("packages", [])
        # arms that are alike but for a setting live side by side
        self.suffix = "" if "like" not in self.is_ else "-" + self.is_["tag"]

    @property
    def book(self):
        """Whose book it writes: "yoyaku", "slotrow", or None: nobody's."""
        if self.is_["slots"] in ("yoyaku", "snapshot", "memcached"):
            return "yoyaku"
        return "slotrow" if "schema" in self.is_ else None

    def text(self):
        """Its clicks for the driver's script."""
        return "\n".join(f"action {name} {self._path(click)}"
                         for name, click in self.is_["actions"].items())

    def _path(self, click):
        return click.replace("/slotrow/", f"/slotrow{self.suffix}/")

    def conf(self, words):
        if "conf" not in self.is_:
            return ""
        text = (self.folder / self.is_["conf"]).read_text()
        words = {**words, "ARM": str(self.folder),
                 "TAG": self.is_.get("tag", "none"), "SUFFIX": self.suffix}
        for word, value in words.items():
            text = text.replace(f"@{word}@", str(value))
        return text

    def prepare(self, stand):
        """Once, when the servers are up."""
        if "schema" in self.is_:
            stand.database.sql((self.folder / self.is_["schema"]).read_text(),
                               stand.database.name)
            stand.fill_slotrow_hall()

    def fresh_slot(self, stand, key):
        how = self.is_["slots"]
        if how in ("yoyaku", "snapshot", "memcached"):
            stand.slot(key)
        if how == "snapshot":
            stand.await_snapshot(key)
        elif how == "memcached":
            stand.memcached.set(f"board:{key}", stand.board(key))
        elif how not in ("yoyaku", "none"):
            text = (self.folder / how).read_text().replace("@SLOT@", key)
            stand.database.sql(text, stand.database.name)

    def counter(self, stand):
        proof = self.is_["proof"]
        if "sql" in proof:
            return int(stand.database.sql(proof["sql"],
                                          stand.database.name)[0])
        if "log" in proof:
            return sum(len(row) > 3 and row[3].startswith(proof["log"])
                       for row in stand.log_rows())
        with urllib.request.urlopen(stand.url + proof["http"],
                                    timeout=30) as answer:
            return int(answer.read())

    def proves(self, before, after, result):
        """A sentence when the counter did not see what the driver did."""
        moved = after - before
        if self.is_["proof"]["counts"] == "answers":
            wanted = result.answers
        else:
            wanted = result.orders_begun
        # what was sent and never answered may or may not have counted; a look
        # at the counter over HTTP is not counted by it
        spare = result["unknown"] + sum(result.failures.values())
        if wanted <= moved <= wanted + spare and (wanted > 0 or
                                                  moved == 0):
            return None
        return (f"the arm's counter moved by {moved}, the driver saw {wanted}"
                + (f" and lost {spare}" if spare else ""))
