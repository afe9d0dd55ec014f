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

/* order_id, tenant_id and booker_hash are the order's. */
#define YK_LINE_COLUMNS(X)                                                     \
    X(line, line, UINT)                                                        \
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
/** ",b.line,b.live,..": after whatever names the order */
extern const char yk_line_select[];

/** The columns from order_id,version on. */
yk_order_t *yk_order_read(char **row, const unsigned long *lengths,
                          apr_pool_t *p);

/** Add a line, keeping them ascending; its columns from `line` on. */
void yk_line_read(yk_order_t *order, char **row, const unsigned long *lengths,
                  apr_pool_t *p);

/** "INSERT INTO yoyaku_order (..) VALUES " and one row of it. */
extern const char yk_order_insert[];
extern const char yk_order_update[]; /**< ON DUPLICATE KEY UPDATE .. */
void yk_order_write(yk_sql_t *sql, const yk_order_t *order);

extern const char yk_line_insert[];
extern const char yk_line_update[];
void yk_line_write(yk_sql_t *sql, const yk_order_t *order,
                   const yk_line_t *line);

#endif
