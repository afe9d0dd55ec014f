/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_SETUP_SLOT_H
#define YK_STORE_SETUP_SLOT_H

#include "operate.h"

/**
 * @file setup_slot.h
 * @brief A slot on its way into the book: setup_slot.c decides what it is,
 *        setup_slot_write.c writes it.
 */

#define YK_AREAS_MOST 10000
#define YK_POOL_MOST 1000000000

typedef enum yk_made_e {
    YK_MADE_NOTHING,
    YK_MADE_CHANGES,
    YK_MADE_SLOT
} yk_made_e;

typedef struct yk_making_area_t {
    const char *name;
    yk_mode_e mode;
    int64_t max;
    uint32_t first, places; /**< 0, 0: a pool beside the hall */
} yk_making_area_t;

typedef struct yk_making_slot_t {
    const yk_setup_slot_t *said;
    uint32_t tenant_id;
    apr_pool_t *p;
    uint64_t slot_id;
    yk_slot_t *was;       /**< set when it is there already */
    const char *was_hall; /**< its hall's name, NULL without one */
    uint64_t hall_id;
    uint32_t nplaces, nareas;
    yk_making_area_t *areas;
    yk_made_e done;
    const char *tag; /**< the resource's series before, or NULL */
    int moved;       /**< into another series: it, and its resource's
                          other slots */
    const char *wrong;
} yk_making_slot_t;

/** Everything of a new slot, and COMMIT. */
apr_status_t yk_making_slot_write(yk_store_t *store, yk_making_slot_t *m);

/** The resource and its tag; the tag reaches all of the resource's slots. */
void yk_making_slot_resource(yk_packet_t *packet, yk_making_slot_t *m,
                             const char *resource, const char *series);

#endif
