/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_PACKET_H
#define YK_STORE_PACKET_H

#include "line.h"
#include "sql.h"

/**
 * @file packet.h
 * @brief Several statements sent at once, and every one of their answers.
 *
 *   yk_packet_make
 *   yk_packet_do    a statement that answers OK
 *   yk_packet_ask   a statement that answers rows, given to a function
 *   yk_packet_send  send, see exactly as many answers as statements
 *
 * Fewer answers than statements is an error, whatever mysql_errno() says: a
 * statement that fails while its rows are fetched leaves number 0 behind.
 * After any error a transaction that was open is rolled back, or its line
 * dropped, before yk_packet_send() returns.
 */

/** One row; a NULL column is NULL. */
typedef void yk_row_fn(void *baton, char **row, const unsigned long *lengths);

typedef struct yk_step_t {
    yk_row_fn *row; /**< NULL: answers OK */
    void *baton;
    apr_size_t end; /**< where its text ends */
} yk_step_t;

typedef struct yk_packet_t {
    apr_pool_t *p;
    yk_store_t *store;
    yk_sql_t sql;
    uint32_t nsteps, space;
    yk_step_t *steps;
    int begins, ends; /**< opens a transaction; ends with COMMIT or ROLLBACK */

    int sent;         /**< all of it left this host */
    uint32_t seen;    /**< answers seen in order */
    unsigned number;  /**< the error, 0 if none */
    uint64_t changed; /**< affected rows of the last OK */
} yk_packet_t;

/** From a pool of its own below the store's; gone with yk_packet_end(). */
yk_packet_t *yk_packet_make(yk_store_t *store);
void yk_packet_end(yk_packet_t *packet);

/** @return where the statement's text goes */
yk_sql_t *yk_packet_do(yk_packet_t *packet);
yk_sql_t *yk_packet_ask(yk_packet_t *packet, yk_row_fn *row, void *baton);

/** BEGIN, preceded by ROLLBACK on a line just taken. */
void yk_packet_begin(yk_packet_t *packet);
/** COMMIT, as the last statement. */
void yk_packet_commit(yk_packet_t *packet);

/**
 * Send and drain. What is lost after a COMMIT was sent is APR_INCOMPLETE.
 * @return see store.h
 */
apr_status_t yk_packet_send(yk_packet_t *packet);

/** yk_packet_send() and yk_packet_end(). */
apr_status_t yk_packet_run(yk_packet_t *packet);

/* ---- reading columns ---- */

uint64_t yk_column_uint(const char *column);
int64_t yk_column_int(const char *column);
double yk_column_double(const char *column);
/** From p, NUL-terminated; a NULL column is "". */
const char *yk_column_text(const char *column, unsigned long len,
                           apr_pool_t *p);
/** At most `space` bytes, the rest nought. */
void yk_column_bytes(void *to, apr_size_t space, const char *column,
                     unsigned long len);

#endif
