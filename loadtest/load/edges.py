# SPDX-License-Identifier: Apache-2.0
"""Who waits for whom in the database: lock wait edges by table and index, and
what the one who blocks is doing and since when.
"""
import collections
import re

# requester, blocker, table, index, the blocker's state, whether it runs no
# statement, its age, how long the requester has waited; microseconds
MARIADB = """
SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, l.lock_table,
       COALESCE(l.lock_index, ''), b.trx_state, b.trx_query IS NULL,
       TIMESTAMPDIFF(MICROSECOND, b.trx_started, SYSDATE(6)),
       TIMESTAMPDIFF(MICROSECOND, r.trx_wait_started, SYSDATE(6))
FROM information_schema.INNODB_LOCK_WAITS w
JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id
JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id
JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id
"""
MYSQL = """
SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id,
       CONCAT(l.OBJECT_SCHEMA, '.', l.OBJECT_NAME), COALESCE(l.INDEX_NAME, ''),
       b.trx_state, b.trx_query IS NULL,
       TIMESTAMPDIFF(MICROSECOND, b.trx_started, SYSDATE(6)),
       TIMESTAMPDIFF(MICROSECOND, r.trx_wait_started, SYSDATE(6))
FROM performance_schema.data_lock_waits w
JOIN information_schema.INNODB_TRX r
  ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID
JOIN information_schema.INNODB_TRX b
  ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID
JOIN performance_schema.data_locks l
  ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID
  AND l.ENGINE = w.ENGINE
"""


def query(version):
    """For the server that says this of itself with VERSION(). MariaDB has
    never had data_lock_waits; MySQL has no INNODB_LOCK_WAITS since 8.0."""
    return MARIADB if "MariaDB" in version or version.startswith("5.") \
        else MYSQL


def kind(state, silent):
    """The blocker waits itself: a queue. It runs a statement: at work. It
    runs none: a hostage of whoever has the transaction open."""
    if state == "LOCK WAIT":
        return "queue"
    return "hostage" if silent else "at work"


class Edges:
    """All that were seen."""

    def __init__(self):
        self.seen = collections.Counter()
        self.oldest_us = collections.Counter()
        self.waited_us = collections.Counter()

    def add(self, row):
        _, _, table, index, state, silent, age, waited = row
        name = re.sub(r"[`\"]", "", table).split(".")[-1]
        key = name, index, kind(state, silent)
        self.seen[key] += 1
        self.oldest_us[key] = max(self.oldest_us[key], int(age or 0))
        self.waited_us[key] = max(self.waited_us[key], int(waited or 0))

    def said(self):
        """The most seen first; oldest: of the blocking transactions."""
        return [{"table": table, "index": index, "kind": what, "seen": n,
                 "oldest_us": self.oldest_us[table, index, what],
                 "waited_us": self.waited_us[table, index, what]}
                for (table, index, what), n in self.seen.most_common()]
