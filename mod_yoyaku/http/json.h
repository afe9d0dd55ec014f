/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_JSON_H
#define YK_HTTP_JSON_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdint.h>

/**
 * @file json.h
 * @brief Writing a document, member by member, into one run of bytes.
 *
 * `name` is the member's name inside an object, NULL inside an array. What is
 * open is closed in turn. A writer belongs to one request and its pool.
 */

#define YK_HTTP_JSON_DEPTH 12

typedef struct yk_http_json_t {
    apr_pool_t *p;
    char *bytes;
    apr_size_t len, space;
    char closers[YK_HTTP_JSON_DEPTH];
    int depth;
    int comma; /**< the next value stands behind another */
} yk_http_json_t;

/** An object is open. @param space bytes expected; more is fine */
yk_http_json_t *yk_http_json_make(apr_size_t space, apr_pool_t *p);

void yk_http_json_object(yk_http_json_t *j, const char *name);
void yk_http_json_array(yk_http_json_t *j, const char *name);
void yk_http_json_end(yk_http_json_t *j);

/** NULL is null. Bytes that are no UTF-8 become U+FFFD. */
void yk_http_json_text(yk_http_json_t *j, const char *name, const char *text);
void yk_http_json_number(yk_http_json_t *j, const char *name, int64_t n);
void yk_http_json_flag(yk_http_json_t *j, const char *name, int on);
/** 0 is null. */
void yk_http_json_time(yk_http_json_t *j, const char *name, apr_time_t when);
/** "" is null. */
void yk_http_json_said(yk_http_json_t *j, const char *name, const char *text);

/** Close everything. @return the document, NUL-terminated */
const char *yk_http_json_done(yk_http_json_t *j, apr_size_t *len);

#endif
