/* SPDX-License-Identifier: Apache-2.0 */
#include "packet.h"

static void used_row(void *baton, char **row, const unsigned long *lengths)
{
    *(int *)baton = 1;
}

/* By primary key: locks nothing. */
apr_status_t yk_store_once_used(yk_store_t *store, int *used,
                                uint32_t tenant_id, const yk_hash_t *scope)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, used_row, used);

    *used = 0;
    yk_sql_put(sql, "SELECT 1 FROM yoyaku_idempotency FORCE INDEX (PRIMARY)"
                    " WHERE tenant_id=");
    yk_sql_uint(sql, tenant_id);
    yk_sql_put(sql, " AND scope=");
    yk_sql_hash(sql, scope);
    return yk_packet_run(packet);
}
