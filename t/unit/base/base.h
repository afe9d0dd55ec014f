/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_CHECK_BASE_H
#define YK_CHECK_BASE_H

#include <apr_pools.h>
#include <check.h>

/** @file base.h
 *  @brief The suites of this folder. Each makes a pool of its own a test. */

Suite *answer_suite(void);
Suite *body_suite(void);
Suite *log_suite(void);
Suite *secret_suite(void);
Suite *text_suite(void);

#endif
