/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_LANE_RUN_H
#define YK_LANE_RUN_H

#include "ask.h"

/**
 * @file lane_run.h
 * @brief A deed by way of its lane, where it has one; else at once.
 */

/** Statuses as yk_deed_run()'s. */
apr_status_t yk_lane_run(yk_deed_t *deed);

/** The lane of a deed: that of the one slot it names, or of the slot its order
 *  was last seen in; YK_LANE_NONE: several slots, or not known. */
uint32_t yk_lane_of(const yk_lane_host_t *host, const yk_deed_t *deed);

/** Remember the lane of an order whose lines are all of one slot. */
void yk_lane_hint(const yk_lane_host_t *host, uint32_t lane,
                  const yk_order_t *order);

#endif
