/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "operate.h"

typedef struct turning_t {
    uint32_t tenant_id;
    const char *key;
    yk_slot_state_e state;
    apr_pool_t *p;

    const char *wrong;
    uint64_t slot_id;
    int is_same;
} turning_t;

static apr_status_t turn(yk_store_t *store, void *baton)
{
    turning_t *m = baton;
    yk_slot_t *slot;
    yk_packet_t *packet;
    yk_sql_t *sql;
    apr_status_t rv = yk_operate_begin(store, m->tenant_id);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = yk_store_slot(store, &slot, m->tenant_id, m->key, m->p);
    if (rv == APR_NOTFOUND) {
        m->wrong = apr_psprintf(m->p, "There is no slot %s.", m->key);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    m->slot_id = slot->slot_id;
    m->is_same = slot->state == m->state;
    if (m->is_same) {
        return APR_SUCCESS;
    }
    packet = yk_packet_make(store);
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "UPDATE yoyaku_slot SET state=");
    yk_sql_uint(sql, m->state == YK_SLOT_OPEN);
    yk_sql_put(sql, " WHERE slot_id=");
    yk_sql_uint(sql, m->slot_id);
    yk_operate_touch_slot(packet, m->slot_id);
    yk_packet_commit(packet);
    return yk_packet_run(packet);
}

apr_status_t yk_setup_slot_state(yk_store_t *store, const char **say,
                                 uint32_t tenant_id, const char *slot,
                                 yk_slot_state_e state, apr_pool_t *p)
{
    turning_t m;
    apr_status_t rv;

    memset(&m, 0, sizeof(m));
    m.tenant_id = tenant_id;
    m.key = slot;
    m.state = state;
    m.p = p;
    if (slot == NULL || !yk_operate_is_text(slot, 64)) {
        *say = "slot: a key of 1 to 64 bytes.";
        return APR_EINVAL;
    }
    rv = yk_operate(store, turn, &m);
    if (rv == APR_SUCCESS && state == YK_SLOT_CLOSED) {
        /* also when it was closed already: an earlier command may have been
         * cut short between its two steps */
        rv = yk_operate_barrier(store, m.slot_id);
    }
    if (rv != APR_SUCCESS) {
        *say = m.wrong != NULL      ? m.wrong
               : rv == APR_NOTFOUND ? "There is no such tenant."
                                    : "The slot's state could not be changed "
                                      "for sure: ask again.";
        return rv;
    }
    *say = apr_psprintf(p,
                        m.is_same               ? "The slot %s is so already."
                        : state == YK_SLOT_OPEN ? "Opened the slot %s."
                                                : "Closed the slot %s.",
                        slot);
    return APR_SUCCESS;
}
