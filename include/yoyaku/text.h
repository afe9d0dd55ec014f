/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_TEXT_H
#define YOYAKU_TEXT_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdint.h>

/**
 * @file text.h
 * @brief Text at the border: bytes of users, money, times, order numbers.
 *
 * Nothing here keeps state; everything is safe in any thread and process.
 * Text is bytes with a length or a NUL-terminated string that was checked to
 * hold none. Two texts are equal when their bytes are.
 */

/** Longest texts taken in, in bytes. Longer is `invalid`. */
#define YK_TEXT_KEY 64    /**< slot, guid, tariff, grade, resource, series */
#define YK_TEXT_NAME 250  /**< section, area, holder, booker, reference, contact, title */
#define YK_TEXT_DATA 4096 /**< an order's data */

/** @return 1 when the bytes are UTF-8 (RFC 3629) without NUL. */
int yk_text_is_utf8(const char *bytes, apr_size_t len);

/** @return 1 when `key` is [A-Za-z0-9._-]{1,64}: a slot key, fit for a URL. */
int yk_text_is_key(const char *key);

/**
 * Where FNV-1a (64 bit, Fowler, Noll, Vo) begins, and its next value after some
 * bytes. For tables and names of ours: nobody is kept out by it.
 */
#define YK_TEXT_FNV UINT64_C(0xcbf29ce484222325)
uint64_t yk_text_fnv(uint64_t hash, const void *bytes, apr_size_t len);

/** Write UTF-8 text as a JSON string, quotes and all: at most 6 bytes for each
 *  of its own and 2 more, no NUL. @return one past the last byte */
char *yk_text_json(char *to, const char *text);

/** Lower-case hex of bytes, from p. */
char *yk_text_hex(const void *bytes, apr_size_t len, apr_pool_t *p);

/** Read a size: "512K", "64M", "1G" (1024 each; small letters do, too), or
 * plain bytes. @return APR_EINVAL when it is none, or more than INT64_MAX */
apr_status_t yk_text_size(int64_t *bytes, const char *text);

/* ---- money: integers of the currency's minor unit (ISO 4217) ---- */

#define YK_MONEY_MAX INT64_C(99999999999999)

/**
 * Read "90.00" as 9000 for EUR, "90" as 90 for JPY.
 * @param currency three capital letters
 * @return APR_SUCCESS, or APR_EINVAL: not digits with at most the currency's
 *         decimals, negative, or above YK_MONEY_MAX
 */
apr_status_t yk_money_parse(int64_t *minor, const char *text,
                            const char *currency);

/** Write 9000 EUR as "90.00"; a negative amount gets a minus. "0.00" when
 *  currency is empty. */
char *yk_money_write(int64_t minor, const char *currency, apr_pool_t *p);

/** @return 1 for three capital letters */
int yk_money_is_currency(const char *currency);

/* ---- times: epoch microseconds, UTC ---- */

/**
 * Read RFC 3339 with a zone ("2026-12-24T18:00:00Z", "...+01:00"; seconds may
 * be missing; a space may stand for T).
 * @return APR_SUCCESS or APR_EINVAL (also when the zone is missing)
 */
apr_status_t yk_time_parse(apr_time_t *when, const char *text);

/** Write "2026-12-24T18:00:00Z", seconds rounded down. */
char *yk_time_write(apr_time_t when, apr_pool_t *p);

/* ---- order numbers: 63 bits as 13 characters of Crockford's base32 ---- */

#define YK_NUMBER_CHARS 13

/** Write an order id as people see it. */
char *yk_number_write(uint64_t order_id, apr_pool_t *p);

/** Read it back, forgiving case and O/0, I/L/1. APR_EINVAL when not one. */
apr_status_t yk_number_parse(uint64_t *order_id, const char *text);

#endif
