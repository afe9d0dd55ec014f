/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_THROTTLE_H
#define YK_HTTP_THROTTLE_H

#include <ap_expr.h>
#include <yoyaku/stats.h>
#include <yoyaku/throttle.h>
#include "http.h"

/**
 * @file throttle.h
 * @brief The part that lets requests run, wait or go: for every handler on a
 *        path.
 *
 *   throttle_config.c  directives; the rules of a configuration by name
 *   throttle.c         hooks: asked in the handler hook, places given back when
 *                      the response was handed to the output filters
 *
 * A chain of internal redirects is one request: what it was asked and what it
 * holds (its claim) hangs on the first of them. Two questions, each answered
 * once a chain: the container's rule, then the server's.
 *
 * What lives where. Rules are made in the parent from pconf. In each child a
 * rule learns its row in the shared table when it is first asked.
 */

/** One name in the configuration. */
typedef struct yk_http_rule_t {
    const char *name;
    int is_defined;    /**< its terms were said somewhere */
    const char *where; /**< file and line of the first mention */
    yk_rule_terms_t terms;
    const ap_expr_info_t *by; /**< who is the user */
    const char *by_text;
    int index;            /**< among the configuration's rules */
    _Atomic uint32_t row; /**< in the shared table; a child's own */
} yk_http_rule_t;

typedef struct yk_http_throttle_dir_t {
    int is_off; /**< 1: freed from every rule */
    yk_http_rule_t *rule;
    int is_bypass_said;
    const ap_expr_info_t *bypass; /**< NULL: none */
} yk_http_throttle_dir_t;

typedef struct yk_http_throttle_server_t {
    int is_said; /**< a rule or `off` stands outside any container */
    yk_http_rule_t *rule;
    int reserve, wait; /**< main server; -1: not said */
} yk_http_throttle_server_t;

/* ---- throttle_config.c ---- */

void *yk_http_throttle_dir_create(apr_pool_t *p);
void *yk_http_throttle_dir_merge(apr_pool_t *p, void *base, void *add);
void *yk_http_throttle_server_create(apr_pool_t *p, server_rec *s);
void *yk_http_throttle_server_merge(apr_pool_t *p, void *base, void *add);

/** A configuration begins to be read. */
void yk_http_throttle_config_begin(apr_pool_t *pconf);
/** It was read. @return OK, or the sentence was logged */
int yk_http_throttle_config_check(server_rec *s, apr_pool_t *ptemp);
/** Of yk_http_rule_t *, in order of their first mention. */
const apr_array_header_t *yk_http_throttle_rules(void);
/** How many requests the server runs at once, of them to be left free, and
 *  how many may wait. */
void yk_http_throttle_numbers(server_rec *s, uint32_t *workers,
                              uint32_t *reserve, uint32_t *wait);

const char *yk_http_throttle_set(cmd_parms *cmd, void *dummy, int argc,
                                 char *const argv[]);
const char *yk_http_throttle_set_bypass(cmd_parms *cmd, void *dummy,
                                        const char *arg);
const char *yk_http_throttle_set_number(cmd_parms *cmd, void *dummy,
                                        const char *arg);

#define YK_HTTP_THROTTLE_DIRECTIVES                                            \
    AP_INIT_TAKE_ARGV("YoyakuThrottle", yk_http_throttle_set, NULL,            \
                      RSRC_CONF | ACCESS_CONF,                                 \
                      "name and terms of a rule, a rule's name, or off"),      \
        AP_INIT_TAKE1("YoyakuThrottleBypass", yk_http_throttle_set_bypass,     \
                      NULL, RSRC_CONF | ACCESS_CONF,                           \
                      "a condition under which a request runs at once"),       \
        AP_INIT_TAKE1("YoyakuThrottleWait", yk_http_throttle_set_number, NULL, \
                      RSRC_CONF, "how many requests may wait, all together"),  \
        AP_INIT_TAKE1("YoyakuThrottleReserve", yk_http_throttle_set_number,    \
                      NULL, RSRC_CONF, "how many workers rules leave free"),

/* ---- throttle.c ---- */

/** The shared state; NULL: it could not be made (logged), nothing is
 *  throttled. */
yk_throttle_t *yk_http_throttle_shared(void);

/** 1: never throttled and under no room: subrequests, error documents, status
 *  and health handlers. */
int yk_http_throttle_is_exempt(const request_rec *r);

/** What a request met under one rule. */
typedef struct yk_http_visit_t {
    uint32_t row;
    yk_rule_visit_t met;
} yk_http_visit_t;

/** Of the rules this request came under. @return how many: 0 .. 2 */
uint32_t yk_http_throttle_visits(const request_rec *r,
                                 const yk_http_visit_t **visits);

#endif
