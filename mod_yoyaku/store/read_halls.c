/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_tables.h>
#include <string.h>
#include "packet.h"

typedef struct reading_t {
    apr_array_header_t *halls;
    apr_pool_t *p;
} reading_t;

static void hall_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_hall_t *hall = apr_pcalloc(r->p, sizeof(*hall));

    hall->hall_id = yk_column_uint(row[0]);
    hall->name = yk_column_text(row[1], lengths[1], r->p);
    hall->version = (uint32_t)yk_column_uint(row[2]);
    hall->width = yk_column_double(row[3]);
    hall->height = yk_column_double(row[4]);
    hall->nsections = (uint32_t)yk_column_uint(row[5]);
    hall->nplaces = (uint32_t)yk_column_uint(row[6]);
    hall->ngrades = (uint32_t)yk_column_uint(row[7]);
    yk_column_bytes(hall->digest.bytes, sizeof(hall->digest.bytes), row[8],
                    lengths[8]);
    APR_ARRAY_PUSH(r->halls, yk_hall_t *) = hall;
}

apr_status_t yk_store_halls(yk_store_t *store, yk_hall_t ***halls, uint32_t *n,
                            uint32_t tenant_id, apr_pool_t *p)
{
    reading_t r = {apr_array_make(p, 16, sizeof(yk_hall_t *)), p};
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, hall_row, &r);
    apr_status_t rv;

    yk_sql_put(sql, "SELECT hall_id,name,version,width,height,nsections,"
                    "nplaces,ngrades,digest FROM yoyaku_hall"
                    " WHERE tenant_id=");
    yk_sql_uint(sql, tenant_id);
    yk_sql_put(sql, " ORDER BY name,version");
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS) {
        *halls = (yk_hall_t **)r.halls->elts;
        *n = (uint32_t)r.halls->nelts;
    }
    return rv;
}
