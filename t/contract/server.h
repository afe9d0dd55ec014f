/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_CONTRACT_SERVER_H
#define YK_CONTRACT_SERVER_H

#include <apr_pools.h>
#include <mysql.h>
#include "yoyaku/setup.h"
#include "yoyaku/store.h"

/**
 * @file server.h
 * @brief A database server of our own for the tests: a folder below the
 *        current one, a socket, no port. One for the whole binary; it ends
 *        with us, however we end.
 */

/** Start it, or exit with a sentence. */
void server_start(void);
void server_stop(void);

/** A fresh database of this name. */
void server_database(const char *name);

/** DBDParams for a database. */
const char *server_params(const char *name, apr_pool_t *p);

/** A plain line, without any of our session settings. */
MYSQL *server_line(const char *name);

/** Run one statement on a line; the test fails when it does. */
void server_run(MYSQL *line, const char *sql);
/** Its first column of its first row as a number. */
long long server_number(MYSQL *line, const char *sql);
/** The first column of its first row, or NULL. */
const char *server_text(MYSQL *line, const char *sql, apr_pool_t *p);

/** A name in the server's folder, which goes when we end. */
const char *server_beside(const char *name, apr_pool_t *p);

/** Where the schema files lie. */
const char *server_schema(apr_pool_t *p);

#endif
