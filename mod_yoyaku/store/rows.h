/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_ROWS_H
#define YK_STORE_ROWS_H

#include "packet.h"
#include "yoyaku/order.h"

/**
 * @file rows.h
 * @brief Orders and lines as columns: the lists that every SELECT and INSERT
 *        of them is made from, and their readers.
 *
 * X(column, member, form), in the order they are selected and written. Forms:
 * UINT, INT numbers; TEXT a string from the reader's pool; BYTES a fixed
 * array; CODE char[4].
 */

/* order_id and version are apart: the writer gives version + 1. */
#define YK_ORDER_COLUMNS(X)                                                    \
    X(tenant_id, tenant_id, UINT)                                              \
    X(state, state, STATE)                                                     \
    X(until_us, until_us, INT)                                                 \
    X(begun_us, begun_us, INT)                                                 \
    X(max_until_us, max_until_us, INT)                                         \
    X(checkout_end_us, checkout_end_us, INT)                                   \
    X(confirmed_us, confirmed_us, INT)                                         \
    X(attempt, attempt, UINT)                                                  \
    X(late, late, UINT)                                                        \
    X(next_line, next_line, UINT)                                              \
    X(pass, pass, UINT)                                                        \
    X(token_hash, token_hash.bytes, BYTES)                                     \
    X(booker_hash, booker_hash, BYTES)                                         \
    X(currency, currency, CODE)                                                \
    X(booker, booker, TEXT)                                                    \
    X(reference, reference, TEXT)                                              \
    X(contact, contact, TEXT)                                                  \
    X(payment, payment, TEXT)                                                  \
    X(data, data, TEXT)

/* order_id, tenant_id and booker_hash are the order's; line is apart. */
#define YK_LINE_COLUMNS(X)                                                     \
    X(live, live, UINT)                                                        \
    X(slot_id, slot_id, UINT)                                                  \
    X(area_no, area_no, UINT)                                                  \
    X(place_no, place_no, UINT)                                                \
    X(quantity, quantity, UINT)                                                \
    X(price_no, price_no, UINT)                                                \
    X(amount, amount, INT)                                                     \
    X(currency, currency, CODE)                                                \
    X(tariff, tariff, TEXT)                                                    \
    X(holder, holder, TEXT)

/** ",o.tenant_id,o.state,..": after o.order_id,o.version */
extern const char yk_order_select[];
/** The same beside lines: texts only with the first, for they may be long. */
extern const char yk_order_select_joined[];
/** So many columns yk_order_read() reads. */
extern const uint32_t yk_order_ncolumns;
/** ",b.line,b.live,..": after whatever names the order */
extern const char yk_line_select[];

/** The columns from order_id,version on. */
yk_order_t *yk_order_read(char **row, const unsigned long *lengths,
                          apr_pool_t *p);

/** Add a line, keeping them ascending; its columns from `line` on. */
void yk_line_read(yk_order_t *order, char **row, const unsigned long *lengths,
                  apr_pool_t *p);

/**
 * Columns that have something to say, a bit each in the list's order: those in
 * which a row differs from `was`, or from the defaults of the table (`was`
 * NULL: it is new). A statement has the columns of all its rows together:
 * parsing and setting what stays as it is would be a third of a batch.
 */
typedef uint32_t yk_columns_t;

yk_columns_t yk_order_columns(const yk_order_t *order, const yk_order_t *was);
yk_columns_t yk_line_columns(const yk_line_t *line, const yk_line_t *was);

/** "INSERT INTO yoyaku_order (..) VALUES ", a row of it, and for rows that are
 *  there and locked " ON DUPLICATE KEY UPDATE ..". */
void yk_order_insert(yk_sql_t *sql, yk_columns_t columns);
void yk_order_write(yk_sql_t *sql, const yk_order_t *order,
                    yk_columns_t columns);
void yk_order_update(yk_sql_t *sql, yk_columns_t columns);

/** The same of lines; a new one names its order's tenant and booker. */
void yk_line_insert(yk_sql_t *sql, yk_columns_t columns, int is_new);
void yk_line_write(yk_sql_t *sql, const yk_order_t *order,
                   const yk_line_t *line, yk_columns_t columns, int is_new);
void yk_line_update(yk_sql_t *sql, yk_columns_t columns);

#endif
