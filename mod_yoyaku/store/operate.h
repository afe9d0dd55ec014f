/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_OPERATE_H
#define YK_STORE_OPERATE_H

#include "packet.h"
#include "yoyaku/setup.h"

/**
 * @file operate.h
 * @brief What operators' commands share.
 *
 * Commands of one tenant take turns: each transaction begins by locking the
 * tenant's row, which no hold ever locks. A command that met a deadlock or a
 * time-out begins again, for a minute at most.
 */

typedef apr_status_t yk_operate_fn(yk_store_t *store, void *baton);

/** Run a transaction until it is through. It ends with its own COMMIT; what it
 *  leaves open is rolled back. */
apr_status_t yk_operate(yk_store_t *store, yk_operate_fn *fn, void *baton);

/** BEGIN and the turn. @return APR_NOTFOUND: no such tenant */
apr_status_t yk_operate_begin(yk_store_t *store, uint32_t tenant_id);

/** The versions that copies are compared with. */
void yk_operate_touch_slot(yk_packet_t *packet, uint64_t slot_id);
void yk_operate_touch_tenant(yk_packet_t *packet, uint32_t tenant_id);

/** A random number for a row that shows up in caches: never met again in
 *  another book, and exact in every reader's arithmetic (53 bits). */
uint64_t yk_operate_number(void);

/** @return 1 when the text is UTF-8 of 1 .. most bytes */
int yk_operate_is_text(const char *text, apr_size_t most);

/**
 * The barrier: lock and let go, in lock order, every anchor and place of a
 * slot. Whoever read the rules before they changed holds one of them until he
 * has committed; so after this call all of that is in the book. Piece by piece:
 * no row has to be held together with another for that.
 */
apr_status_t yk_operate_barrier(yk_store_t *store, uint64_t slot_id);

/** The barrier over every slot a rule reaches, one after the other. */
apr_status_t yk_operate_barrier_over(yk_store_t *store, uint32_t tenant_id,
                                     yk_over_e over, const char *key,
                                     apr_pool_t *p);

#endif
