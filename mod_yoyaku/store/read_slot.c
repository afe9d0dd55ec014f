/* SPDX-License-Identifier: Apache-2.0 */
#include "read_slot.h"
#include <apr_strings.h>
#include <string.h>

/* A slot on its way in: four statements of one packet. */
typedef struct reading_t {
    yk_slot_t *slot;
    apr_pool_t *p;
    uint32_t area_space, price_space, limit_space;
} reading_t;

const char yk_slot_select[] =
    "s.slot_id,s.tenant_id,s.version,t.version,s.slot_key,s.title,"
    "s.resource,s.series,s.hall_id,s.starts_us,s.ends_us,s.opens_us,"
    "s.closes_us,s.state";

yk_slot_t *yk_slot_read(char **row, const unsigned long *lengths, apr_pool_t *p)
{
    yk_slot_t *slot = apr_pcalloc(p, sizeof(*slot));

    slot->slot_id = yk_column_uint(row[0]);
    slot->tenant_id = (uint32_t)yk_column_uint(row[1]);
    slot->version = yk_column_uint(row[2]);
    slot->tenant_version = yk_column_uint(row[3]);
    slot->key = yk_column_text(row[4], lengths[4], p);
    slot->title = yk_column_text(row[5], lengths[5], p);
    slot->resource = yk_column_text(row[6], lengths[6], p);
    slot->series = yk_column_text(row[7], lengths[7], p);
    slot->hall_id = yk_column_uint(row[8]);
    slot->starts = yk_column_int(row[9]);
    slot->ends = yk_column_int(row[10]);
    slot->opens = yk_column_int(row[11]);
    slot->closes = yk_column_int(row[12]);
    slot->state = yk_column_uint(row[13]) == 1 ? YK_SLOT_OPEN : YK_SLOT_CLOSED;
    return slot;
}

static void *room(void *rows, uint32_t n, uint32_t *space, apr_size_t size,
                  apr_pool_t *p)
{
    void *wider;

    if (n < *space) {
        return rows;
    }
    *space = *space > 0 ? 2 * *space : 8;
    wider = apr_palloc(p, *space * size);
    if (n > 0) {
        memcpy(wider, rows, n * size);
    }
    return wider;
}

static void slot_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    r->slot = yk_slot_read(row, lengths, r->p);
}

static void area_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_area_t *area;

    /* area_no is the index; what was added between two statements is not yet
     * this copy's */
    if (r->slot == NULL || yk_column_uint(row[0]) != r->slot->nareas) {
        return;
    }
    r->slot->areas = room(r->slot->areas, r->slot->nareas, &r->area_space,
                          sizeof(*area), r->p);
    area = &r->slot->areas[r->slot->nareas++];
    area->area_no = (uint32_t)yk_column_uint(row[0]);
    area->mode = (yk_mode_e)yk_column_uint(row[1]);
    area->name = yk_column_text(row[2], lengths[2], r->p);
    area->max = yk_column_int(row[3]);
}

static void price_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_price_t *price;

    if (r->slot == NULL) {
        return;
    }
    r->slot->prices = room(r->slot->prices, r->slot->nprices, &r->price_space,
                           sizeof(*price), r->p);
    price = &r->slot->prices[r->slot->nprices++];
    price->price_no = (uint32_t)yk_column_uint(row[0]);
    price->tariff = yk_column_text(row[1], lengths[1], r->p);
    price->grade =
        row[2] != NULL ? yk_column_text(row[2], lengths[2], r->p) : NULL;
    price->area_no = (int32_t)yk_column_int(row[3]);
    price->amount = yk_column_int(row[4]);
    yk_column_bytes(price->currency, sizeof(price->currency), row[5],
                    lengths[5]);
    price->quota = yk_column_int(row[6]);
    price->counted = (int)yk_column_int(row[7]);
}

static void limit_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_limit_t *limit;

    if (r->slot == NULL) {
        return;
    }
    r->slot->limits = room(r->slot->limits, r->slot->nlimits, &r->limit_space,
                           sizeof(*limit), r->p);
    limit = &r->slot->limits[r->slot->nlimits++];
    limit->limit_id = yk_column_uint(row[0]);
    limit->per = (yk_per_e)yk_column_uint(row[1]);
    limit->over = (yk_over_e)yk_column_uint(row[2]);
    limit->key = yk_column_text(row[3], lengths[3], r->p);
    limit->count = (yk_counted_e)yk_column_uint(row[4]);
    limit->max = yk_column_int(row[5]);
    limit->in_force = (int)yk_column_int(row[6]);
}

/* How a slot is named: by number, or by tenant and key. */
typedef struct name_t {
    uint64_t slot_id;
    uint32_t tenant_id;
    const char *key;
} name_t;

static void where(yk_sql_t *sql, const name_t *name)
{
    if (name->key == NULL) {
        yk_sql_put(sql, " WHERE s.slot_id=");
        yk_sql_uint(sql, name->slot_id);
        return;
    }
    yk_sql_put(sql, " WHERE s.tenant_id=");
    yk_sql_uint(sql, name->tenant_id);
    yk_sql_put(sql, " AND s.slot_key=");
    yk_sql_text(sql, name->key);
}

/*
 * The versions come first: what an operator changes between two of these
 * statements makes the copy look old, never young.
 */
static apr_status_t read_slot(yk_store_t *store, yk_slot_t **slot,
                              const name_t *name, apr_pool_t *p)
{
    yk_packet_t *packet = yk_packet_make(store);
    reading_t r = {NULL, p, 0, 0, 0};
    yk_sql_t *sql;
    apr_status_t rv;

    sql = yk_packet_ask(packet, slot_row, &r);
    yk_sql_put(sql, "SELECT ");
    yk_sql_put(sql, yk_slot_select);
    yk_sql_put(sql, " FROM yoyaku_slot s STRAIGHT_JOIN yoyaku_tenant t"
                    " ON t.tenant_id=s.tenant_id");
    where(sql, name);
    sql = yk_packet_ask(packet, area_row, &r);
    yk_sql_put(sql, "SELECT a.area_no,a.mode,a.name,a.max FROM yoyaku_slot s"
                    " STRAIGHT_JOIN yoyaku_area a ON a.slot_id=s.slot_id");
    where(sql, name);
    yk_sql_put(sql, " ORDER BY a.area_no");
    sql = yk_packet_ask(packet, price_row, &r);
    yk_sql_put(sql, "SELECT p.price_no,p.tariff,p.grade,p.area_no,p.amount,"
                    "p.currency,p.quota,p.counted FROM yoyaku_slot s"
                    " STRAIGHT_JOIN yoyaku_price p ON p.slot_id=s.slot_id");
    where(sql, name);
    yk_sql_put(sql, " ORDER BY p.price_no");
    sql = yk_packet_ask(packet, limit_row, &r);
    yk_sql_put(sql, "SELECT l.limit_id,l.per,l.reach,l.reach_key,l.counted,"
                    "l.max,l.in_force FROM yoyaku_slot s STRAIGHT_JOIN"
                    " yoyaku_limit l ON l.tenant_id=s.tenant_id AND"
                    " (l.reach=3 OR (l.reach=0 AND l.reach_key=s.slot_key)"
                    " OR (l.reach=1 AND l.reach_key=s.resource)"
                    " OR (l.reach=2 AND l.reach_key=s.series))");
    where(sql, name);
    yk_sql_put(sql, " ORDER BY l.limit_id");
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS && r.slot == NULL) {
        return APR_NOTFOUND;
    }
    if (rv == APR_SUCCESS) {
        *slot = r.slot;
    }
    return rv;
}

apr_status_t yk_store_slot(yk_store_t *store, yk_slot_t **slot,
                           uint32_t tenant_id, const char *key, apr_pool_t *p)
{
    name_t name = {0, tenant_id, key};
    return read_slot(store, slot, &name, p);
}

apr_status_t yk_store_slot_by_id(yk_store_t *store, yk_slot_t **slot,
                                 uint64_t slot_id, apr_pool_t *p)
{
    name_t name = {slot_id, 0, NULL};
    return read_slot(store, slot, &name, p);
}

static void version_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_version_t *version = baton;

    version->found = 1;
    version->version = yk_column_uint(row[0]);
    version->tenant_version = yk_column_uint(row[1]);
}

apr_status_t yk_store_slot_version(yk_store_t *store, yk_version_t *version,
                                   uint64_t slot_id)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql;
    apr_status_t rv;

    memset(version, 0, sizeof(*version));
    version->slot_id = slot_id;
    sql = yk_packet_ask(packet, version_row, version);
    yk_sql_put(sql, "SELECT s.version,t.version FROM yoyaku_slot s"
                    " STRAIGHT_JOIN yoyaku_tenant t"
                    " ON t.tenant_id=s.tenant_id WHERE s.slot_id=");
    yk_sql_uint(sql, slot_id);
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS && !version->found) {
        return APR_NOTFOUND;
    }
    return rv;
}

static void tenant_row(void *baton, char **row, const unsigned long *lengths)
{
    *(uint32_t *)baton = (uint32_t)yk_column_uint(row[0]);
}

apr_status_t yk_store_tenant(yk_store_t *store, uint32_t *tenant_id,
                             const char *name)
{
    yk_packet_t *packet = yk_packet_make(store);
    uint32_t found = 0;
    yk_sql_t *sql = yk_packet_ask(packet, tenant_row, &found);
    apr_status_t rv;

    yk_sql_put(sql, "SELECT tenant_id FROM yoyaku_tenant WHERE name=");
    yk_sql_text(sql, name);
    rv = yk_packet_run(packet);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (found == 0) {
        return APR_NOTFOUND;
    }
    *tenant_id = found;
    return APR_SUCCESS;
}
