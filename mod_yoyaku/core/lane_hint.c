/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_run.h"
#include "yoyaku/text.h"
#include <string.h>

/*
 * Which lane. A slot's is the hash of database, tenant and key. What an order
 * touches only the book knows; so the host remembers where it saw the order
 * last: one word a hint, 56 bits of the order's token hash or number and 8 of
 * the lane, later ones over earlier ones. A hint that is gone costs a
 * transaction of one's own, a wrong one (two orders of one hash) nothing: a
 * batch may hold any deed.
 */

_Static_assert(YK_LANES <= 256, "a lane's number fits 8 bits");

static uint32_t lane_of_slot(const yk_lane_host_t *host, uint32_t tenant_id,
                             const char *key)
{
    uint64_t hash =
        yk_text_fnv(YK_TEXT_FNV ^ host->realm ^ tenant_id, key, strlen(key));
    uint32_t realms = YK_LANES / host->width;

    return (uint32_t)(host->realm % realms) * host->width +
           (uint32_t)(hash ^ hash >> 32) % host->width;
}

static uint64_t token_name(const yk_hash_t *token)
{
    uint64_t name;

    /* from its end: it begins with a time that many share */
    memcpy(&name, token->bytes + sizeof(token->bytes) - sizeof(name),
           sizeof(name));
    return name;
}

static uint64_t order_name(uint64_t order_id)
{
    return order_id * 0x9e3779b97f4a7c15U; /* 2^64 / the golden ratio */
}

static void put(const yk_lane_host_t *host, uint64_t name, uint32_t lane)
{
    atomic_store_explicit(&host->lanes->hint[(name >> 40) % YK_LANE_HINTS],
                          name << 8 | lane, memory_order_relaxed);
}

static uint32_t look(const yk_lane_host_t *host, uint64_t name)
{
    uint64_t hint = atomic_load_explicit(
        &host->lanes->hint[(name >> 40) % YK_LANE_HINTS], memory_order_relaxed);

    return hint != 0 && hint >> 8 == name << 8 >> 8 ? (uint32_t)(hint & 0xff)
                                                    : YK_LANE_NONE;
}

/* The lane of a wish whose lines are all of one slot. */
static uint32_t lane_of_wish(const yk_lane_host_t *host, uint32_t tenant_id,
                             const yk_wish_t *wish)
{
    for (uint32_t i = 1; i < wish->nlines; i++) {
        if (strcmp(wish->lines[i].slot, wish->lines[0].slot) != 0) {
            return YK_LANE_NONE;
        }
    }
    return lane_of_slot(host, tenant_id, wish->lines[0].slot);
}

uint32_t yk_lane_of(const yk_lane_host_t *host, const yk_deed_t *deed)
{
    const yk_ask_t *ask = deed->ask;
    uint32_t tenant_id = deed->desk->terms.tenant_id;

    if (ask->kind == YK_ASK_PATCH) {
        return YK_LANE_NONE; /* texts may be long, and lock only the order */
    }
    if (ask->wish != NULL && ask->wish->nlines > 0) {
        return lane_of_wish(host, tenant_id, ask->wish);
    }
    if (ask->claim == NULL) {
        return YK_LANE_NONE;
    }
    return look(host, ask->claim->token != NULL
                          ? token_name(ask->claim->token)
                          : order_name(ask->claim->order_id));
}

void yk_lane_hint(const yk_lane_host_t *host, uint32_t lane,
                  const yk_order_t *order)
{
    for (uint32_t i = 1; i < order->nlines; i++) {
        if (order->lines[i].slot_id != order->lines[0].slot_id) {
            lane = YK_LANE_NONE;
        }
    }
    if (lane != YK_LANE_NONE) {
        put(host, token_name(&order->token_hash), lane);
        put(host, order_name(order->order_id), lane);
    }
}
