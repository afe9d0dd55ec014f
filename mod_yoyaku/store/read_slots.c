/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "read_slot.h"

typedef struct reading_t {
    yk_listed_t *list;
    uint32_t n;
    int more;
    apr_pool_t *p;
} reading_t;

static void listed_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_listed_t *listed;

    if (r->n == YK_LIST_MAX) {
        r->more = 1;
        return;
    }
    listed = &r->list[r->n++];
    listed->slot = yk_slot_read(row, lengths, r->p);
    listed->places = yk_column_int(row[YK_SLOT_COLUMNS]);
    listed->free = yk_column_int(row[YK_SLOT_COLUMNS + 1]) +
                   yk_column_int(row[YK_SLOT_COLUMNS + 2]);
}

static void clock_row(void *baton, char **row, const unsigned long *lengths)
{
    *(apr_time_t *)baton = yk_column_int(row[0]);
}

/* As yk_slot_state_name() has it. */
static void in_state(yk_sql_t *sql, const char *state, apr_time_t shift_us)
{
    static const char over[] =
        "IF(s.closes_us<>0,s.closes_us,s.starts_us)<>0 AND"
        " IF(s.closes_us<>0,s.closes_us,s.starts_us)<=";

    if (strcmp(state, "closed") == 0) {
        yk_sql_put(sql, " AND s.state=0");
        return;
    }
    yk_sql_put(sql, strcmp(state, "before") == 0
                        ? " AND s.state=1 AND s.opens_us>"
                        : " AND s.state=1 AND s.opens_us<=");
    yk_sql_clock(sql, shift_us);
    if (strcmp(state, "before") == 0) {
        return;
    }
    yk_sql_put(sql, strcmp(state, "over") == 0 ? " AND (" : " AND NOT (");
    yk_sql_put(sql, over);
    yk_sql_clock(sql, shift_us);
    yk_sql_put(sql, ")");
}

static int is_state(const char *state)
{
    return strcmp(state, "open") == 0 || strcmp(state, "closed") == 0 ||
           strcmp(state, "before") == 0 || strcmp(state, "over") == 0;
}

/* What a slot has and what is left of it: places by their rows, pools by
 * their anchors. Locks nothing. */
static void counts(yk_sql_t *sql, apr_time_t shift_us)
{
    yk_sql_put(sql, ",(SELECT COALESCE(SUM(a.max),0) FROM yoyaku_area a"
                    " WHERE a.slot_id=s.slot_id AND a.mode<>0)"
                    ",(SELECT COUNT(*) FROM yoyaku_slot_place f FORCE INDEX"
                    " (PRIMARY) WHERE f.slot_id=s.slot_id AND (f.state=0 OR"
                    " (f.state=1 AND f.until_us<=");
    yk_sql_clock(sql, shift_us);
    yk_sql_put(sql, ")))"
                    ",(SELECT COALESCE(SUM(GREATEST(k.max-k.used,0)),0)"
                    " FROM yoyaku_area a STRAIGHT_JOIN yoyaku_lock_anchor k"
                    " FORCE INDEX (PRIMARY) ON k.kind=2 AND"
                    " k.owner=a.slot_id AND k.no=a.area_no"
                    " WHERE a.slot_id=s.slot_id AND a.mode=3)");
}

apr_status_t yk_store_slots(yk_store_t *store, yk_listed_t **list, uint32_t *n,
                            int *more, apr_time_t *now, uint32_t tenant_id,
                            const char *resource, const char *series,
                            const char *state, const char *after, apr_pool_t *p)
{
    reading_t r = {NULL, 0, 0, p};
    apr_time_t clock = 0;
    yk_packet_t *packet;
    yk_sql_t *sql;
    apr_status_t rv;

    if (state != NULL && !is_state(state)) {
        return APR_EINVAL;
    }
    r.list = apr_pcalloc(p, YK_LIST_MAX * sizeof(*r.list));
    packet = yk_packet_make(store);
    sql = yk_packet_ask(packet, clock_row, &clock);
    yk_sql_put(sql, "SELECT ");
    yk_sql_clock(sql, store->shift_us);
    sql = yk_packet_ask(packet, listed_row, &r);
    yk_sql_put(sql, "SELECT ");
    yk_sql_put(sql, yk_slot_select);
    counts(sql, store->shift_us);
    yk_sql_put(sql, " FROM yoyaku_tenant t STRAIGHT_JOIN yoyaku_slot s"
                    " FORCE INDEX (by_start) ON s.tenant_id=t.tenant_id");
    if (after != NULL) {
        yk_sql_put(sql, " JOIN yoyaku_slot z ON z.tenant_id=t.tenant_id"
                        " AND z.slot_key=");
        yk_sql_text(sql, after);
        yk_sql_put(sql, " AND (s.starts_us>z.starts_us OR"
                        " (s.starts_us=z.starts_us AND"
                        " s.slot_key>z.slot_key))");
    }
    yk_sql_put(sql, " WHERE t.tenant_id=");
    yk_sql_uint(sql, tenant_id);
    if (resource != NULL) {
        yk_sql_put(sql, " AND s.resource=");
        yk_sql_text(sql, resource);
    }
    if (series != NULL) {
        yk_sql_put(sql, " AND s.series=");
        yk_sql_text(sql, series);
    }
    if (state != NULL) {
        in_state(sql, state, store->shift_us);
    }
    yk_sql_put(sql, " ORDER BY s.starts_us,s.slot_key LIMIT ");
    yk_sql_uint(sql, YK_LIST_MAX + 1);
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS) {
        *list = r.list;
        *n = r.n;
        *more = r.more;
        if (now != NULL) {
            *now = clock;
        }
    }
    return rv;
}
