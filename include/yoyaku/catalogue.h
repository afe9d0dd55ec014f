/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_CATALOGUE_H
#define YOYAKU_CATALOGUE_H

#include "slot.h"
#include "store.h"

/**
 * @file catalogue.h
 * @brief Slots and plans a process has at hand, so that a hold is two packets.
 *
 * A copy of a slot may be old; whoever decides compares its versions with
 * those read after the locks (slot.h) and drops it when they differ. Plans are
 * files in a directory, compiled from the book by whoever needs one first and
 * mapped by all.
 *
 * One per process, made after fork(); its calls lock a mutex of its own, so
 * threads may share it. A slot handed out stays good until the pool it was
 * handed out for is destroyed. At most YK_CATALOGUE_SLOTS are kept, the ones
 * least recently used give way.
 */

#define YK_CATALOGUE_SLOTS 256

typedef struct yk_catalogue_t yk_catalogue_t;

/** @param folder where plan files lie; written by this process's user */
apr_status_t yk_catalogue_create(yk_catalogue_t **catalogue,
                                 const char *folder, apr_pool_t *p);

/** This process ends, maybe inside a signal handler: from now on the end of a
 *  pool that was handed a slot touches no catalogue, which may be gone first. */
void yk_catalogue_abandon(void);

/**
 * A slot by key, from memory or else from the book, with its plan.
 * @param fresh 1: read it from the book now
 * @param was_fresh may be NULL; set to 1 when it was read from the book
 * @return APR_NOTFOUND: there is none (asked of the book just now)
 */
apr_status_t yk_catalogue_slot(yk_catalogue_t *c, const yk_slot_t **slot,
                               int *was_fresh, yk_store_t *store,
                               uint32_t tenant_id, const char *key, int fresh,
                               apr_pool_t *p);

apr_status_t yk_catalogue_slot_by_id(yk_catalogue_t *c, const yk_slot_t **slot,
                                     yk_store_t *store, uint64_t slot_id,
                                     int fresh, apr_pool_t *p);

/** Forget a copy that turned out old. */
void yk_catalogue_drop(yk_catalogue_t *c, uint64_t slot_id);

/** tenant_id by name; remembered for ever once found. APR_NOTFOUND. */
apr_status_t yk_catalogue_tenant(yk_catalogue_t *c, uint32_t *tenant_id,
                                 yk_store_t *store, const char *name);

#endif
