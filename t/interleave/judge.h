/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_JUDGE_H
#define INTERLEAVE_JUDGE_H

#include "play.h"

/**
 * @file judge.h
 * @brief What must be true of the book at every instant, and at the end.
 *
 * After every step, in one statement (so from one snapshot):
 *   at-most-one-owner  a place row and the live line of the order it names say
 *                      the same; no two orders that are confirmed or in time
 *                      have a live line on one place
 *   agree              what pools, quotas and assigned maps have counted is
 *                      what live lines and place rows say; ended orders have
 *                      no live line
 * At the end also: replaying the journal gives the places' states and versions
 * and the counts; no transaction is open; all that anybody was told is so.
 *
 * "In time" is meant by the latest clock that anybody in the script has.
 *
 * @return NULL, or what is wrong
 */
const char *judge_state(world_t *world, const cast_t *cast, apr_pool_t *p);
const char *judge_final(world_t *world, const cast_t *cast,
                        const script_t *script, apr_pool_t *p);

/** Everything that stands in the book, for a message. */
char *judge_dump(world_t *world, apr_pool_t *p);

#endif
