/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_SERVER_H
#define INTERLEAVE_SERVER_H

#include <apr_pools.h>
#include <mysql.h>

/**
 * @file server.h
 * @brief A mariadbd of the tests' own, and what is asked of it from outside.
 *
 * One per binary: a socket without a port, a folder beside the binary that is
 * removed again, no sync at commit (nothing here is about the disk). It dies
 * with the binary. YOYAKU_TEST_MARIADBD adds options, for running everything
 * under another setting ("--innodb-snapshot-isolation=ON").
 */

typedef struct server_t {
    const char *folder; /**< all it writes; also for plan files */
    const char *socket;
    pid_t pid;
} server_t;

/** Start it and wait until it answers; ends the process when it cannot. It is
 *  stopped, and its folder removed, when the process exits. */
server_t *server_start(apr_pool_t *p);

/** A connection as root that may send several statements; "" no database.
 *  Ends the process when it cannot be had. */
MYSQL *server_connect(const server_t *server, const char *database);

/** Send statements and throw their results away; ends the process when one
 *  fails: only for what the tests themselves need. */
void server_do(MYSQL *line, const char *sql);

/** The first column of the first row, from p; NULL without a row. */
char *server_ask(MYSQL *line, const char *sql, apr_pool_t *p);
/** All rows, "a|b\n" each. */
char *server_ask_all(MYSQL *line, const char *sql, apr_pool_t *p);

/**
 * Which connections wait for a row lock at this moment.
 *
 * From SHOW ENGINE INNODB STATUS: information_schema.INNODB_TRX is a copy that
 * is renewed only when nobody looked at it for 100 ms, and the count of current
 * waits falls only when the waiter has woken.
 *
 * @return 1 when all of the n connections wait
 */
int server_all_wait(MYSQL *line, const unsigned long *ids, int n,
                    apr_pool_t *ptemp);

/** Transactions of others that are open and do not end within a second. */
int server_open(MYSQL *line, apr_pool_t *ptemp);

/** Cut a connection off and wait until its transaction is gone. */
void server_kill(MYSQL *line, unsigned long id, apr_pool_t *ptemp);

/** Deadlocks and lock time-outs since the start. */
void server_counts(MYSQL *line, long *deadlocks, long *timeouts,
                   apr_pool_t *ptemp);

#endif
