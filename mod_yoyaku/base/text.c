/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/text.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* RFC 3629's table: how many bytes the character at `s` has; 0: none of it. */
static apr_size_t utf8_bytes(const unsigned char *s, apr_size_t left)
{
    unsigned char low = 0x80, high = 0xbf;
    apr_size_t n;

    if (s[0] < 0x80) {
        return s[0] != 0;
    }
    if (s[0] < 0xc2 || s[0] > 0xf4) {
        return 0;
    }
    n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (n > left) {
        return 0;
    }
    switch (s[0]) {
    case 0xe0: /* overlong */
        low = 0xa0;
        break;
    case 0xed: /* surrogates */
        high = 0x9f;
        break;
    case 0xf0: /* overlong */
        low = 0x90;
        break;
    case 0xf4: /* past U+10FFFF */
        high = 0x8f;
        break;
    }
    if (s[1] < low || s[1] > high) {
        return 0;
    }
    for (apr_size_t i = 2; i < n; i++) {
        if (s[i] < 0x80 || s[i] > 0xbf) {
            return 0;
        }
    }
    return n;
}

int yk_text_is_utf8(const char *bytes, apr_size_t len)
{
    apr_size_t at = 0;

    while (at < len) {
        apr_size_t n = utf8_bytes((const unsigned char *)bytes + at, len - at);

        if (n == 0) {
            return 0;
        }
        at += n;
    }
    return 1;
}

int yk_text_is_key(const char *key)
{
    apr_size_t len = strlen(key);

    return len >= 1 && len <= YK_TEXT_KEY &&
           strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                       "0123456789._-") == len;
}

uint64_t yk_text_fnv(uint64_t hash, const void *bytes, apr_size_t len)
{
    const unsigned char *at = bytes;

    for (apr_size_t i = 0; i < len; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

apr_status_t yk_text_size(int64_t *bytes, const char *text)
{
    static const char units[] = "KMG";
    const char *unit;
    char *end;
    int64_t n;
    int shift = 0;

    if (!apr_isdigit(*text)) {
        return APR_EINVAL;
    }
    n = apr_strtoi64(text, &end, 10); /* INT64_MAX when it is more */
    if (*end != '\0') {
        unit = strchr(units, apr_toupper(*end));
        if (unit == NULL || end[1] != '\0') {
            return APR_EINVAL;
        }
        shift = 10 * (int)(unit - units + 1);
    }
    if (n > (INT64_MAX >> shift) || n == INT64_MAX) {
        return APR_EINVAL;
    }
    *bytes = n << shift;
    return APR_SUCCESS;
}

char *yk_text_json(char *to, const char *text)
{
    static const char digits[] = "0123456789abcdef";

    *to++ = '"';
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = (char)c;
        }
        else if (c < 0x20) {
            memcpy(to, "\\u00", 4);
            to[4] = digits[c >> 4];
            to[5] = digits[c & 15];
            to += 6;
        }
        else {
            *to++ = (char)c;
        }
    }
    *to++ = '"';
    return to;
}

char *yk_text_hex(const void *bytes, apr_size_t len, apr_pool_t *p)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;
    char *hex = apr_palloc(p, 2 * len + 1);

    for (apr_size_t i = 0; i < len; i++) {
        hex[2 * i] = digits[from[i] >> 4];
        hex[2 * i + 1] = digits[from[i] & 15];
    }
    hex[2 * len] = '\0';
    return hex;
}

/* ---- money ---- */

/* Currencies whose minor unit is not a hundredth (ISO 4217). */
static const char whole[] = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND "
                            "VUV XAF XOF XPF";
static const char thousandth[] = "BHD IQD JOD KWD LYD OMR TND";

int yk_money_is_currency(const char *currency)
{
    return strlen(currency) == 3 &&
           strspn(currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

static int decimals_of(const char *currency)
{
    if (!yk_money_is_currency(currency)) {
        return 2;
    }
    return strstr(whole, currency) != NULL        ? 0
           : strstr(thousandth, currency) != NULL ? 3
                                                  : 2;
}

apr_status_t yk_money_parse(int64_t *minor, const char *text,
                            const char *currency)
{
    int decimals = decimals_of(currency);
    int64_t sum = 0;
    const char *at = text;
    int after = -1; /* digits after the point; -1: no point yet */

    if (!is_digit(*at)) {
        return APR_EINVAL;
    }
    for (; *at != '\0'; at++) {
        if (*at == '.' && after < 0 && decimals > 0) {
            after = 0;
            continue;
        }
        if (!is_digit(*at) || after == decimals) {
            return APR_EINVAL;
        }
        sum = sum * 10 + (*at - '0');
        after += after >= 0;
        if (sum > YK_MONEY_MAX) {
            return APR_EINVAL;
        }
    }
    if (after == 0) {
        return APR_EINVAL;
    }
    for (int i = after < 0 ? 0 : after; i < decimals; i++) {
        sum *= 10;
    }
    if (sum > YK_MONEY_MAX) {
        return APR_EINVAL;
    }
    *minor = sum;
    return APR_SUCCESS;
}

char *yk_money_write(int64_t minor, const char *currency, apr_pool_t *p)
{
    int decimals = decimals_of(currency);
    uint64_t size = minor < 0 ? -(uint64_t)minor : (uint64_t)minor;
    uint64_t unit = decimals == 0 ? 1 : decimals == 2 ? 100 : 1000;
    const char *sign = minor < 0 ? "-" : "";

    if (decimals == 0) {
        return apr_psprintf(p, "%s%" APR_UINT64_T_FMT, sign, size);
    }
    return apr_psprintf(p, "%s%" APR_UINT64_T_FMT ".%0*" APR_UINT64_T_FMT, sign,
                        size / unit, decimals, size % unit);
}

/* ---- times ---- */

/* Reads exactly n digits; -1 when they are not there. */
static int digits(const char **at, int n)
{
    int value = 0;

    for (int i = 0; i < n; i++) {
        if (!is_digit((*at)[i])) {
            return -1;
        }
        value = value * 10 + ((*at)[i] - '0');
    }
    *at += n;
    return value;
}

static int past(const char **at, char c)
{
    int is = **at == c;

    *at += is;
    return is;
}

static int is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days since 1970-01-01, or -1: no such day. */
static int64_t days_of(int year, int month, int day)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30,
                                  31, 31, 30, 31, 30, 31};
    static const int before[] = {0,   31,  59,  90,  120, 151,
                                 181, 212, 243, 273, 304, 334};
    int y = year - 1;

    if (year < 1970 || month < 1 || month > 12 || day < 1 ||
        day > lengths[month - 1] + (month == 2 && is_leap(year))) {
        return -1;
    }
    return INT64_C(365) * (year - 1970) + (y / 4 - y / 100 + y / 400) -
           (1969 / 4 - 1969 / 100 + 1969 / 400) + before[month - 1] +
           (month > 2 && is_leap(year)) + day - 1;
}

/* "Z", "z", "+01:00": seconds east of UTC. APR_EINVAL when neither. */
static apr_status_t zone(int64_t *east, const char **at)
{
    int sign, hours, minutes;

    *east = 0;
    if (past(at, 'Z') || past(at, 'z')) {
        return APR_SUCCESS;
    }
    sign = past(at, '+') ? 1 : past(at, '-') ? -1 : 0;
    if (sign == 0) {
        return APR_EINVAL;
    }
    hours = digits(at, 2);
    if (hours < 0 || hours > 23 || !past(at, ':')) {
        return APR_EINVAL;
    }
    minutes = digits(at, 2);
    if (minutes < 0 || minutes > 59) {
        return APR_EINVAL;
    }
    *east = sign * (hours * INT64_C(3600) + minutes * 60);
    return APR_SUCCESS;
}

/* ":SS.ffffff", all of it or nothing; microseconds. */
static apr_status_t seconds(int64_t *us, const char **at)
{
    int whole_seconds;

    *us = 0;
    if (!past(at, ':')) {
        return APR_SUCCESS;
    }
    whole_seconds = digits(at, 2);
    if (whole_seconds < 0 || whole_seconds > 60) {
        return APR_EINVAL;
    }
    *us = whole_seconds * APR_USEC_PER_SEC;
    if (past(at, '.')) {
        int64_t scale = APR_USEC_PER_SEC;

        if (!is_digit(**at)) {
            return APR_EINVAL;
        }
        for (; is_digit(**at); (*at)++) {
            scale /= 10;
            *us += (**at - '0') * scale;
        }
    }
    return APR_SUCCESS;
}

apr_status_t yk_time_parse(apr_time_t *when, const char *text)
{
    const char *at = text;
    int year, month, day, hour, minute;
    int64_t days, us, east;

    year = digits(&at, 4);
    if (year < 0 || !past(&at, '-')) {
        return APR_EINVAL;
    }
    month = digits(&at, 2);
    if (month < 0 || !past(&at, '-')) {
        return APR_EINVAL;
    }
    day = digits(&at, 2);
    if (day < 0 || !(past(&at, 'T') || past(&at, 't') || past(&at, ' '))) {
        return APR_EINVAL;
    }
    hour = digits(&at, 2);
    if (hour < 0 || hour > 23 || !past(&at, ':')) {
        return APR_EINVAL;
    }
    minute = digits(&at, 2);
    if (minute < 0 || minute > 59) {
        return APR_EINVAL;
    }
    days = days_of(year, month, day);
    if (days < 0 || seconds(&us, &at) != APR_SUCCESS ||
        zone(&east, &at) != APR_SUCCESS || *at != '\0') {
        return APR_EINVAL;
    }
    us += (days * 86400 + hour * 3600 + minute * 60 - east) * APR_USEC_PER_SEC;
    if (us < 0) {
        return APR_EINVAL;
    }
    *when = us;
    return APR_SUCCESS;
}

char *yk_time_write(apr_time_t when, apr_pool_t *p)
{
    apr_time_exp_t t;

    apr_time_exp_gmt(&t, when);
    return apr_psprintf(p, "%04d-%02d-%02dT%02d:%02d:%02dZ", t.tm_year + 1900,
                        t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

/* ---- order numbers ---- */

static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

char *yk_number_write(uint64_t order_id, apr_pool_t *p)
{
    char *number = apr_palloc(p, YK_NUMBER_CHARS + 1);

    for (int i = YK_NUMBER_CHARS - 1; i >= 0; i--) {
        number[i] = crockford[order_id & 31];
        order_id >>= 5;
    }
    number[YK_NUMBER_CHARS] = '\0';
    return number;
}

/* 0 .. 31, or -1. */
static int crockford_value(char c)
{
    const char *at;

    if (c >= 'a' && c <= 'z') {
        c = (char)(c - 'a' + 'A');
    }
    switch (c) {
    case 'O':
        return 0;
    case 'I':
    case 'L':
        return 1;
    case '\0':
        return -1;
    }
    at = strchr(crockford, c);
    return at != NULL ? (int)(at - crockford) : -1;
}

apr_status_t yk_number_parse(uint64_t *order_id, const char *text)
{
    uint64_t id = 0;

    if (strlen(text) != YK_NUMBER_CHARS) {
        return APR_EINVAL;
    }
    for (int i = 0; i < YK_NUMBER_CHARS; i++) {
        int value = crockford_value(text[i]);

        /* The first character carries 3 of the 63 bits. */
        if (value < 0 || (i == 0 && value > 7)) {
            return APR_EINVAL;
        }
        id = id << 5 | (uint64_t)value;
    }
    *order_id = id;
    return APR_SUCCESS;
}
