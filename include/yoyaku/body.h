/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_BODY_H
#define YOYAKU_BODY_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <stdint.h>
#include "answer.h"

/**
 * @file body.h
 * @brief What a request's body says: one tree, whether it came as JSON or as a
 *        form, read member by member until the first thing that is wrong.
 *
 * JSON is RFC 8259 to the letter: an object, UTF-8, no member twice, no NUL, at
 * most YK_BODY_DEPTH deep. A form is application/x-www-form-urlencoded; its
 * names are the paths that refusals name:
 *
 *   places=A-12&places=A-13            {"places": ["A-12", "A-13"]}
 *   lines[0].slot=hamlet&lines[0].place=A-12   {"lines": [{"slot": ..}]}
 *   tariffs.adult=2&tariffs.child=1    {"tariffs": {"adult": 2, "child": 1}}
 *
 * In a form everything is text: digits are read as a number, "1", "on", "true"
 * and "0", "off", "false" as a flag, one text as a list of one. An empty value
 * counts as not sent where an empty text would be refused, for that is how a
 * browser sends an empty box. Behind "tariffs." the rest is one name.
 *
 * Reading. Every getter marks its member as known. The first fault sticks: the
 * getters after it say "not sent", and yk_body_check() tells. So a caller
 * reads everything it knows, checks once, and only then believes it:
 *
 *   const char *area = yk_body_text(body, "area", 1, YK_TEXT_NAME);
 *   int64_t n = yk_body_number(body, "quantity", 1, 256, 0);
 *   rv = yk_body_check(body, &fault);     unknown members are refused here
 *
 * Nulls are refused as any other wrong type is. Texts live as long as p.
 */

#define YK_BODY_BYTES 65536 /**< a longer body is `too_large` */
#define YK_BODY_DEPTH 16

/** What was wrong, ready to be answered. */
typedef struct yk_fault_t {
    yk_answer_e answer;  /**< UNREADABLE, TOO_LARGE or INVALID */
    const char *field;   /**< INVALID: "lines[2].quantity"; else NULL */
    const char *allowed; /**< INVALID: "an integer from 1 to 256"; or NULL */
    const char *detail;  /**< one English sentence */
} yk_fault_t;

/** A value in the tree; the one that parsing gives is the outermost object. */
typedef struct yk_body_t yk_body_t;

/** @return APR_SUCCESS, or APR_EINVAL: see fault (UNREADABLE, TOO_LARGE) */
apr_status_t yk_body_parse_json(yk_body_t **body, yk_fault_t *fault,
                                const char *bytes, apr_size_t len,
                                apr_pool_t *p);

/** Also reads a query string. @return as above */
apr_status_t yk_body_parse_form(yk_body_t **body, yk_fault_t *fault,
                                const char *bytes, apr_size_t len,
                                apr_pool_t *p);

/** The body of a request without one: an empty object. */
yk_body_t *yk_body_make(apr_pool_t *p);

/* Getters. `member` NULL: the value itself, for an item of a list. */

/** @return 1 when the member was sent; does not make it known */
int yk_body_has(const yk_body_t *body, const char *member);

/** @return 1 when it is JSON's null; makes it known then */
int yk_body_is_null(yk_body_t *body, const char *member);

/** @param min,max bytes. @return NULL: not sent */
const char *yk_body_text(yk_body_t *body, const char *member, apr_size_t min,
                         apr_size_t max);

/** A key as yk_text_is_key() knows it. @return NULL: not sent */
const char *yk_body_key(yk_body_t *body, const char *member);

int64_t yk_body_number(yk_body_t *body, const char *member, int64_t min,
                       int64_t max, int64_t absent);

int yk_body_flag(yk_body_t *body, const char *member, int absent);

/** @return NULL: not sent */
yk_body_t *yk_body_object(yk_body_t *body, const char *member);

/** A list of 1 .. max values. @return how many; 0: not sent */
uint32_t yk_body_list(yk_body_t ***items, yk_body_t *body, const char *member,
                      uint32_t max);

/** The names of an object whose members have free names.
 *  @return how many, at most max */
uint32_t yk_body_names(const char ***names, yk_body_t *object, uint32_t max);

/** Refuse a member for a reason of the caller's. */
void yk_body_refuse(yk_body_t *body, const char *member, const char *allowed,
                    const char *detail, ...)
    __attribute__((format(printf, 4, 5)));

/** Refuse when the member was not sent. */
void yk_body_need(yk_body_t *body, const char *member, const char *allowed);

/** Where a value or its member stands: "take.lines[2].place". */
const char *yk_body_path(const yk_body_t *body, const char *member);

/** @return 1 when it came as a form */
int yk_body_is_form(const yk_body_t *body);

/** @return 1 when something was refused already */
int yk_body_is_bad(const yk_body_t *body);

/** Refuse what nobody asked for, anywhere in the tree below `body`.
 *  @return APR_SUCCESS, or APR_EINVAL: the first fault (INVALID) */
apr_status_t yk_body_check(yk_body_t *body, yk_fault_t *fault);

#endif
