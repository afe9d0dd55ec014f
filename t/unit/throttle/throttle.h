/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_T_THROTTLE_H
#define YK_T_THROTTLE_H

#include <check.h>

Suite *rule_suite(void);
Suite *queue_suite(void);
Suite *queue_model_suite(void);
Suite *shared_suite(void);
Suite *room_suite(void);
Suite *steps_suite(void);

#endif
