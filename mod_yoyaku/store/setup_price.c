/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "operate.h"
#include "yoyaku/text.h"

/*
 * A quota that comes to a price already sold is counted in three steps:
 *
 *   1 committed: the anchor is there, lock and count it; no bound yet
 *   2 the barrier: whoever sold without counting has committed
 *   3 under the anchor's lock: used is what lives, the bound is in force
 *
 * Between 1 and 3 lines older than the counting may be given back, so `used`
 * begins at YK_UNCOUNTED and is no figure until step 3.
 */
typedef struct pricing_t {
    uint32_t tenant_id;
    const char *slot_key, *grade, *area, *tariff, *currency;
    int64_t amount, quota;
    apr_pool_t *p;

    const char *wrong;
    uint64_t slot_id;
    int32_t area_no;
    uint32_t price_no;
    int is_new, is_same, must_count;
} pricing_t;

static void found_row(void *baton, char **row, const unsigned long *lengths)
{
    *(int *)baton = 1;
}

static apr_status_t find_grade(yk_store_t *store, int *found,
                               const pricing_t *m, uint64_t hall_id)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, found_row, found);

    yk_sql_put(sql, "SELECT grade_no FROM yoyaku_grade WHERE hall_id=");
    yk_sql_uint(sql, hall_id);
    yk_sql_put(sql, " AND name=");
    yk_sql_text(sql, m->grade);
    return yk_packet_run(packet);
}

/* The slot, and what the price is for. */
static apr_status_t find(yk_store_t *store, pricing_t *m, yk_slot_t **slot)
{
    int found = 0;
    apr_status_t rv =
        yk_store_slot(store, slot, m->tenant_id, m->slot_key, m->p);

    if (rv == APR_NOTFOUND) {
        m->wrong = apr_psprintf(m->p, "There is no slot %s.", m->slot_key);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    m->slot_id = (*slot)->slot_id;
    m->area_no = -1;
    if (m->area != NULL) {
        const yk_area_t *area = yk_slot_area(*slot, m->area);
        if (area == NULL) {
            m->wrong =
                apr_psprintf(m->p, "area: the slot has no area %s.", m->area);
            return APR_EINVAL;
        }
        m->area_no = (int32_t)area->area_no;
    }
    if (m->grade != NULL) {
        rv = find_grade(store, &found, m, (*slot)->hall_id);
        if (rv == APR_SUCCESS && !found) {
            m->wrong = apr_psprintf(m->p, "grade: the hall has no grade %s.",
                                    m->grade);
            return APR_EINVAL;
        }
    }
    return rv;
}

static const yk_price_t *find_price(const pricing_t *m, const yk_slot_t *slot)
{
    uint32_t i;

    for (i = 0; i < slot->nprices; i++) {
        const yk_price_t *price = &slot->prices[i];
        if (price->area_no == m->area_no &&
            strcmp(price->tariff, m->tariff) == 0 &&
            (price->grade == NULL) == (m->grade == NULL) &&
            (m->grade == NULL || strcmp(price->grade, m->grade) == 0)) {
            return price;
        }
    }
    return NULL;
}

/* ---- the rows ---- */

static void put_price(yk_packet_t *packet, const pricing_t *m)
{
    yk_sql_t *sql = yk_packet_do(packet);

    yk_sql_put(sql, "INSERT INTO yoyaku_price (slot_id,price_no,tariff,grade,"
                    "area_no,amount,currency,quota,counted) VALUES ");
    yk_sql_row(sql);
    yk_sql_uint(sql, m->slot_id);
    yk_sql_uint(sql, m->price_no);
    yk_sql_text(sql, m->tariff);
    if (m->grade != NULL) {
        yk_sql_text(sql, m->grade);
    }
    else {
        yk_sql_null(sql);
    }
    yk_sql_int(sql, m->area_no);
    yk_sql_int(sql, m->amount);
    yk_sql_text(sql, m->currency);
    yk_sql_int(sql, m->quota);
    yk_sql_uint(sql, m->quota >= 0);
    yk_sql_row_end(sql);
}

static void put_anchor(yk_packet_t *packet, const pricing_t *m, int64_t used,
                       int64_t max)
{
    yk_sql_t *sql = yk_packet_do(packet);

    yk_sql_put(sql, "INSERT INTO yoyaku_lock_anchor (kind,owner,no,used,max,"
                    "version) VALUES ");
    yk_sql_row(sql);
    yk_sql_uint(sql, YK_ANCHOR_QUOTA);
    yk_sql_uint(sql, m->slot_id);
    yk_sql_uint(sql, m->price_no);
    yk_sql_int(sql, used);
    yk_sql_int(sql, max);
    yk_sql_uint(sql, 1);
    yk_sql_row_end(sql);
}

static void set_price(yk_packet_t *packet, const pricing_t *m, int64_t quota,
                      int counted)
{
    yk_sql_t *sql = yk_packet_do(packet);

    yk_sql_put(sql, "UPDATE yoyaku_price SET amount=");
    yk_sql_int(sql, m->amount);
    yk_sql_put(sql, ",currency=");
    yk_sql_text(sql, m->currency);
    yk_sql_put(sql, ",quota=");
    yk_sql_int(sql, quota);
    yk_sql_put(sql, ",counted=");
    yk_sql_int(sql, counted);
    yk_sql_put(sql, " WHERE slot_id=");
    yk_sql_uint(sql, m->slot_id);
    yk_sql_put(sql, " AND price_no=");
    yk_sql_uint(sql, m->price_no);
}

static void where_anchor(yk_sql_t *sql, const pricing_t *m)
{
    yk_sql_put(sql, " WHERE kind=3 AND owner=");
    yk_sql_uint(sql, m->slot_id);
    yk_sql_put(sql, " AND no=");
    yk_sql_uint(sql, m->price_no);
}

/* Locks and writes the one anchor: an anchor before every other row. */
static void set_max(yk_packet_t *packet, const pricing_t *m, int64_t max)
{
    yk_sql_t *sql = yk_packet_do(packet);

    yk_sql_put(sql, "UPDATE yoyaku_lock_anchor SET version=version+1,max=");
    yk_sql_int(sql, max);
    where_anchor(sql, m);
}

/* ---- steps ---- */

static apr_status_t commit(yk_packet_t *packet, const pricing_t *m)
{
    yk_operate_touch_slot(packet, m->slot_id);
    yk_packet_commit(packet);
    return yk_packet_run(packet);
}

/* Everything that needs no counting, or step 1. */
static apr_status_t put(yk_store_t *store, void *baton)
{
    pricing_t *m = baton;
    yk_slot_t *slot;
    const yk_price_t *was;
    yk_packet_t *packet;
    apr_status_t rv = yk_operate_begin(store, m->tenant_id);

    if (rv == APR_SUCCESS) {
        rv = find(store, m, &slot);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    was = find_price(m, slot);
    packet = yk_packet_make(store);
    if (was == NULL) {
        m->is_new = 1;
        m->price_no = slot->nprices > 0
                          ? slot->prices[slot->nprices - 1].price_no + 1
                          : 1;
        if (m->quota >= 0) {
            put_anchor(packet, m, 0, m->quota);
        }
        put_price(packet, m);
        return commit(packet, m);
    }
    m->is_new = 0;
    m->price_no = was->price_no;
    m->is_same = was->amount == m->amount && was->quota == m->quota &&
                 strcmp(was->currency, m->currency) == 0;
    if (m->is_same) {
        yk_packet_end(packet);
        return APR_SUCCESS;
    }
    m->must_count = m->quota >= 0 && was->quota < 0;
    if (m->must_count && !was->counted) {
        put_anchor(packet, m, YK_UNCOUNTED, -1);
    }
    else if (was->counted && !m->must_count) {
        set_max(packet, m, m->quota);
    }
    set_price(packet, m, m->must_count ? -1 : m->quota,
              was->counted || m->quota >= 0);
    return commit(packet, m);
}

static void sum_row(void *baton, char **row, const unsigned long *lengths)
{
    *(int64_t *)baton = yk_column_int(row[0]);
}

/* Step 3: locks the anchor, reads the price's lines without locks: whoever
 * changes one of them holds the anchor by now. */
static apr_status_t count(yk_store_t *store, void *baton)
{
    pricing_t *m = baton;
    yk_packet_t *packet;
    yk_sql_t *sql;
    int found = 0;
    int64_t used = 0;
    apr_status_t rv = yk_operate_begin(store, m->tenant_id);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    packet = yk_packet_make(store);
    sql = yk_packet_ask(packet, found_row, &found);
    yk_sql_put(sql, "SELECT used FROM yoyaku_lock_anchor FORCE INDEX"
                    " (PRIMARY)");
    where_anchor(sql, m);
    yk_sql_put(sql, " FOR UPDATE");
    sql = yk_packet_ask(packet, sum_row, &used);
    yk_sql_put(sql, "SELECT COALESCE(SUM(quantity),0) FROM yoyaku_booking"
                    " FORCE INDEX (by_slot) WHERE slot_id=");
    yk_sql_uint(sql, m->slot_id);
    yk_sql_put(sql, " AND price_no=");
    yk_sql_uint(sql, m->price_no);
    yk_sql_put(sql, " AND live=1");
    rv = yk_packet_run(packet);
    if (rv != APR_SUCCESS || !found) {
        return rv != APR_SUCCESS ? rv : APR_EGENERAL;
    }
    packet = yk_packet_make(store);
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "UPDATE yoyaku_lock_anchor SET version=version+1,used=");
    yk_sql_int(sql, used);
    yk_sql_put(sql, ",max=");
    yk_sql_int(sql, m->quota);
    where_anchor(sql, m);
    set_price(packet, m, m->quota, 1);
    return commit(packet, m);
}

static const char *check(const pricing_t *m, apr_pool_t *p)
{
    if (!yk_operate_is_text(m->tariff, YK_TEXT_KEY)) {
        return apr_psprintf(p, "tariff: 1 to %d bytes of UTF-8.", YK_TEXT_KEY);
    }
    if (m->grade != NULL && m->area != NULL) {
        return "grade, area: a price is for one of them, or for all.";
    }
    if (m->amount < 0 || m->amount > YK_MONEY_MAX) {
        return apr_psprintf(p,
                            "amount: 0 to %" APR_INT64_T_FMT
                            " of the currency's smallest unit.",
                            YK_MONEY_MAX);
    }
    if (m->currency == NULL || !yk_money_is_currency(m->currency)) {
        return "currency: three capital letters.";
    }
    if (m->quota < -1 || m->quota > 1000000000) {
        return "quota: 0 to 1000000000, or none.";
    }
    return NULL;
}

apr_status_t yk_setup_price(yk_store_t *store, const char **say,
                            uint32_t tenant_id, const char *slot,
                            const char *grade, const char *area,
                            const char *tariff, int64_t amount,
                            const char *currency, int64_t quota, apr_pool_t *p)
{
    pricing_t m;
    apr_status_t rv;

    memset(&m, 0, sizeof(m));
    m.tenant_id = tenant_id;
    m.slot_key = slot;
    m.grade = grade;
    m.area = area;
    m.tariff = tariff;
    m.amount = amount;
    m.currency = currency;
    m.quota = quota;
    m.p = p;
    *say = check(&m, p);
    if (*say != NULL) {
        return APR_EINVAL;
    }
    rv = yk_operate(store, put, &m);
    if (rv == APR_SUCCESS && m.must_count) {
        rv = yk_operate_barrier(store, m.slot_id);
        if (rv == APR_SUCCESS) {
            rv = yk_operate(store, count, &m);
        }
    }
    if (rv != APR_SUCCESS) {
        *say = m.wrong != NULL      ? m.wrong
               : rv == APR_NOTFOUND ? "There is no such tenant."
               : m.must_count ? "The quota is not in force yet: ask again."
                              : "The price could not be written.";
        return rv;
    }
    *say = apr_psprintf(p,
                        m.is_same  ? "The price %s is there unchanged."
                        : m.is_new ? "Added the price %s."
                                   : "Changed the price %s.",
                        tariff);
    return APR_SUCCESS;
}
