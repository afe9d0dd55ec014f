/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include <string.h>

#define SELECT_ORDER(column, member, form) ",o." #column
const char yk_order_select[] = YK_ORDER_COLUMNS(SELECT_ORDER);

#define JOINED_UINT(column) ",o." #column
#define JOINED_INT(column) ",o." #column
#define JOINED_STATE(column) ",o." #column
#define JOINED_BYTES(column) ",o." #column
#define JOINED_CODE(column) ",o." #column
#define JOINED_TEXT(column) ",IF(b.line>1,'',o." #column ")"
#define SELECT_JOINED(column, member, form) JOINED_##form(column)
const char yk_order_select_joined[] = YK_ORDER_COLUMNS(SELECT_JOINED);

#define ONE(column, member, form) +1
const uint32_t yk_order_ncolumns = 2 YK_ORDER_COLUMNS(ONE);

#define SELECT_LINE(column, member, form) ",b." #column
const char yk_line_select[] = ",b.line" YK_LINE_COLUMNS(SELECT_LINE);

/* A column's place in its list is its bit: `bit` goes along the list. */
#define EACH(what)                                                             \
    if (columns & bit) {                                                       \
        what;                                                                  \
    }                                                                          \
    bit <<= 1;

/* ---- what differs ---- */

static const yk_order_t blank_order;
static const yk_line_t blank_line;

/* NULL is the empty one. */
static int text_differs(const char *one, const char *other)
{
    return strcmp(one != NULL ? one : "", other != NULL ? other : "") != 0;
}

#define DIFFERS_UINT(member) (from->member != was->member)
#define DIFFERS_INT(member) (from->member != was->member)
#define DIFFERS_STATE(member) (from->member != was->member)
#define DIFFERS_TEXT(member) text_differs(from->member, was->member)
#define DIFFERS_BYTES(member)                                                  \
    (memcmp(from->member, was->member, sizeof(from->member)) != 0)
#define DIFFERS_CODE(member)                                                   \
    (strncmp(from->member, was->member, sizeof(from->member)) != 0)
#define DIFFERS(column, member, form)                                          \
    columns |= DIFFERS_##form(member) ? bit : 0;                               \
    bit <<= 1;

yk_columns_t yk_order_columns(const yk_order_t *from, const yk_order_t *was)
{
    yk_columns_t columns = 0, bit = 1;

    if (was == NULL) {
        was = &blank_order;
    }
    YK_ORDER_COLUMNS(DIFFERS)
    return columns;
}

yk_columns_t yk_line_columns(const yk_line_t *from, const yk_line_t *was)
{
    yk_columns_t columns = 0, bit = 1;

    if (was == NULL) {
        was = &blank_line;
    }
    YK_LINE_COLUMNS(DIFFERS)
    return columns;
}

/* ---- reading and writing ---- */

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

#define NAME(column, member, form) EACH(yk_sql_put(sql, "," #column))
#define WRITE(column, member, form) EACH(WRITE_##form(member))
#define UPDATE(column, member, form)                                           \
    EACH(yk_sql_put(sql, "," #column "=VALUES(" #column ")"))

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
    to->line = (uint32_t)yk_column_uint(row[0]);
    row++;
    lengths++;
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

void yk_order_insert(yk_sql_t *sql, yk_columns_t columns)
{
    yk_columns_t bit = 1;

    yk_sql_put(sql, "INSERT INTO yoyaku_order (order_id,version");
    YK_ORDER_COLUMNS(NAME)
    yk_sql_put(sql, ") VALUES ");
}

void yk_order_write(yk_sql_t *sql, const yk_order_t *from, yk_columns_t columns)
{
    yk_columns_t bit = 1;

    yk_sql_row(sql);
    yk_sql_uint(sql, from->order_id);
    yk_sql_uint(sql, from->version + 1);
    YK_ORDER_COLUMNS(WRITE)
    yk_sql_row_end(sql);
}

void yk_order_update(yk_sql_t *sql, yk_columns_t columns)
{
    yk_columns_t bit = 1;

    yk_sql_put(sql, " ON DUPLICATE KEY UPDATE version=VALUES(version)");
    YK_ORDER_COLUMNS(UPDATE)
}

void yk_line_insert(yk_sql_t *sql, yk_columns_t columns, int is_new)
{
    yk_columns_t bit = 1;

    yk_sql_put(sql, "INSERT INTO yoyaku_booking (order_id,line");
    yk_sql_put(sql, is_new ? ",tenant_id,booker_hash" : "");
    YK_LINE_COLUMNS(NAME)
    yk_sql_put(sql, ") VALUES ");
}

void yk_line_write(yk_sql_t *sql, const yk_order_t *order,
                   const yk_line_t *from, yk_columns_t columns, int is_new)
{
    yk_columns_t bit = 1;

    yk_sql_row(sql);
    yk_sql_uint(sql, order->order_id);
    yk_sql_uint(sql, from->line);
    if (is_new) {
        yk_sql_uint(sql, order->tenant_id);
        yk_sql_hex(sql, order->booker_hash, sizeof(order->booker_hash));
    }
    YK_LINE_COLUMNS(WRITE)
    yk_sql_row_end(sql);
}

void yk_line_update(yk_sql_t *sql, yk_columns_t columns)
{
    yk_columns_t bit = 1;

    yk_sql_put(sql, " ON DUPLICATE KEY UPDATE line=VALUES(line)");
    YK_LINE_COLUMNS(UPDATE)
}
