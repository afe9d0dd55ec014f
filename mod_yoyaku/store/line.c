/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"
#include <apr_strings.h>
#include <errmsg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "packet.h"
#include "yoyaku/log.h"

/* Foreign numbers and what they mean here. Numbers of the client (2000 ..)
 * and whatever is not listed: see below. 1205 undoes its statement only and
 * 1213 the whole transaction; for us both end in ROLLBACK. */
#define LINE_ERRORS(X)                                                         \
    X(1205, APR_TIMEUP)     /* lock wait time-out */                           \
    X(1969, APR_TIMEUP)     /* max_statement_time */                           \
    X(3024, APR_TIMEUP)     /* max_execution_time */                           \
    X(1213, APR_EBUSY)      /* deadlock, or a cluster's certification */       \
    X(1020, APR_EBUSY)      /* record changed since the snapshot */            \
    X(1317, APR_EBUSY)      /* KILL QUERY */                                   \
    X(1637, APR_EBUSY)      /* too many transactions at once */                \
    X(3572, APR_EBUSY)      /* NOWAIT */                                       \
    X(1062, APR_EEXIST)     /* duplicate key */                                \
    X(1586, APR_EEXIST)     /* duplicate key, with the key's name */           \
    X(1050, APR_EEXIST)     /* a schema's step was done before: a table, */    \
    X(1060, APR_EEXIST)     /* a column, */                                    \
    X(1061, APR_EEXIST)     /* a key */                                        \
    X(1091, APR_EEXIST)     /* and what it drops is gone */                    \
    X(1290, APR_ENOTIMPL)   /* read_only */                                    \
    X(1792, APR_ENOTIMPL)   /* read-only transaction */                        \
    X(1836, APR_ENOTIMPL)   /* read-only mode */                               \
    X(1036, APR_ENOTIMPL)   /* table is read only */                           \
    X(1146, APR_ENOTIMPL)   /* no such table */                                \
    X(1049, APR_ENOTIMPL)   /* no such database */                             \
    X(1040, APR_ECONNRESET) /* too many connections */                         \
    X(1203, APR_ECONNRESET) /* the same, of one user */                        \
    X(1226, APR_ECONNRESET) /* the same */                                     \
    X(1053, APR_ECONNRESET) /* server shutdown */                              \
    X(1077, APR_ECONNRESET) /* the same */                                     \
    X(1079, APR_ECONNRESET) /* the same */                                     \
    X(1047, APR_ECONNRESET) /* a cluster's node without its cluster */         \
    X(1158, APR_ECONNRESET) /* network */                                      \
    X(1159, APR_ECONNRESET)                                                    \
    X(1160, APR_ECONNRESET)                                                    \
    X(1161, APR_ECONNRESET)                                                    \
    X(1152, APR_ECONNRESET)                                                    \
    X(1184, APR_ECONNRESET)                                                    \
    X(1927, APR_ECONNRESET) /* KILL of the connection */                       \
    X(3169, APR_ECONNRESET) /* the session was killed */                       \
    X(4031, APR_ECONNRESET) /* idle too long */

apr_status_t yk_line_status(unsigned number)
{
    static const struct {
        unsigned number;
        apr_status_t status;
    } errors[] = {
#define LINE_ERROR(number, status) {number, status},
        LINE_ERRORS(LINE_ERROR)
#undef LINE_ERROR
    };
    size_t i;

    for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].number == number) {
            return errors[i].status;
        }
    }
    if ((number >= 2000 && number < 3000) ||
        (number >= 5000 && number < 6000)) {
        return APR_ECONNRESET;
    }
    return APR_EGENERAL;
}

int yk_line_is_lost(unsigned number)
{
    return yk_line_status(number) == APR_ECONNRESET;
}

/*
 * A line never goes back inside a transaction. Runs before every other
 * cleanup of the pool, so also before the one that gives the host's line back
 * to its own pool. httpd runs cleanups inside its signal handler, too: a line
 * that was interrupted in the middle of a packet is not touched, the end of
 * the process closes it and the server rolls back. So it is with every line
 * once the host has said that the process ends.
 */
static volatile int abandoned;

void yk_store_abandon(void)
{
    abandoned = 1;
}

static apr_status_t rest_at_end(void *data)
{
    yk_store_t *store = data;

    if (!store->busy && !abandoned) {
        yk_store_rest(store);
    }
    return APR_SUCCESS;
}

apr_status_t yk_store_attach(yk_store_t **store, const yk_store_host_t *host,
                             apr_pool_t *p)
{
    yk_store_t *made = apr_pcalloc(p, sizeof(*made));

    made->p = p;
    made->host = *host;
    apr_pool_pre_cleanup_register(p, made, rest_at_end);
    *store = made;
    return APR_SUCCESS;
}

apr_status_t yk_line_take(yk_store_t *store)
{
    void *line = NULL;
    apr_status_t rv;

    if (store->line != NULL) {
        return APR_SUCCESS;
    }
    rv = store->host.acquire(store->host.baton, &line);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (line == NULL) {
        return APR_ECONNRESET;
    }
    store->line = line;
    store->open = 0;
    return APR_SUCCESS;
}

/* The host may not know how to throw a line away: mod_dbd does so only with one
 * that its ping finds dead. So it is dead when it goes back. */
static void socket_shut(MYSQL *line)
{
#ifdef MARIADB_BASE_VERSION
    shutdown(mysql_get_socket(line), SHUT_RDWR);
#else
    shutdown(line->net.fd, SHUT_RDWR);
#endif
}

void yk_line_drop(yk_store_t *store)
{
    MYSQL *line = store->line;

    if (line != NULL) {
        store->line = NULL;
        store->open = 0;
        socket_shut(line);
        store->host.release(store->host.baton, line, 1);
    }
}

void yk_store_rollback(yk_store_t *store)
{
    if (store->line == NULL || !store->open) {
        return;
    }
    store->busy = 1;
    if (mysql_real_query(store->line, "ROLLBACK", 8) != 0) {
        store->busy = 0;
        yk_line_drop(store);
        return;
    }
    store->busy = 0;
    store->open = 0;
}

void yk_store_rest(yk_store_t *store)
{
    MYSQL *line;

    yk_store_rollback(store);
    line = store->line;
    if (line != NULL) {
        store->line = NULL;
        store->host.release(store->host.baton, line, 0);
    }
}

void yk_store_watch(yk_store_t *store, yk_store_watch_fn *watch, void *baton)
{
    store->watch = watch;
    store->watch_baton = baton;
}

void yk_store_written(yk_store_t *store, yk_store_written_fn *written,
                      void *baton)
{
    store->written = written;
    store->written_baton = baton;
}

void yk_store_clock_shift(yk_store_t *store, apr_time_t shift_us)
{
    store->shift_us = shift_us;
}
