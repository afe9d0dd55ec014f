# SPDX-License-Identifier: Apache-2.0
"""A book with years behind it: orders of performances that are long over.

Made once, in a few minutes, and kept under build/old/; whoever measures with
it starts his database from a copy. Numbers and tokens ascend with time, as the
module makes them, what follows a token's second is random; bookers are as
random as real ones.
"""
import concurrent.futures
import hashlib
import os
import shutil
import subprocess
import tempfile

from servers import Database, ServerError

from .stand import BUILD, ROOT

# All of it may be in memory when the server is told to end.
FLUSH_SECONDS = 300
# Loading needs no crash safety: a template half made is thrown away.
OPTIONS = {"innodb_buffer_pool_size": "1G", "innodb_log_file_size": "512M",
           "innodb_flush_log_at_trx_commit": "0", "innodb_doublewrite": "OFF",
           "innodb_sort_buffer_size": "64M"}

# One statement a table, into an empty one: the server then sorts each index
# once instead of looking for the place of every row.
BULK = "SET unique_checks = 0; SET foreign_key_checks = 0;\n"
SEQUENCE = """FROM (SELECT seq, ms, (ms << 22) | (seq * 2654435761 & 4194303)
 AS id, seq % 10 < 8 AS sold FROM (SELECT seq, 1500000000000 + seq * 20000 AS ms
 FROM seq_1_to_{rows}) AS a) AS b;
"""
TABLES = (BULK + """
INSERT INTO yoyaku_order (order_id, tenant_id, state, version, until_us,
 begun_us, max_until_us, checkout_end_us, confirmed_us, attempt, late,
 next_line, pass, token_hash, booker_hash, currency, booker, reference,
 contact, payment, data)
SELECT id, 1, IF(sold, 3, 4 + seq % 2), 3, ms * 1000 + 600000000, ms * 1000,
 ms * 1000 + 1800000000, 0, IF(sold, ms * 1000 + 300000000, 0), 1, 0, 2, 0,
 UNHEX(CONCAT(HEX(ms DIV 1000), SUBSTR(SHA2(seq, 256), 9))),
 UNHEX(MD5(seq DIV 3)), 'EUR', CONCAT('u', seq DIV 3),
 '', CONCAT('u', seq DIV 3, '@example.org'), CONCAT('p-', seq), ''
""" + SEQUENCE, BULK + """
INSERT INTO yoyaku_booking (order_id, line, tenant_id, booker_hash, live,
 slot_id, area_no, place_no, quantity, price_no, amount, currency, tariff,
 holder)
SELECT id, 1, 1, UNHEX(MD5(seq DIV 3)), sold, 1 + seq DIV 1000, 0, seq % 1000,
 1, 1, 4500, 'EUR', 'standard', ''
""" + SEQUENCE)


class Years:
    """The template: `data` to copy, and how many bytes its tables have."""

    def __init__(self, rows, build=BUILD):
        self.rows, self.build = rows, build
        schema = sorted((ROOT / "mod_yoyaku" / "schema").glob("*.sql"))
        text = "".join(TABLES) + "".join(path.read_text() for path in schema)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.folder = build / "old" / f"{rows}-{digest}"
        self.data = str(self.folder / "data")
        self._note = self.folder / "bytes"

    def made(self):
        """Itself, once it is there."""
        if not self._note.exists():
            making = self.folder.with_name(f"{self.folder.name}.{os.getpid()}")
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.rmtree(making, ignore_errors=True)
            try:
                with tempfile.TemporaryDirectory(prefix="yoyaku-") as sockets:
                    size = self._load(Database(making, OPTIONS,
                                               sockets=sockets))
                shutil.rmtree(making.with_name("db-template"),
                              ignore_errors=True)
                self.folder.mkdir(parents=True)
                os.rename(making / "data", self.data)
                self._note.write_text(f"{size}\n")
            finally:
                shutil.rmtree(making, ignore_errors=True)
        return self

    @property
    def bytes(self):
        return int(self._note.read_text())

    def _load(self, database):
        try:
            database.start()
            done = subprocess.run(
                [os.path.join(self.build, "yoyakuctl"), "schema"], check=False,
                env={**os.environ, "YOYAKU_DB": database.params()},
                capture_output=True, text=True)
            if done.returncode != 0:
                raise ServerError(f"yoyakuctl schema: {done.stderr}")
            with concurrent.futures.ThreadPoolExecutor(len(TABLES)) as pool:
                list(pool.map(lambda text: database.sql(
                    text.format(rows=self.rows), database.name), TABLES))
            database.sql("ANALYZE TABLE yoyaku_order, yoyaku_booking",
                         database.name)
            rows = database.sql(
                "SELECT SUM(data_length + index_length) FROM "
                "information_schema.tables WHERE table_schema = "
                f"'{database.name}'")
            # a server killed while it writes leaves no book to copy
            if database.process.stop(deadline=FLUSH_SECONDS) != 0:
                raise ServerError(f"mariadbd did not end well: {database.log}")
            return int(rows[0])
        finally:
            database.stop()
