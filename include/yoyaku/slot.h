/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_SLOT_H
#define YOYAKU_SLOT_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdint.h>
#include "plan.h"

/**
 * @file slot.h
 * @brief What is for sale: a slot with its areas, prices and limits.
 *
 * Only operators change these rows. Every operator's command that touches a
 * slot adds 1 to the slot's `version`; one that touches what reaches over
 * several slots (a limit over a resource, a series or everything) adds 1 to
 * the tenant's. So a copy in memory is good exactly when both versions, read
 * after a hold's locks, are the copy's: that is how a hold plans from memory
 * and is still decided by the book.
 *
 * A yk_slot_t is immutable once made and lives as long as its pool.
 */

typedef enum yk_slot_state_e {
    YK_SLOT_CLOSED, /**< not on sale, seen with its state */
    YK_SLOT_OPEN    /**< on sale between opens and closes */
} yk_slot_state_e;

/** How an area is sold. The text is what commands and documents say. */
#define YK_MODES(X)                                                           \
    X(CLOSED, "closed")                                                       \
    X(PLACED, "placed")                                                       \
    X(ASSIGNED, "assigned")                                                   \
    X(POOLED, "pooled")

typedef enum yk_mode_e {
#define YK_MODE_ENUM(name, text) YK_MODE_##name,
    YK_MODES(YK_MODE_ENUM)
#undef YK_MODE_ENUM
        YK_MODE_COUNT
} yk_mode_e;

const char *yk_mode_name(yk_mode_e mode);

/** An area: a section of the hall as this slot sells it, or a pool. Areas 0 ..
 *  sections-1 are the hall's sections in order, so area_no == section_no. */
typedef struct yk_area_t {
    uint32_t area_no;
    yk_mode_e mode;
    const char *name;
    int64_t max;          /**< pooled: the pool; else the section's places */
} yk_area_t;

typedef struct yk_price_t {
    uint32_t price_no;    /**< unique in the slot, never used again */
    const char *tariff;
    const char *grade;    /**< NULL: every grade */
    int32_t area_no;      /**< -1: every area */
    int64_t amount;       /**< minor units, 0 .. YK_MONEY_MAX */
    char currency[4];
    int64_t quota;        /**< -1: none. Counted by an anchor when >= 0 */
    int counted;          /**< its anchor exists: lock and count it */
} yk_price_t;

typedef enum yk_per_e { YK_PER_ORDER, YK_PER_BOOKER } yk_per_e;
typedef enum yk_over_e {
    YK_OVER_SLOT,
    YK_OVER_RESOURCE,
    YK_OVER_SERIES,
    YK_OVER_ALL
} yk_over_e;
typedef enum yk_counted_e {
    YK_COUNT_PLACES,
    YK_COUNT_SLOTS,
    YK_COUNT_RESOURCES
} yk_counted_e;

typedef struct yk_limit_t {
    uint64_t limit_id;
    yk_per_e per;
    yk_over_e over;
    const char *key;      /**< of the slot, resource or series; "" for all */
    yk_counted_e count;
    int64_t max;
    int in_force;         /**< 0: lock and count already, refuse not yet */
} yk_limit_t;

typedef struct yk_slot_t {
    uint64_t slot_id;
    uint32_t tenant_id;
    uint64_t version;
    uint64_t tenant_version;
    const char *key;
    const char *title;
    const char *resource; /**< key; "" when none */
    const char *series;   /**< key; "" when none */
    uint64_t hall_id;     /**< 0: no hall, only pools */
    apr_time_t starts, ends, opens, closes; /**< 0: not set */
    yk_slot_state_e state;
    uint32_t nareas, nprices, nlimits;
    yk_area_t *areas;     /**< areas[i].area_no == i */
    yk_price_t *prices;   /**< ascending price_no */
    yk_limit_t *limits;   /**< those that reach this slot */
    yk_plan_t *plan;      /**< NULL without a hall; set by the catalogue */
} yk_slot_t;

/** @return the area by name, or NULL */
const yk_area_t *yk_slot_area(const yk_slot_t *slot, const char *name);

/**
 * The price that holds for a grade in an area under a tariff: one for the area
 * before one for the grade before one for everything.
 * @param grade NULL in a pool
 * @return NULL: not offered
 */
const yk_price_t *yk_slot_price(const yk_slot_t *slot, uint32_t area_no,
                                const char *grade, const char *tariff);

/**
 * When no tariff was named: the only one offered there.
 * @param choices set when there is none or more than one: "adult, child"
 * @return the tariff, or NULL
 */
const char *yk_slot_only_tariff(const yk_slot_t *slot, const char **choices,
                                uint32_t area_no, const char *grade,
                                apr_pool_t *p);

/** @return 1 when the slot is on sale at `now`. closes 0: until it starts. */
int yk_slot_on_sale(const yk_slot_t *slot, apr_time_t now);

/** "open", "closed", "before" (opens later), "over": for documents. */
const char *yk_slot_state_name(const yk_slot_t *slot, apr_time_t now);

#endif
