/* SPDX-License-Identifier: Apache-2.0 */
#include "sql.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void yk_sql_make(yk_sql_t *sql, apr_pool_t *p)
{
    sql->p = p;
    sql->space = 4096;
    sql->text = apr_palloc(p, sql->space);
    sql->text[0] = '\0';
    sql->len = 0;
    sql->rows = 0;
    sql->in_row = -1;
}

static char *room(yk_sql_t *sql, apr_size_t more)
{
    if (sql->len + more + 1 > sql->space) {
        apr_size_t space = sql->space * 2;
        char *text;
        while (sql->len + more + 1 > space) {
            space *= 2;
        }
        text = apr_palloc(sql->p, space);
        memcpy(text, sql->text, sql->len + 1);
        sql->text = text;
        sql->space = space;
    }
    return sql->text + sql->len;
}

static void append(yk_sql_t *sql, const char *bytes, apr_size_t len)
{
    char *to = room(sql, len);
    memcpy(to, bytes, len);
    to[len] = '\0';
    sql->len += len;
}

void yk_sql_put(yk_sql_t *sql, const char *words)
{
    append(sql, words, strlen(words));
    sql->rows = 0;
}

/* The comma before every value of a row but its first. */
static void value(yk_sql_t *sql)
{
    if (sql->in_row > 0) {
        append(sql, ",", 1);
    }
    if (sql->in_row >= 0) {
        sql->in_row++;
    }
}

/* By hand: with snprintf() a hold's numbers took more instructions than all the
 * other words of its statements. */
static void append_uint(yk_sql_t *sql, uint64_t number)
{
    char digits[20]; /* 2^64 has so many */
    char *first = digits + sizeof(digits);

    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    append(sql, first, (apr_size_t)(digits + sizeof(digits) - first));
}

void yk_sql_int(yk_sql_t *sql, int64_t number)
{
    value(sql);
    if (number < 0) {
        append(sql, "-", 1);
    }
    append_uint(sql, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void yk_sql_uint(yk_sql_t *sql, uint64_t number)
{
    value(sql);
    append_uint(sql, number);
}

void yk_sql_double(yk_sql_t *sql, double number)
{
    char digits[40];
    int n = snprintf(digits, sizeof(digits), "%.17e", number);
    char *comma = memchr(digits, ',', (apr_size_t)n);
    if (comma != NULL) {
        *comma = '.'; /* a host may have set a locale */
    }
    value(sql);
    append(sql, digits, (apr_size_t)n);
}

void yk_sql_null(yk_sql_t *sql)
{
    value(sql);
    append(sql, "NULL", 4);
}

static void append_hex(yk_sql_t *sql, const void *bytes, apr_size_t len)
{
    static const char digit[] = "0123456789abcdef";
    const unsigned char *from = bytes;
    char *to;
    apr_size_t i;

    if (len == 0) {
        append(sql, "X''", 3);
        return;
    }
    to = room(sql, 2 + 2 * len);
    *to++ = '0';
    *to++ = 'x';
    for (i = 0; i < len; i++) {
        *to++ = digit[from[i] >> 4];
        *to++ = digit[from[i] & 15];
    }
    *to = '\0';
    sql->len += 2 + 2 * len;
}

void yk_sql_hex(yk_sql_t *sql, const void *bytes, apr_size_t len)
{
    value(sql);
    append_hex(sql, bytes, len);
}

void yk_sql_hash(yk_sql_t *sql, const yk_hash_t *hash)
{
    yk_sql_hex(sql, hash->bytes, sizeof(hash->bytes));
}

void yk_sql_text(yk_sql_t *sql, const char *text)
{
    yk_sql_hex(sql, text, text != NULL ? strlen(text) : 0);
}

void yk_sql_text_cut(yk_sql_t *sql, const char *text, apr_size_t most)
{
    yk_sql_hex(sql, text, text != NULL ? strnlen(text, most) : 0);
}

void yk_sql_clock(yk_sql_t *sql, int64_t shift_us)
{
    char digits[28] = "";

    value(sql);
    append(sql, "CAST(UNIX_TIMESTAMP(NOW(6))*1000000 AS SIGNED)",
           sizeof("CAST(UNIX_TIMESTAMP(NOW(6))*1000000 AS SIGNED)") - 1);
    if (shift_us != 0) {
        int n = snprintf(digits, sizeof(digits), "%+" PRId64, shift_us);
        append(sql, digits, (apr_size_t)n);
    }
}

void yk_sql_set_now(yk_sql_t *sql, int64_t shift_us)
{
    yk_sql_put(sql, "SET @yoyaku_now=");
    yk_sql_clock(sql, shift_us);
}

void yk_sql_now(yk_sql_t *sql)
{
    value(sql);
    append(sql, "@yoyaku_now", sizeof("@yoyaku_now") - 1);
}

void yk_sql_row(yk_sql_t *sql)
{
    append(sql, ",(", 2);
    if (sql->rows == 0) {
        sql->len -= 2;
        append(sql, "(", 1);
    }
    sql->rows++;
    sql->in_row = 0;
}

void yk_sql_row_end(yk_sql_t *sql)
{
    append(sql, ")", 1);
    sql->in_row = -1;
}

void yk_sql_item(yk_sql_t *sql, uint32_t i)
{
    static const char first[] = "SELECT ", more[] = " UNION ALL SELECT ";

    append(sql, sql->rows == 0 ? first : more,
           (sql->rows == 0 ? sizeof(first) : sizeof(more)) - 1);
    append_uint(sql, i);
    if (sql->rows == 0) { /* it gives the columns their names */
        append(sql, " AS i", 5);
    }
    sql->rows++;
}

static void item_name(yk_sql_t *sql, const char *name)
{
    if (sql->rows == 1) {
        append(sql, " AS ", 4);
        append(sql, name, strlen(name));
    }
}

void yk_sql_item_uint(yk_sql_t *sql, const char *name, uint64_t number)
{
    append(sql, ",", 1);
    yk_sql_uint(sql, number);
    item_name(sql, name);
}

void yk_sql_item_hex(yk_sql_t *sql, const char *name, const void *bytes,
                     apr_size_t len)
{
    append(sql, ",", 1);
    append_hex(sql, bytes, len);
    item_name(sql, name);
}
