/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_RACE_H
#define INTERLEAVE_RACE_H

#include "stage.h"

/**
 * @file race.h
 * @brief Many sessions at once, nobody holding them back: a count at the end.
 *
 * 200 places and 60 threads, each with a desk of its own, that hold, confirm,
 * release and let run out until nothing is left. Then exactly 200 are sold, all
 * that anybody was told is in the book, and nothing else is.
 */

typedef struct race_t {
    const char *name;
    const char *house;     /**< set-up lines of a script, 200 places in all */
    const char *wishes[8]; /**< what a session draws from; NULL ends */
    int sessions;
    int churn; /**< also releases, lets run out, takes over */
    int lane;  /**< through the lanes of one host */
} race_t;

int race_count(void);
const char *race_name(int i);
/** @return NULL or what went wrong */
const char *race_run(world_t *world, int i, const mutant_t *mutant,
                     apr_pool_t *p);

/** Fifty release one order at once: it gives back once. */
const char *race_release(world_t *world, apr_pool_t *p);

#endif
