/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "operate.h"
#include "setup_slot.h"

static void put_slot(yk_packet_t *packet, const yk_making_slot_t *m,
                     const char *series)
{
    const yk_setup_slot_t *said = m->said;
    yk_sql_t *sql = yk_packet_do(packet);

    yk_sql_put(sql, "INSERT INTO yoyaku_slot (slot_id,tenant_id,slot_key,"
                    "version,state,title,resource,series,hall_id,nplaces,"
                    "starts_us,ends_us,opens_us,closes_us) VALUES ");
    yk_sql_row(sql);
    yk_sql_uint(sql, m->slot_id);
    yk_sql_uint(sql, m->tenant_id);
    yk_sql_text(sql, said->key);
    yk_sql_uint(sql, 1);
    yk_sql_uint(sql, 0);
    yk_sql_text(sql, said->title);
    yk_sql_text(sql, said->resource);
    yk_sql_text(sql, series);
    yk_sql_uint(sql, m->hall_id);
    yk_sql_uint(sql, m->nplaces);
    yk_sql_int(sql, said->starts);
    yk_sql_int(sql, said->ends);
    yk_sql_int(sql, said->opens);
    yk_sql_int(sql, said->closes);
    yk_sql_row_end(sql);
}

static void put_areas(yk_packet_t *packet, const yk_making_slot_t *m)
{
    yk_sql_t *sql = yk_packet_do(packet);
    uint32_t i;

    yk_sql_put(sql, "INSERT INTO yoyaku_area (slot_id,area_no,mode,name,max,"
                    "first_place,places) VALUES ");
    for (i = 0; i < m->nareas; i++) {
        const yk_making_area_t *area = &m->areas[i];
        yk_sql_row(sql);
        yk_sql_uint(sql, m->slot_id);
        yk_sql_uint(sql, i);
        yk_sql_uint(sql, area->mode);
        yk_sql_text(sql, area->name);
        yk_sql_int(sql, area->max);
        yk_sql_uint(sql, area->first);
        yk_sql_uint(sql, area->places);
        yk_sql_row_end(sql);
    }
}

/* Every place of the section free: a bit each, lowest first. */
static void put_map(yk_sql_t *sql, const yk_making_area_t *area, apr_pool_t *p)
{
    uint32_t bytes = (area->places + 7) / 8;
    unsigned char *map;
    uint32_t i;

    if (area->mode != YK_MODE_ASSIGNED) {
        yk_sql_null(sql);
        return;
    }
    map = apr_pcalloc(p, bytes + 1);
    for (i = 0; i < area->places; i++) {
        map[i / 8] |= (unsigned char)(1u << (i % 8));
    }
    yk_sql_hex(sql, map, bytes);
}

static void put_anchors(yk_packet_t *packet, const yk_making_slot_t *m)
{
    yk_sql_t *sql = NULL;
    uint32_t i, n = 0;

    for (i = 0; i < m->nareas; i++) {
        const yk_making_area_t *area = &m->areas[i];
        if (area->mode != YK_MODE_POOLED && area->mode != YK_MODE_ASSIGNED) {
            continue;
        }
        if (n++ == 0) {
            sql = yk_packet_do(packet);
            yk_sql_put(sql, "INSERT INTO yoyaku_lock_anchor (kind,owner,no,"
                            "used,max,version,map) VALUES ");
        }
        yk_sql_row(sql);
        yk_sql_uint(sql, YK_ANCHOR_AREA);
        yk_sql_uint(sql, m->slot_id);
        yk_sql_uint(sql, i);
        yk_sql_uint(sql, 0);
        yk_sql_int(sql, area->max);
        yk_sql_uint(sql, 1);
        put_map(sql, area, packet->p);
        yk_sql_row_end(sql);
    }
}

/* All places in one statement, from the hall's. Those of closed and pooled
 * sections are not for sale one by one. */
static void put_places(yk_packet_t *packet, const yk_making_slot_t *m)
{
    const char *comma = "";
    yk_sql_t *sql;
    uint32_t i;

    if (m->hall_id == 0) {
        return;
    }
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "INSERT INTO yoyaku_slot_place (slot_id,place_no,order_id,"
                    "state,until_us,version) SELECT ");
    yk_sql_uint(sql, m->slot_id);
    yk_sql_put(sql, ",p.place_no,0,IF(p.section_no IN (");
    for (i = 0; i < m->nareas; i++) {
        if (m->areas[i].mode == YK_MODE_CLOSED ||
            m->areas[i].mode == YK_MODE_POOLED) {
            yk_sql_put(sql, comma);
            yk_sql_uint(sql, i);
            comma = ",";
        }
    }
    yk_sql_put(sql, *comma == '\0' ? "-1),3,0),0,1" : "),3,0),0,1");
    yk_sql_put(sql, " FROM yoyaku_place p FORCE INDEX (PRIMARY)"
                    " WHERE p.hall_id=");
    yk_sql_uint(sql, m->hall_id);
    yk_sql_put(sql, " ORDER BY p.place_no");
}

void yk_making_slot_resource(yk_packet_t *packet, yk_making_slot_t *m,
                             const char *resource, const char *series)
{
    yk_sql_t *sql;

    if (resource == NULL || *resource == '\0') {
        return;
    }
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "INSERT INTO yoyaku_resource (tenant_id,resource,series)"
                    " VALUES ");
    yk_sql_row(sql);
    yk_sql_uint(sql, m->tenant_id);
    yk_sql_text(sql, resource);
    yk_sql_text(sql, series);
    yk_sql_row_end(sql);
    yk_sql_put(sql, " ON DUPLICATE KEY UPDATE series=VALUES(series)");
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "UPDATE yoyaku_slot SET version=version+1,series=");
    yk_sql_text(sql, series);
    yk_sql_put(sql, " WHERE tenant_id=");
    yk_sql_uint(sql, m->tenant_id);
    yk_sql_put(sql, " AND resource=");
    yk_sql_text(sql, resource);
    yk_sql_put(sql, " AND series<>");
    yk_sql_text(sql, series);
}

static void series_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_making_slot_t *m = baton;
    m->tag = yk_column_text(row[0], lengths[0], m->p);
}

/* A slot that says no series takes its resource's. */
static apr_status_t find_series(yk_store_t *store, yk_making_slot_t *m,
                                const char **series)
{
    const char *said = m->said->series;
    yk_packet_t *packet;
    yk_sql_t *sql;
    apr_status_t rv;

    m->tag = NULL;
    *series = said != NULL ? said : "";
    if (m->said->resource == NULL || *m->said->resource == '\0') {
        return APR_SUCCESS;
    }
    packet = yk_packet_make(store);
    sql = yk_packet_ask(packet, series_row, m);
    yk_sql_put(sql, "SELECT series FROM yoyaku_resource WHERE tenant_id=");
    yk_sql_uint(sql, m->tenant_id);
    yk_sql_put(sql, " AND resource=");
    yk_sql_text(sql, m->said->resource);
    rv = yk_packet_run(packet);
    if (said == NULL && m->tag != NULL) {
        *series = m->tag;
    }
    m->moved = m->tag != NULL && strcmp(m->tag, *series) != 0;
    return rv;
}

apr_status_t yk_making_slot_write(yk_store_t *store, yk_making_slot_t *m)
{
    yk_packet_t *packet;
    const char *series = "";
    apr_status_t rv = find_series(store, m, &series);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    m->slot_id = yk_operate_number();
    packet = yk_packet_make(store);
    put_slot(packet, m, series);
    put_areas(packet, m);
    put_anchors(packet, m);
    put_places(packet, m);
    yk_making_slot_resource(packet, m, m->said->resource, series);
    yk_packet_commit(packet);
    return yk_packet_run(packet);
}
