/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOAD_VIEW_H
#define LOAD_VIEW_H

#include <stddef.h>
#include <stdint.h>
#include "script.h"

/**
 * @file view.h
 * @brief What the bookers of one thread last saw of a slot's board.
 *
 * One character a place in plan order, '0' free; LOAD_VIEW_HOUSE where the
 * house seats people and nobody names a place. Of an area that is sold by
 * count, how many are left. Every board that comes in
 * replaces it, so who has just looked chooses from what he saw; who has not
 * chooses from what somebody saw a moment ago, as people do.
 */

#define LOAD_VIEW_HOUSE '-'

typedef struct load_view_t {
    const load_script_t *script;
    uint32_t nplaces, nfree; /**< nfree: of those that may be named */
    uint32_t left[LOAD_AREAS_MAX];
    char *states;
    char etag[80]; /**< of the last board, quotes and all; "" none */
} load_view_t;

void load_view_init(load_view_t *view, const load_script_t *script);

/** Read a board: every "places":"0012..." in it, one behind the other, and
 *  "free" of the script's areas.
 *  @return 0 when it does not show as many places as the hall has */
int load_view_read(load_view_t *view, const char *body, size_t len);

/**
 * Another slot that looks as if it had room.
 * @param views one a slot
 * @param area  of the script's; -1: places that may be named
 * @return its number, or `slot` when none has
 */
uint32_t load_view_other(const load_view_t *views, uint32_t slot, int area,
                         uint64_t *random);

void load_view_set(load_view_t *view, uint32_t place, char state);

/**
 * Choose n places that look free, side by side where they are.
 * @param blind any places, free or not
 * @return how many were found, 0 .. n
 */
uint32_t load_view_choose(const load_view_t *view, uint32_t *places, uint32_t n,
                          load_spread_e spread, int blind, uint64_t *random);

#endif
