/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_CHECK_CORE_H
#define YK_CHECK_CORE_H

#include <apr_pools.h>
#include <check.h>
#include "yoyaku/plan.h"

/** @file core.h
 *  @brief The suites of this folder, and halls for them. */

Suite *hall_csv_suite(void);
Suite *hall_json_suite(void);
Suite *lane_queue_suite(void);
Suite *order_suite(void);
Suite *plan_suite(void);
Suite *plan_seat_suite(void);
Suite *request_suite(void);
Suite *slot_suite(void);

/** The bytes of a file of the sources: "loadtest/halls/theatre-1011.json". */
const char *core_read(apr_size_t *len, const char *name, apr_pool_t *p);

/** A hall of a text that must be good. */
yk_hall_t *core_hall(const char *text, apr_pool_t *p);

/** A hall of those in loadtest/halls. */
yk_hall_t *core_hall_file(const char *name, apr_pool_t *p);

/** A path under the build folder that is removed with p. */
const char *core_path(apr_pool_t *p);

/** Compile a hall and map it. */
yk_plan_t *core_plan(const yk_hall_t *hall, apr_pool_t *p);

/** place_no of a guid in a hall; fails when there is none. */
uint32_t core_place(const yk_hall_t *hall, const char *guid);

#define COUNT_OF(list) ((int)(sizeof(list) / sizeof(*(list))))

#endif
