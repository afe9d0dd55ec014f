/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include <string.h>

#define SELECT_ORDER(column, member, form) ",o." #column
const char yk_order_select[] = YK_ORDER_COLUMNS(SELECT_ORDER);

#define SELECT_LINE(column, member, form) ",b." #column
const char yk_line_select[] = YK_LINE_COLUMNS(SELECT_LINE);

#define NAME(column, member, form) "," #column
#define UPDATE(column, member, form) "," #column "=VALUES(" #column ")"

const char yk_order_insert[] =
    "INSERT INTO yoyaku_order (order_id,version" YK_ORDER_COLUMNS(
        NAME) ") VALUES ";
const char yk_order_update[] =
    " ON DUPLICATE KEY UPDATE version=VALUES(version)" YK_ORDER_COLUMNS(UPDATE);

const char yk_line_insert[] =
    "INSERT INTO yoyaku_booking "
    "(order_id,tenant_id,booker_hash" YK_LINE_COLUMNS(NAME) ") VALUES ";
const char yk_line_update[] =
    " ON DUPLICATE KEY UPDATE booker_hash=VALUES(booker_hash)" YK_LINE_COLUMNS(
        UPDATE);

/* One column into its member, and back, by form. `to` is the struct. */
#define READ_UINT(member) to->member = yk_column_uint(*row)
#define READ_INT(member) to->member = yk_column_int(*row)
#define READ_STATE(member) to->member = (yk_order_state_e)yk_column_uint(*row)
#define READ_TEXT(member) to->member = yk_column_text(*row, *lengths, p)
#define READ_BYTES(member)                                                     \
    yk_column_bytes(to->member, sizeof(to->member), *row, *lengths)
#define READ_CODE(member)                                                      \
    yk_column_bytes(to->member, sizeof(to->member), *row, *lengths)
#define READ(column, member, form)                                             \
    READ_##form(member);                                                       \
    row++;                                                                     \
    lengths++;

#define WRITE_UINT(member) yk_sql_uint(sql, (uint64_t)from->member)
#define WRITE_INT(member) yk_sql_int(sql, from->member)
#define WRITE_STATE(member) yk_sql_uint(sql, (uint64_t)from->member)
#define WRITE_TEXT(member) yk_sql_text(sql, from->member)
#define WRITE_BYTES(member) yk_sql_hex(sql, from->member, sizeof(from->member))
#define WRITE_CODE(member) yk_sql_text_cut(sql, from->member, 3)
#define WRITE(column, member, form) WRITE_##form(member);

yk_order_t *yk_order_read(char **row, const unsigned long *lengths,
                          apr_pool_t *p)
{
    yk_order_t *to = apr_pcalloc(p, sizeof(*to));

    to->order_id = yk_column_uint(row[0]);
    to->version = yk_column_uint(row[1]);
    row += 2;
    lengths += 2;
    YK_ORDER_COLUMNS(READ)
    return to;
}

void yk_line_read(yk_order_t *order, char **row, const unsigned long *lengths,
                  apr_pool_t *p)
{
    yk_line_t read;
    yk_line_t *to = &read;
    uint32_t at;

    memset(to, 0, sizeof(*to));
    YK_LINE_COLUMNS(READ)
    if (order->nlines == order->line_space) {
        uint32_t space = order->line_space > 0 ? 2 * order->line_space : 8;
        yk_line_t *lines = apr_palloc(p, space * sizeof(*lines));
        if (order->nlines > 0) {
            memcpy(lines, order->lines, order->nlines * sizeof(*lines));
        }
        order->lines = lines;
        order->line_space = space;
    }
    /* they come in key order; one that does not, finds its place */
    at = order->nlines++;
    while (at > 0 && order->lines[at - 1].line > read.line) {
        order->lines[at] = order->lines[at - 1];
        at--;
    }
    order->lines[at] = read;
}

void yk_order_write(yk_sql_t *sql, const yk_order_t *from)
{
    yk_sql_row(sql);
    yk_sql_uint(sql, from->order_id);
    yk_sql_uint(sql, from->version + 1);
    YK_ORDER_COLUMNS(WRITE)
    yk_sql_row_end(sql);
}

void yk_line_write(yk_sql_t *sql, const yk_order_t *order,
                   const yk_line_t *from)
{
    yk_sql_row(sql);
    yk_sql_uint(sql, order->order_id);
    yk_sql_uint(sql, order->tenant_id);
    yk_sql_hex(sql, order->booker_hash, sizeof(order->booker_hash));
    YK_LINE_COLUMNS(WRITE)
    yk_sql_row_end(sql);
}
