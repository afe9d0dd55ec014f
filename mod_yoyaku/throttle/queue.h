/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_QUEUE_H
#define YK_QUEUE_H

#include "yoyaku/throttle.h"

/**
 * @file queue.h
 * @brief Between the files of the decisions: lists, chains and counts.
 */

/** A free row; YK_HOLDER_NONE when there is none. */
uint32_t yk_queue_row_take(yk_throttle_table_t *t);
void yk_queue_row_give(yk_throttle_table_t *t, uint32_t holder);

/** Count a holder as WAIT or RUN: lists, chain, numbers, peaks. */
void yk_queue_count(yk_throttle_table_t *t, uint32_t holder, uint32_t as);
/** Count it no more. */
void yk_queue_uncount(yk_throttle_table_t *t, uint32_t holder);

/** How many of this user run and wait under the rule. */
void yk_queue_of_user(const yk_throttle_table_t *t, uint32_t *running,
                      uint32_t *waiting, uint32_t rule,
                      const unsigned char user[16]);

/** 1: sixteen zeros, nobody. */
int yk_queue_is_nobody(const unsigned char user[16]);

#endif
