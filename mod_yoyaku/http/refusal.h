/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_REFUSAL_H
#define YK_HTTP_REFUSAL_H

#include <jansson.h>
#include <yoyaku/answer.h>
#include "http.h"

/**
 * @file refusal.h
 * @brief 503 with a body of our own, wherever the request was going: a problem
 *        as JSON or a page, as the client prefers.
 *
 * Retry-After goes into err_headers_out, so that it is there under an
 * ErrorDocument too; when the configuration has one for 503, that is what the
 * client sees.
 */

/** 1: a page, 0: JSON. A tie, or no Accept, is JSON under the handler
 *  `yoyaku`, a page elsewhere. */
int yk_http_refusal_is_page(request_rec *r);

/** Seconds for Retry-After: from `least` up to twice that, each client's
 *  own. */
int yk_http_refusal_retry(int least);

/**
 * Refuse.
 * @param values members beside type, title, status, reason and retry_after;
 *               NULL: none. Taken over.
 * @param page   a file of mod_yoyaku/page/, or a template's text
 * @return what the handler returns
 */
int yk_http_refusal_send(request_rec *r, yk_answer_e answer, int retry_after,
                         json_t *values, const char *page);

/** Send bytes with this status and type, not to be stored. */
int yk_http_refusal_bytes(request_rec *r, int status, const char *type,
                          const char *bytes, apr_size_t len);

#endif
