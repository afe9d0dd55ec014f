/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <jansson.h>
#include <stdarg.h>
#include "yoyaku/text.h"
#include "yoyaku/verify.h"

const char *yk_finding_name(yk_finding_e kind)
{
    static const char *const names[] = {
#define FINDING_NAME(name, text) text,
        YK_FINDINGS(FINDING_NAME)
#undef FINDING_NAME
    };

    return names[kind];
}

yk_verified_t *yk_verified_make(apr_pool_t *p)
{
    yk_verified_t *v = apr_pcalloc(p, sizeof(*v));

    v->p = p;
    return v;
}

/** Keep the first hundred, count the rest. */
static void found(yk_verified_t *v, yk_finding_e kind, const char *slot,
                  const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void found(yk_verified_t *v, yk_finding_e kind, const char *slot,
                  const char *format, ...)
{
    va_list args;

    v->faults++;
    if (v->nfindings == YK_VERIFY_KEPT) {
        return;
    }
    va_start(args, format);
    v->findings[v->nfindings].kind = kind;
    v->findings[v->nfindings].slot = apr_pstrdup(v->p, slot);
    v->findings[v->nfindings].text = apr_pvsprintf(v->p, format, args);
    va_end(args);
    v->nfindings++;
}

static int in_time(yk_order_state_e state, apr_time_t until_us, apr_time_t now)
{
    return state == YK_ORDER_CONFIRMED ||
           ((state == YK_ORDER_HELD || state == YK_ORDER_LOCKED) &&
            until_us > now);
}

static yk_seen_place_t *place_of(const yk_evidence_t *e, uint32_t no)
{
    uint32_t low = 0, high = e->nplaces;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (e->places[middle].place_no < no) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low < e->nplaces && e->places[low].place_no == no ? &e->places[low]
                                                             : NULL;
}

static const yk_seen_order_t *order_of(const yk_evidence_t *e, uint64_t id)
{
    uint32_t low = 0, high = e->norders;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (e->orders[middle].order_id < id) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low < e->norders && e->orders[low].order_id == id ? &e->orders[low]
                                                             : NULL;
}

static yk_seen_area_t *area_of(const yk_evidence_t *e, uint32_t no)
{
    for (uint32_t i = 0; i < e->nareas; i++) {
        if (e->areas[i].area_no == no) {
            return &e->areas[i];
        }
    }
    return NULL;
}

static const yk_anchor_t *anchor_of(const yk_evidence_t *e, yk_anchor_e kind,
                                    uint32_t no)
{
    for (uint32_t i = 0; i < e->nanchors; i++) {
        if (e->anchors[i].key.kind == kind && e->anchors[i].key.no == no) {
            return &e->anchors[i];
        }
    }
    return NULL;
}

/* ---- the journal ---- */

static void replay_places(yk_evidence_t *e, json_t *places)
{
    size_t i;
    json_t *entry;

    json_array_foreach(places, i, entry)
    {
        json_int_t no = json_integer_value(json_array_get(entry, 0));
        uint64_t version =
            (uint64_t)json_integer_value(json_array_get(entry, 2));
        yk_seen_place_t *place = place_of(e, (uint32_t)no);

        if (place == NULL || version == 0) {
            e->unreadable++;
            continue;
        }
        if (place->journalled == 0 || version > place->last_version) {
            place->last_version = version;
            place->last_state =
                (yk_place_state_e)json_integer_value(json_array_get(entry, 1));
        }
        place->journalled++;
    }
}

void yk_evidence_replay(yk_evidence_t *e, const char *change, apr_size_t len)
{
    json_t *json = json_loadb(change, len, 0, NULL);
    size_t i;
    json_t *entry;

    e->njournal++;
    if (!json_is_object(json)) {
        e->unreadable++;
        json_decref(json);
        return;
    }
    replay_places(e, json_object_get(json, "places"));
    json_array_foreach(json_object_get(json, "counts"), i, entry)
    {
        json_int_t kind = json_integer_value(json_array_get(entry, 0));
        json_int_t no = json_integer_value(json_array_get(entry, 1));
        yk_seen_area_t *area = area_of(e, (uint32_t)no);

        if (kind == YK_ANCHOR_AREA && area != NULL) {
            area->moved += json_integer_value(json_array_get(entry, 2));
        }
    }
    json_decref(json);
}

static yk_mode_e mode_at(const yk_evidence_t *e, uint32_t place_no)
{
    for (uint32_t i = 0; i < e->nareas; i++) {
        const yk_seen_area_t *area = &e->areas[i];

        if (place_no >= area->first_place &&
            place_no - area->first_place < area->places) {
            return area->mode;
        }
    }
    return YK_MODE_CLOSED;
}

static void journal_place(yk_verified_t *v, const yk_evidence_t *e,
                          const yk_seen_place_t *place)
{
    int taken =
        place->state == YK_PLACE_HELD || place->state == YK_PLACE_BOOKED;
    uint64_t writes = place->version - YK_PLACE_FIRST_VERSION;

    if (place->journalled > 0 && (place->last_version != place->version ||
                                  place->last_state != place->state)) {
        found(v, YK_FINDING_JOURNAL, e->key,
              "place %u has state %d version %" APR_UINT64_T_FMT
              ", the journal gives state %d version %" APR_UINT64_T_FMT,
              place->place_no, place->state, place->version, place->last_state,
              place->last_version);
    }
    else if (place->journalled == 0 && taken) {
        found(v, YK_FINDING_JOURNAL, e->key,
              "place %u is taken and no journal row says so", place->place_no);
    }
    else if (mode_at(e, place->place_no) == YK_MODE_PLACED &&
             writes != (uint64_t)place->journalled) {
        /* a seat's version is its anchor's and may jump */
        found(v, YK_FINDING_JOURNAL, e->key,
              "place %u was written %" APR_UINT64_T_FMT
              " times, the journal has %d of them",
              place->place_no, writes, place->journalled);
    }
}

static void look_at_journal(yk_verified_t *v, const yk_evidence_t *e)
{
    for (uint32_t i = 0; i < e->nplaces; i++) {
        journal_place(v, e, &e->places[i]);
    }
    for (uint32_t i = 0; i < e->nareas; i++) {
        const yk_anchor_t *anchor =
            anchor_of(e, YK_ANCHOR_AREA, e->areas[i].area_no);

        if (e->areas[i].mode == YK_MODE_POOLED && anchor != NULL &&
            anchor->used != e->areas[i].moved) {
            found(v, YK_FINDING_JOURNAL, e->key,
                  "pool %u has used %" APR_INT64_T_FMT
                  ", the journal gives %" APR_INT64_T_FMT,
                  e->areas[i].area_no, anchor->used, e->areas[i].moved);
        }
    }
    if (e->unreadable > 0) {
        found(v, YK_FINDING_JOURNAL, e->key,
              "%" APR_UINT64_T_FMT " entries of the journal cannot be read",
              e->unreadable);
    }
}

/* ---- places and lines ---- */

/** Taken rows must belong to an order that is alive, in the same words. */
static void look_at_places(yk_verified_t *v, const yk_evidence_t *e)
{
    uint64_t *counters[] = {&v->free, &v->held, &v->booked, &v->not_for_sale};

    for (uint32_t i = 0; i < e->nplaces; i++) {
        const yk_seen_place_t *place = &e->places[i];
        const yk_seen_order_t *order = order_of(e, place->order_id);

        (*counters[place->state & 3])++;
        if (place->state != YK_PLACE_HELD && place->state != YK_PLACE_BOOKED) {
            if (place->order_id != 0 || place->until_us != 0) {
                found(v, YK_FINDING_PLACE, e->key,
                      "place %u is not taken but names %s", place->place_no,
                      yk_number_write(place->order_id, v->p));
            }
            continue;
        }
        if (order == NULL) {
            found(v, YK_FINDING_PLACE, e->key,
                  "place %u is taken by %s, which is no order", place->place_no,
                  yk_number_write(place->order_id, v->p));
            continue;
        }
        if (place->state == YK_PLACE_BOOKED
                ? order->state != YK_ORDER_CONFIRMED
                : order->state != YK_ORDER_HELD &&
                      order->state != YK_ORDER_LOCKED) {
            found(v, YK_FINDING_PLACE, e->key,
                  "place %u is %s, its order %s is %s", place->place_no,
                  place->state == YK_PLACE_BOOKED ? "booked" : "held",
                  yk_number_write(order->order_id, v->p),
                  yk_order_state_name(order->state));
        }
        if (place->until_us !=
            (place->state == YK_PLACE_HELD ? order->until_us : 0)) {
            found(v, YK_FINDING_PLACE, e->key,
                  "place %u ends at another time than %s", place->place_no,
                  yk_number_write(order->order_id, v->p));
        }
    }
}

static int alive(yk_order_state_e state)
{
    return state == YK_ORDER_HELD || state == YK_ORDER_LOCKED ||
           state == YK_ORDER_CONFIRMED;
}

/** Lines that count are of living orders and have their places; `owners`
 *  keeps, for each place, the line of an order in time that says it has it. */
static void look_at_line(yk_verified_t *v, const yk_evidence_t *e,
                         const yk_seen_line_t *line,
                         const yk_seen_line_t **owners)
{
    const yk_seen_place_t *place;
    uint32_t at;

    if (!alive(line->state)) {
        found(v, YK_FINDING_LINE, e->key, "%s line %u counts, its order is %s",
              yk_number_write(line->order_id, v->p), line->line,
              line->state == 0 ? "not there"
                               : yk_order_state_name(line->state));
        return;
    }
    if (line->place_no == YK_NO_PLACE) {
        v->pooled += line->quantity;
        return;
    }
    if (!in_time(line->state, line->until_us, e->now_us)) {
        return;
    }
    place = place_of(e, line->place_no);
    if (place == NULL) {
        found(v, YK_FINDING_LINE, e->key,
              "%s line %u has place %u, which is not there",
              yk_number_write(line->order_id, v->p), line->line,
              line->place_no);
        return;
    }
    at = (uint32_t)(place - e->places);
    if (owners[at] != NULL) {
        found(v, YK_FINDING_TWICE, e->key,
              "place %u is sold twice: to %s and to %s", line->place_no,
              yk_number_write(owners[at]->order_id, v->p),
              yk_number_write(line->order_id, v->p));
    }
    owners[at] = line;
    if (place->order_id != line->order_id) {
        found(v, YK_FINDING_LINE, e->key,
              "%s line %u says it has place %u, which has %s",
              yk_number_write(line->order_id, v->p), line->line, line->place_no,
              place->order_id == 0 ? "nobody"
                                   : yk_number_write(place->order_id, v->p));
    }
}

static void look_at_lines(yk_verified_t *v, const yk_evidence_t *e)
{
    apr_pool_t *ptemp;
    const yk_seen_line_t **owners;
    unsigned char *lined;

    apr_pool_create(&ptemp, v->p);
    owners = apr_pcalloc(ptemp, (e->nplaces + 1) * sizeof(*owners));
    lined = apr_pcalloc(ptemp, e->nplaces + 1);
    for (uint32_t i = 0; i < e->nlines; i++) {
        const yk_seen_line_t *line = &e->lines[i];
        const yk_seen_place_t *place = place_of(e, line->place_no);

        look_at_line(v, e, line, owners);
        if (place != NULL && place->order_id == line->order_id) {
            lined[place - e->places] = 1;
        }
    }
    for (uint32_t i = 0; i < e->nplaces; i++) {
        const yk_seen_place_t *place = &e->places[i];

        if ((place->state == YK_PLACE_HELD ||
             place->state == YK_PLACE_BOOKED) &&
            !lined[i]) {
            found(v, YK_FINDING_PLACE, e->key,
                  "place %u is taken by %s without a line", place->place_no,
                  yk_number_write(place->order_id, v->p));
        }
    }
    apr_pool_destroy(ptemp);
}

/* ---- counts ---- */

static void look_at_count(yk_verified_t *v, const yk_evidence_t *e,
                          const char *what, uint32_t no, yk_anchor_e kind,
                          int64_t used, int64_t max)
{
    const yk_anchor_t *anchor = anchor_of(e, kind, no);

    if (anchor == NULL) {
        found(v, YK_FINDING_COUNT, e->key, "%s %u has no anchor", what, no);
        return;
    }
    if (anchor->used != used && anchor->used < YK_UNCOUNTED / 2) {
        found(v, YK_FINDING_COUNT, e->key,
              "%s %u has used %" APR_INT64_T_FMT
              ", its lines say %" APR_INT64_T_FMT,
              what, no, anchor->used, used);
    }
    if (max >= 0 && used > max) {
        found(v, YK_FINDING_BOUND, e->key,
              "%s %u has sold %" APR_INT64_T_FMT " of %" APR_INT64_T_FMT, what,
              no, used, max);
    }
}

static void look_at_counts(yk_verified_t *v, const yk_evidence_t *e)
{
    for (uint32_t i = 0; i < e->nareas; i++) {
        int64_t used = 0;

        if (e->areas[i].mode != YK_MODE_POOLED) {
            continue;
        }
        for (uint32_t l = 0; l < e->nlines; l++) {
            if (e->lines[l].area_no == e->areas[i].area_no &&
                e->lines[l].place_no == YK_NO_PLACE) {
                used += e->lines[l].quantity;
            }
        }
        look_at_count(v, e, "pool", e->areas[i].area_no, YK_ANCHOR_AREA, used,
                      e->areas[i].max);
    }
    for (uint32_t i = 0; i < e->nprices; i++) {
        int64_t used = 0;

        if (!e->prices[i].counted) {
            continue;
        }
        for (uint32_t l = 0; l < e->nlines; l++) {
            if (e->lines[l].price_no == e->prices[i].price_no) {
                used += e->lines[l].quantity;
            }
        }
        look_at_count(v, e, "quota of price", e->prices[i].price_no,
                      YK_ANCHOR_QUOTA, used, e->prices[i].quota);
    }
}

static void look_at_maps(yk_verified_t *v, const yk_evidence_t *e)
{
    for (uint32_t i = 0; i < e->nareas; i++) {
        const yk_seen_area_t *area = &e->areas[i];
        const yk_anchor_t *anchor = anchor_of(e, YK_ANCHOR_AREA, area->area_no);

        if (area->mode != YK_MODE_ASSIGNED) {
            continue;
        }
        if (anchor == NULL || anchor->map == NULL ||
            anchor->map_bytes < (area->places + 7) / 8) {
            found(v, YK_FINDING_MAP, e->key, "area %u has no map of its places",
                  area->area_no);
            continue;
        }
        for (uint32_t n = 0; n < area->places; n++) {
            const yk_seen_place_t *place = place_of(e, area->first_place + n);
            int says_free = anchor->map[n / 8] >> (n % 8) & 1;

            if (place == NULL || says_free != (place->state == YK_PLACE_FREE)) {
                found(v, YK_FINDING_MAP, e->key,
                      "place %u: the map says %s, its row not",
                      area->first_place + n, says_free ? "free" : "gone");
            }
        }
    }
}

void yk_verify_slot(yk_verified_t *v, const yk_evidence_t *e)
{
    v->slots++;
    v->places += e->nplaces;
    v->lines += e->nlines;
    v->journal += e->njournal;
    look_at_places(v, e);
    look_at_lines(v, e);
    look_at_counts(v, e);
    look_at_maps(v, e);
    look_at_journal(v, e);
}

static apr_status_t verify_one(yk_store_t *store, yk_verified_t *v,
                               uint32_t tenant_id, const char *key)
{
    apr_pool_t *ptemp;
    yk_evidence_t *evidence;
    apr_status_t rv;

    apr_pool_create(&ptemp, v->p);
    rv = yk_store_evidence(store, &evidence, tenant_id, key, ptemp);
    if (rv == APR_SUCCESS) {
        yk_verify_slot(v, evidence);
    }
    apr_pool_destroy(ptemp);
    return rv;
}

apr_status_t yk_verify(yk_store_t *store, yk_verified_t **verified,
                       uint32_t tenant_id, const char *slot, apr_pool_t *p)
{
    yk_verified_t *v = yk_verified_make(p);
    const char **keys = &slot;
    uint32_t n = 1, nover = 0;
    yk_over_t *over = NULL;
    apr_status_t rv = APR_SUCCESS;

    if (slot == NULL) {
        rv = yk_store_slot_keys(store, &keys, &n, tenant_id, p);
    }
    for (uint32_t i = 0; i < n && rv == APR_SUCCESS; i++) {
        rv = verify_one(store, v, tenant_id, keys[i]);
    }
    if (rv == APR_SUCCESS) {
        rv = yk_store_over(store, &over, &nover, tenant_id, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (uint32_t i = 0; i < nover; i++) {
        found(v, YK_FINDING_LIMIT, "",
              "%s has %" APR_INT64_T_FMT
              ", the limit of %s is %" APR_INT64_T_FMT
              " (or was lowered since)",
              over[i].who, over[i].have, over[i].limit, over[i].max);
    }
    *verified = v;
    return APR_SUCCESS;
}
