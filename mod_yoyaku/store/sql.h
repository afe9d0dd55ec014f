/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_SQL_H
#define YK_STORE_SQL_H

#include <apr_pools.h>
#include <stdint.h>
#include "yoyaku/secret.h"

/**
 * @file sql.h
 * @brief The one writer of SQL text.
 *
 * A statement is made of our own words (string constants of this folder),
 * numbers and hex literals. A user's bytes reach the text as hex only, so no
 * quoting rule, character set or sql_mode can make anything else of them.
 *
 * Rows of values and lists of rows put their own commas:
 *
 *   yk_sql_put(s, "INSERT INTO t (a, b) VALUES ");
 *   for each: yk_sql_row(s); yk_sql_uint(s, a); yk_sql_text(s, b);
 *             yk_sql_row_end(s);
 */

typedef struct yk_sql_t {
    apr_pool_t *p;
    char *text;
    apr_size_t len, space;
    int rows;   /**< rows begun in this statement's list */
    int in_row; /**< values written in the open row, -1 outside one */
} yk_sql_t;

void yk_sql_make(yk_sql_t *sql, apr_pool_t *p);

/** Our own words, never anybody else's. */
void yk_sql_put(yk_sql_t *sql, const char *words);

void yk_sql_int(yk_sql_t *sql, int64_t number);
void yk_sql_uint(yk_sql_t *sql, uint64_t number);
/** A finite number such that reading it back gives the same bits. */
void yk_sql_double(yk_sql_t *sql, double number);
void yk_sql_null(yk_sql_t *sql);
/** Bytes as a hex literal: 0x.. or X''. */
void yk_sql_hex(yk_sql_t *sql, const void *bytes, apr_size_t len);
void yk_sql_hash(yk_sql_t *sql, const yk_hash_t *hash);
/** A string as a hex literal; NULL is the empty one. */
void yk_sql_text(yk_sql_t *sql, const char *text);
/** The same, cut to `most` bytes. */
void yk_sql_text_cut(yk_sql_t *sql, const char *text, apr_size_t most);
/** The database's clock in epoch microseconds, so much later. */
void yk_sql_clock(yk_sql_t *sql, int64_t shift_us);

/** A variable of the session holds that clock, for many rows of one packet: an
 *  expression in each row would be worked out in each. */
void yk_sql_set_now(yk_sql_t *sql, int64_t shift_us);
void yk_sql_now(yk_sql_t *sql);

/** A row of a VALUES list. */
void yk_sql_row(yk_sql_t *sql);
void yk_sql_row_end(yk_sql_t *sql);

/**
 * A row of a derived list: "SELECT 0 AS i,7 AS a" and from then on
 * " UNION ALL SELECT 1,8". The values follow through yk_sql_item_*().
 */
void yk_sql_item(yk_sql_t *sql, uint32_t i);
void yk_sql_item_uint(yk_sql_t *sql, const char *name, uint64_t number);
void yk_sql_item_hex(yk_sql_t *sql, const char *name, const void *bytes,
                     apr_size_t len);

#endif
