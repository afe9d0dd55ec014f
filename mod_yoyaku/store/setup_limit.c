/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <apr_tables.h>
#include <string.h>
#include "operate.h"
#include "yoyaku/text.h"

#define BOOKER_ANCHORS 65536
#define ANCHOR_ROWS 4096

/*
 * A booker's limit comes in three steps: 1 committed, lock and count, refuse
 * nobody; 2 the barrier over every slot it reaches; 3 in force. Bookers are
 * counted by their lines, so there is no figure to set.
 *
 * Taking it away is 1, the row goes, and 2: whoever read it before may still
 * refuse by it, until he has let go of what he locked. Its anchors stay.
 */
typedef struct limiting_t {
    uint32_t tenant_id;
    yk_per_e per;
    yk_over_e over;
    yk_counted_e count;
    const char *key;
    int64_t max;
    apr_pool_t *p;

    const char *wrong;
    uint64_t slot_id; /* over a slot */
    uint64_t limit_id;
    int64_t was_max;
    int was_in_force, is_same, is_new, is_gone;
} limiting_t;

static void limit_row(void *baton, char **row, const unsigned long *lengths)
{
    limiting_t *m = baton;

    m->limit_id = yk_column_uint(row[0]);
    m->was_max = yk_column_int(row[1]);
    m->was_in_force = (int)yk_column_int(row[2]);
}

static void slot_row(void *baton, char **row, const unsigned long *lengths)
{
    limiting_t *m = baton;
    m->slot_id = yk_column_uint(row[0]);
}

static apr_status_t find(yk_store_t *store, limiting_t *m)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, limit_row, m);
    apr_status_t rv;

    m->limit_id = 0;
    m->slot_id = 0;
    yk_sql_put(sql, "SELECT limit_id,max,in_force FROM yoyaku_limit"
                    " WHERE tenant_id=");
    yk_sql_uint(sql, m->tenant_id);
    yk_sql_put(sql, " AND per=");
    yk_sql_uint(sql, m->per);
    yk_sql_put(sql, " AND reach=");
    yk_sql_uint(sql, m->over);
    yk_sql_put(sql, " AND reach_key=");
    yk_sql_text(sql, m->key);
    yk_sql_put(sql, " AND counted=");
    yk_sql_uint(sql, m->count);
    if (m->over == YK_OVER_SLOT) {
        sql = yk_packet_ask(packet, slot_row, m);
        yk_sql_put(sql, "SELECT slot_id FROM yoyaku_slot WHERE tenant_id=");
        yk_sql_uint(sql, m->tenant_id);
        yk_sql_put(sql, " AND slot_key=");
        yk_sql_text(sql, m->key);
    }
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS && m->over == YK_OVER_SLOT && m->slot_id == 0) {
        m->wrong = apr_psprintf(m->p, "There is no slot %s.", m->key);
        return APR_NOTFOUND;
    }
    return rv;
}

static apr_status_t commit(yk_packet_t *packet, const limiting_t *m)
{
    if (m->over == YK_OVER_SLOT) {
        yk_operate_touch_slot(packet, m->slot_id);
    }
    else {
        yk_operate_touch_tenant(packet, m->tenant_id);
    }
    yk_packet_commit(packet);
    return yk_packet_run(packet);
}

static void put_limit(yk_packet_t *packet, limiting_t *m)
{
    yk_sql_t *sql = yk_packet_do(packet);

    m->limit_id = yk_operate_number();
    yk_sql_put(sql, "INSERT INTO yoyaku_limit (limit_id,tenant_id,per,reach,"
                    "reach_key,counted,max,in_force) VALUES ");
    yk_sql_row(sql);
    yk_sql_uint(sql, m->limit_id);
    yk_sql_uint(sql, m->tenant_id);
    yk_sql_uint(sql, m->per);
    yk_sql_uint(sql, m->over);
    yk_sql_text(sql, m->key);
    yk_sql_uint(sql, m->count);
    yk_sql_int(sql, m->max);
    yk_sql_uint(sql, m->per == YK_PER_ORDER);
    yk_sql_row_end(sql);
}

static apr_status_t begin(yk_store_t *store, limiting_t *m)
{
    apr_status_t rv = yk_operate_begin(store, m->tenant_id);

    return rv == APR_SUCCESS ? find(store, m) : rv;
}

/* All of an order's limit; step 1 of a booker's. */
static apr_status_t put(yk_store_t *store, void *baton)
{
    limiting_t *m = baton;
    yk_packet_t *packet;
    yk_sql_t *sql;
    apr_status_t rv = begin(store, m);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    m->is_new = m->limit_id == 0;
    m->is_same = !m->is_new && m->was_max == m->max;
    if (m->is_same) {
        return APR_SUCCESS;
    }
    packet = yk_packet_make(store);
    if (m->is_new) {
        m->was_in_force = m->per == YK_PER_ORDER;
        put_limit(packet, m);
        return commit(packet, m);
    }
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "UPDATE yoyaku_limit SET max=");
    yk_sql_int(sql, m->max);
    yk_sql_put(sql, " WHERE limit_id=");
    yk_sql_uint(sql, m->limit_id);
    return commit(packet, m);
}

/* Step 3. */
static apr_status_t enforce(yk_store_t *store, void *baton)
{
    limiting_t *m = baton;
    yk_packet_t *packet;
    yk_sql_t *sql;
    apr_status_t rv = yk_operate_begin(store, m->tenant_id);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    packet = yk_packet_make(store);
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "UPDATE yoyaku_limit SET in_force=1 WHERE limit_id=");
    yk_sql_uint(sql, m->limit_id);
    return commit(packet, m);
}

/* ---- the bookers' anchors ---- */

static void count_row(void *baton, char **row, const unsigned long *lengths)
{
    *(uint64_t *)baton = yk_column_uint(row[0]);
}

/* Nobody locks them before the first limit names them, so they may come in
 * pieces, and twice. */
static apr_status_t make_anchors(yk_store_t *store, void *baton)
{
    limiting_t *m = baton;
    uint64_t have = 0;
    uint32_t i, j;
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, count_row, &have);
    apr_status_t rv;

    yk_sql_put(sql, "SELECT COUNT(*) FROM yoyaku_lock_anchor FORCE INDEX"
                    " (PRIMARY) WHERE kind=1 AND owner=");
    yk_sql_uint(sql, m->tenant_id);
    rv = yk_packet_run(packet);
    if (have >= BOOKER_ANCHORS) {
        return rv;
    }
    for (i = 0; i < BOOKER_ANCHORS && rv == APR_SUCCESS; i += ANCHOR_ROWS) {
        packet = yk_packet_make(store);
        sql = yk_packet_do(packet);
        yk_sql_put(sql, "INSERT IGNORE INTO yoyaku_lock_anchor (kind,owner,no,"
                        "used,max,version) VALUES ");
        for (j = i; j < i + ANCHOR_ROWS; j++) {
            yk_sql_row(sql);
            yk_sql_uint(sql, YK_ANCHOR_BOOKER);
            yk_sql_uint(sql, m->tenant_id);
            yk_sql_uint(sql, j);
            yk_sql_uint(sql, 0);
            yk_sql_uint(sql, 0);
            yk_sql_uint(sql, 1);
            yk_sql_row_end(sql);
        }
        rv = yk_packet_run(packet);
    }
    return rv;
}

static const char *check(const limiting_t *m, apr_pool_t *p)
{
    if ((unsigned)m->per > YK_PER_BOOKER || (unsigned)m->over > YK_OVER_ALL ||
        (unsigned)m->count > YK_COUNT_RESOURCES) {
        return "limit: per order or booker, over slot, resource, series or "
               "all, of places, slots or resources.";
    }
    if (m->over == YK_OVER_ALL ? *m->key != '\0'
                               : !yk_operate_is_text(m->key, YK_TEXT_KEY)) {
        return apr_psprintf(p, "key: 1 to %d bytes; none over all.",
                            YK_TEXT_KEY);
    }
    if (m->max < 0 || m->max > 1000000) {
        return "max: 0 to 1000000.";
    }
    return NULL;
}

/* Which limit it is about. */
static void name(limiting_t *m, uint32_t tenant_id, yk_per_e per,
                 yk_over_e over, const char *key, yk_counted_e count,
                 apr_pool_t *p)
{
    memset(m, 0, sizeof(*m));
    m->tenant_id = tenant_id;
    m->per = per;
    m->over = over;
    m->key = key != NULL ? key : "";
    m->count = count;
    m->p = p;
}

apr_status_t yk_setup_limit(yk_store_t *store, const char **say,
                            uint32_t tenant_id, yk_per_e per, yk_over_e over,
                            const char *key, yk_counted_e count, int64_t max,
                            apr_pool_t *p)
{
    limiting_t m;
    apr_status_t rv = APR_SUCCESS;

    name(&m, tenant_id, per, over, key, count, p);
    m.max = max;
    *say = check(&m, p);
    if (*say != NULL) {
        return APR_EINVAL;
    }
    if (per == YK_PER_BOOKER) {
        rv = yk_operate(store, make_anchors, &m);
    }
    if (rv == APR_SUCCESS) {
        rv = yk_operate(store, put, &m);
    }
    if (rv == APR_SUCCESS && !m.was_in_force) {
        rv = yk_operate_barrier_over(store, tenant_id, over, m.key, p);
        if (rv == APR_SUCCESS) {
            rv = yk_operate(store, enforce, &m);
        }
        m.is_same = 0;
    }
    if (rv != APR_SUCCESS) {
        *say = m.wrong != NULL      ? m.wrong
               : rv == APR_NOTFOUND ? "There is no such tenant."
                                    : "The limit is not in force: ask again.";
        return rv;
    }
    *say = m.is_same  ? "The limit is there unchanged."
           : m.is_new ? "Added the limit."
                      : "Changed the limit.";
    return APR_SUCCESS;
}

/* ---- taking one away ---- */

/* Its row, and the version that copies of it are compared with. */
static apr_status_t take_away(yk_store_t *store, void *baton)
{
    limiting_t *m = baton;
    yk_packet_t *packet;
    yk_sql_t *sql;
    apr_status_t rv = begin(store, m);

    if (rv != APR_SUCCESS || m->limit_id == 0) {
        return rv;
    }
    /* a commit whose answer was lost is not asked for twice */
    m->is_gone = 1;
    packet = yk_packet_make(store);
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "DELETE FROM yoyaku_limit WHERE limit_id=");
    yk_sql_uint(sql, m->limit_id);
    return commit(packet, m);
}

apr_status_t yk_setup_limit_remove(yk_store_t *store, const char **say,
                                   uint32_t tenant_id, yk_per_e per,
                                   yk_over_e over, const char *key,
                                   yk_counted_e count, apr_pool_t *p)
{
    limiting_t m;
    apr_status_t rv;

    name(&m, tenant_id, per, over, key, count, p);
    *say = check(&m, p);
    if (*say != NULL) {
        return APR_EINVAL;
    }
    rv = yk_operate(store, take_away, &m);
    /* also when it is not there: the call before this one may have got no
     * further than its commit */
    if (rv == APR_SUCCESS && per == YK_PER_BOOKER) {
        rv = yk_operate_barrier_over(store, tenant_id, over, m.key, p);
    }
    if (rv != APR_SUCCESS) {
        *say = m.wrong != NULL      ? m.wrong
               : rv == APR_NOTFOUND ? "There is no such tenant."
                                    : "The limit may still bind: ask again.";
        return rv;
    }
    *say = m.is_gone ? "Removed the limit." : "There is no such limit.";
    return APR_SUCCESS;
}

/* ---- what is there ---- */

typedef struct listing_t {
    apr_array_header_t *limits;
    apr_pool_t *p;
} listing_t;

static void listed_row(void *baton, char **row, const unsigned long *lengths)
{
    listing_t *listing = baton;
    yk_limit_t *limit = apr_array_push(listing->limits);

    limit->limit_id = yk_column_uint(row[0]);
    limit->per = (yk_per_e)yk_column_uint(row[1]);
    limit->over = (yk_over_e)yk_column_uint(row[2]);
    limit->key = yk_column_text(row[3], lengths[3], listing->p);
    limit->count = (yk_counted_e)yk_column_uint(row[4]);
    limit->max = yk_column_int(row[5]);
    limit->in_force = (int)yk_column_int(row[6]);
}

apr_status_t yk_setup_limits(yk_store_t *store, yk_limit_t **limits,
                             uint32_t *n, uint32_t tenant_id, apr_pool_t *p)
{
    listing_t listing = {apr_array_make(p, 8, sizeof(yk_limit_t)), p};
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, listed_row, &listing);
    apr_status_t rv;

    yk_sql_put(sql, "SELECT limit_id,per,reach,reach_key,counted,max,in_force"
                    " FROM yoyaku_limit WHERE tenant_id=");
    yk_sql_uint(sql, tenant_id);
    yk_sql_put(sql, " ORDER BY reach,reach_key,per,counted");
    rv = yk_packet_run(packet);
    *limits = (yk_limit_t *)listing.limits->elts;
    *n = (uint32_t)listing.limits->nelts;
    return rv;
}
