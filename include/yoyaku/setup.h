/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_SETUP_H
#define YOYAKU_SETUP_H

#include "store.h"

/**
 * @file setup.h
 * @brief What operators do: schema, halls, slots, prices, limits.
 *
 * Each call is idempotent: asked again it changes nothing and says so. Every
 * one that changes something adds 1 to the version of what it touched
 * (slot.h). `say` is set to one sentence about what was done, or about why not.
 *
 * Statuses beside answer.h's: APR_EINVAL (say tells the field and the range),
 * APR_NOTFOUND (no such tenant, hall, slot).
 */

/** Apply the schema files of `folder` that are missing, in order. Without a
 *  lock: each step can be done twice, so two hosts may do it at once. Refuses
 *  an engine that is not InnoDB (APR_ENOTIMPL). */
apr_status_t yk_setup_schema(yk_store_t *store, const char **say,
                             const char *folder, apr_pool_t *p);

/** Make a tenant; "default" exists after schema. Its bookers' anchors are made
 *  by its first limit per booker. */
apr_status_t yk_setup_tenant(yk_store_t *store, const char **say,
                             uint32_t *tenant_id, const char *name,
                             apr_pool_t *p);

/** Called while long work goes on: so many of so many. May be NULL. */
typedef void yk_setup_progress_fn(void *baton, uint32_t done, uint32_t all);

/** Put a hall into the book: whole or not at all. The same digest under the
 *  same name changes nothing; another drawing makes the next version. */
apr_status_t yk_setup_hall(yk_store_t *store, const char **say,
                           uint64_t *hall_id, uint32_t tenant_id,
                           const yk_hall_t *hall,
                           yk_setup_progress_fn *progress, void *baton,
                           apr_pool_t *p);

typedef struct yk_setup_area_t {
    const char *name;
    yk_mode_e mode;
    int64_t max;             /**< pooled only */
} yk_setup_area_t;

typedef struct yk_setup_slot_t {
    const char *key, *title, *resource, *series; /**< NULL: not said */
    const char *hall;        /**< name (newest version), or NULL: pools only */
    apr_time_t starts, ends, opens, closes;      /**< 0: not said */
    uint32_t nareas;
    yk_setup_area_t *areas;  /**< sections not named are placed */
} yk_setup_slot_t;

/** Add a slot (closed at first), its areas, anchors and place rows. Again with
 *  the same words, or fewer: nothing. Other words: title, series and times
 *  change; hall, areas and resource never do (APR_EINVAL). A series said with a
 *  resource is the tag of all its slots; one not said is the resource's. */
apr_status_t yk_setup_slot(yk_store_t *store, const char **say,
                           uint32_t tenant_id, const yk_setup_slot_t *slot,
                           apr_pool_t *p);

/** Set a price for a grade, or an area, or (both NULL) for everything; quota
 *  -1: none. Counts of a new quota begin with the live lines: the call waits
 *  for every hold that did not count them. */
apr_status_t yk_setup_price(yk_store_t *store, const char **say,
                            uint32_t tenant_id, const char *slot,
                            const char *grade, const char *area,
                            const char *tariff, int64_t amount,
                            const char *currency, int64_t quota,
                            apr_pool_t *p);

/** Add a limit, or change its max when all but max is the same. One per booker
 *  is in force when the call returns: it waits for every hold that did not
 *  look at it. */
apr_status_t yk_setup_limit(yk_store_t *store, const char **say,
                            uint32_t tenant_id, yk_per_e per, yk_over_e over,
                            const char *key, yk_counted_e count, int64_t max,
                            apr_pool_t *p);

/** Take a limit away. One per booker binds nobody any more when the call
 *  returns: it waits for every hold that still looked at it. One that is not
 *  there changes nothing. */
apr_status_t yk_setup_limit_remove(yk_store_t *store, const char **say,
                                   uint32_t tenant_id, yk_per_e per,
                                   yk_over_e over, const char *key,
                                   yk_counted_e count, apr_pool_t *p);

/** All limits of a tenant: by reach, then by key. */
apr_status_t yk_setup_limits(yk_store_t *store, yk_limit_t **limits,
                             uint32_t *n, uint32_t tenant_id, apr_pool_t *p);

/** Open or close; close returns when no hold that saw it open is going on. */
apr_status_t yk_setup_slot_state(yk_store_t *store, const char **say,
                                 uint32_t tenant_id, const char *slot,
                                 yk_slot_state_e state, apr_pool_t *p);

/** Keep a free place from sale, or put it back on sale. APR_EINVAL: somebody
 *  holds or booked it, or its area is not sold place by place. */
apr_status_t yk_setup_place(yk_store_t *store, const char **say,
                            uint32_t tenant_id, const char *slot,
                            const char *place, int for_sale, apr_pool_t *p);

#endif
