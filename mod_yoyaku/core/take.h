/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_TAKE_H
#define YK_TAKE_H

#include "deed.h"

/**
 * @file take.h
 * @brief A wish with its names found: what take.c and take_party.c share.
 */

typedef struct yk_take_part_t {
    const char *tariff;      /**< "" without */
    const yk_price_t *price; /**< of a place or in a pool; parties: by seat */
    uint32_t quantity;
} yk_take_part_t;

typedef struct yk_take_line_t {
    const yk_slot_t *slot;
    const yk_area_t *area;
    uint32_t place_no; /**< or YK_NO_PLACE */
    uint32_t nparts, quantity;
    yk_take_part_t parts[YK_WISH_PARTS];
    const char *field;
} yk_take_line_t;

struct yk_take_t {
    const yk_wish_t *wish;
    uint32_t n;
    yk_take_line_t *lines;
};

/** A new line at a price (NULL: free of charge).
 *  @return NULL with the refusal set when currencies meet */
yk_line_t *yk_take_line_make(yk_deed_t *deed, yk_order_row_t *row,
                             const yk_take_line_t *from, const char *tariff,
                             const yk_price_t *price, uint32_t quantity);

/** Seat the party of one line of an assigned area.
 *  @return 1, or 0 with the refusal set */
int yk_take_party(yk_deed_t *deed, yk_order_row_t *row,
                  const yk_take_line_t *line, int together);

#endif
