/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_VERDICT_H
#define INTERLEAVE_VERDICT_H

#include "stage.h"

/**
 * @file verdict.h
 * @brief What a script demands of the end: finally, reach, never.
 *
 *   a held|taken          what session a's last act was answered
 *   a.1 ok                its first act (clock counts as an act)
 *   one-of held taken     the sessions' last answers, one each, in any order
 *   order x confirmed     the state in the book; none: there is no such order
 *   same a b              both names lead to one order, with one token
 *   late x                it was confirmed past its deadline
 *   place A-1 x|nobody    who the place row names (s/A-1 in another slot)
 *   state A-1 0|1|2       and how
 *   pool Floor 3          what the area's anchor has counted: 3, <=3, >=3
 *   quota adult <=5       what live lines of that tariff are
 *   live 4                places and counts in live lines, in all
 *   lines x 2             live lines of an order
 *   booker bob <=2        places in live lines of a booker
 *   orders 2              rows of orders
 *   nothing-since a       as much is live as when session a did `count`
 *   journal released 1    rows of the journal by reason
 *
 * `and` joins conditions, `or` separates alternatives, `not` before one turns
 * it round; `if C then C` holds when the first does not.
 */

/** @return NULL, or which demand was not met */
const char *verdict_of(const stage_run_t *run, apr_pool_t *p);

/** @return 1 when the condition holds at the end of the run */
int verdict_holds(const stage_run_t *run, const char *condition, apr_pool_t *p);

#endif
