/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_EXPLORE_H
#define INTERLEAVE_EXPLORE_H

#include "stage.h"

/**
 * @file explore.h
 * @brief All orders of steps of one script, or so many of them drawn.
 */

typedef struct explored_t {
    int orders;          /**< runs made */
    int complete;        /**< they were all there are */
    const char *failure; /**< the first, with its order of steps; NULL */
} explored_t;

/** Set the script's house up, play its `before` lines, and keep a copy.
 *  @return what the runs begin with */
cast_t *explore_begin(world_t *world, const script_t *script, apr_pool_t *p);

/** @param mutant NULL: the product as it is; then `reach` is demanded too */
explored_t explore(world_t *world, const script_t *script,
                   const mutant_t *mutant, apr_pool_t *p);

#endif
