/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_LINE_H
#define YK_STORE_LINE_H

#include <mysql.h>
#include "yoyaku/store.h"

/**
 * @file line.h
 * @brief The line to the database that a store has in hand, and whether a
 *        transaction is open on it.
 *
 * `open` is our own knowledge: the server's IN_TRANS bit is stale after an
 * error. It is set before BEGIN is sent and cleared only by a COMMIT or
 * ROLLBACK that was answered, or with the line.
 */
struct yk_store_t {
    apr_pool_t *p;
    yk_store_host_t host;
    MYSQL *line; /**< NULL at rest */
    int open;    /**< a transaction is or may be open */
    int busy;    /**< inside a packet; see rest_at_end() */
    yk_store_watch_fn *watch;
    void *watch_baton;
    yk_store_written_fn *written;
    void *written_baton;
    apr_time_t shift_us;
};

/** Have a line. @return APR_SUCCESS or APR_ECONNRESET */
apr_status_t yk_line_take(yk_store_t *store);

/** Give a line back that must not be used again. */
void yk_line_drop(yk_store_t *store);

/** What an error number of client or server means. */
apr_status_t yk_line_status(unsigned number);

/** @return 1: after this error the line is no more */
int yk_line_is_lost(unsigned number);

#endif
