/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include "operate.h"
#include "yoyaku/text.h"

typedef struct making_t {
    const char *name;
    uint32_t tenant_id;
    int is_new;
} making_t;

static apr_status_t make(yk_store_t *store, void *baton)
{
    making_t *m = baton;
    yk_packet_t *packet;
    yk_sql_t *sql;
    apr_status_t rv = yk_store_tenant(store, &m->tenant_id, m->name);

    if (rv != APR_NOTFOUND) {
        return rv;
    }
    /* two at once choose one number: one of them meets 1062 and looks again */
    m->is_new = 1;
    packet = yk_packet_make(store);
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "INSERT INTO yoyaku_tenant (tenant_id,name,version)"
                    " SELECT COALESCE(MAX(tenant_id),0)+1,");
    yk_sql_text(sql, m->name);
    yk_sql_put(sql, ",1 FROM yoyaku_tenant");
    rv = yk_packet_run(packet);
    return rv == APR_SUCCESS ? yk_store_tenant(store, &m->tenant_id, m->name)
                             : rv;
}

apr_status_t yk_setup_tenant(yk_store_t *store, const char **say,
                             uint32_t *tenant_id, const char *name,
                             apr_pool_t *p)
{
    making_t m = {name, 0, 0};
    apr_status_t rv;

    if (!yk_text_is_key(name)) {
        *say = "A tenant's name is 1 to 64 of letters, digits, dot, "
               "underscore, hyphen.";
        return APR_EINVAL;
    }
    rv = yk_operate(store, make, &m);
    if (rv != APR_SUCCESS) {
        *say = "The tenant could not be made.";
        return rv;
    }
    *tenant_id = m.tenant_id;
    *say = apr_psprintf(
        p, m.is_new ? "Made the tenant %s." : "The tenant %s is there.", name);
    return APR_SUCCESS;
}
