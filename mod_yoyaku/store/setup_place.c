/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "operate.h"
#include "yoyaku/text.h"

typedef struct keeping_t {
    uint32_t tenant_id;
    const char *slot_key, *guid;
    int for_sale;
    apr_pool_t *p;

    const char *wrong;
    uint64_t slot_id;
    uint32_t place_no, section_no, first;
    int found, is_same;
} keeping_t;

static void place_row(void *baton, char **row, const unsigned long *lengths)
{
    keeping_t *m = baton;

    m->found = 1;
    m->place_no = (uint32_t)yk_column_uint(row[0]);
    m->section_no = (uint32_t)yk_column_uint(row[1]);
    m->first = (uint32_t)yk_column_uint(row[2]);
}

/* Plain reads: halls and areas never change. */
static apr_status_t find(yk_store_t *store, keeping_t *m, yk_slot_t **slot)
{
    yk_packet_t *packet;
    yk_sql_t *sql;
    apr_status_t rv =
        yk_store_slot(store, slot, m->tenant_id, m->slot_key, m->p);

    if (rv == APR_NOTFOUND) {
        m->wrong = apr_psprintf(m->p, "There is no slot %s.", m->slot_key);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    m->slot_id = (*slot)->slot_id;
    m->found = 0;
    packet = yk_packet_make(store);
    sql = yk_packet_ask(packet, place_row, m);
    yk_sql_put(sql, "SELECT p.place_no,p.section_no,s.first_place"
                    " FROM yoyaku_place p STRAIGHT_JOIN yoyaku_section s"
                    " ON s.hall_id=p.hall_id AND s.section_no=p.section_no"
                    " WHERE p.hall_id=");
    yk_sql_uint(sql, (*slot)->hall_id);
    yk_sql_put(sql, " AND p.guid=");
    yk_sql_text(sql, m->guid);
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS && !m->found) {
        m->wrong =
            apr_psprintf(m->p, "place: the slot has no place %s.", m->guid);
        return APR_NOTFOUND;
    }
    return rv;
}

/* The seat's bit follows its row. */
static void set_bit(yk_ledger_t *l, const keeping_t *m)
{
    yk_anchor_t *anchor =
        yk_ledger_anchor(l, YK_ANCHOR_AREA, m->slot_id, m->section_no);
    uint32_t bit = m->place_no - m->first;

    yk_ledger_touch_anchor(l, anchor);
    if (bit / 8 < anchor->map_bytes) {
        if (m->for_sale) {
            anchor->map[bit / 8] |= (unsigned char)(1u << (bit % 8));
        }
        else {
            anchor->map[bit / 8] &= (unsigned char)~(1u << (bit % 8));
        }
    }
}

/* @return NULL, or why the place stays as it is */
static const char *decide(keeping_t *m, yk_ledger_t *l, yk_place_t *place)
{
    int is_kept = place->state == YK_PLACE_NOT_FOR_SALE;
    int is_free =
        place->state == YK_PLACE_FREE ||
        (place->state == YK_PLACE_HELD && place->until_us <= l->now_us &&
         /* of a seat its order still has the bit to give back */
         !place->seat);

    m->is_same = is_kept == !m->for_sale;
    if (m->is_same) {
        return NULL;
    }
    if (!is_kept && !is_free) {
        return apr_psprintf(m->p, "place: %s is %s by order %s.", m->guid,
                            place->state == YK_PLACE_BOOKED ? "booked" : "held",
                            yk_number_write(place->order_id, m->p));
    }
    yk_ledger_touch_place(l, place);
    place->state = m->for_sale ? YK_PLACE_FREE : YK_PLACE_NOT_FOR_SALE;
    place->order_id = 0;
    place->until_us = 0;
    place->by_order = 0;
    if (place->seat) {
        set_bit(l, m);
    }
    return NULL;
}

/* Locks as a hold of this place would: a seat's anchor, or the place. */
static apr_status_t keep(yk_store_t *store, void *baton)
{
    keeping_t *m = baton;
    yk_ledger_t *l = yk_ledger_make(m->p);
    yk_slot_t *slot;
    yk_place_t *place;
    yk_mode_e mode;
    apr_status_t rv = find(store, m, &slot);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    mode = slot->areas[m->section_no].mode;
    if (mode != YK_MODE_PLACED && mode != YK_MODE_ASSIGNED) {
        m->wrong = apr_psprintf(m->p, "place: %s is in an area sold as %s.",
                                m->guid, yk_mode_name(mode));
        return APR_EINVAL;
    }
    if (mode == YK_MODE_ASSIGNED) {
        yk_ledger_want_anchor(l, YK_ANCHOR_AREA, m->slot_id, m->section_no);
    }
    yk_ledger_want_place(l, m->slot_id, m->section_no, m->place_no,
                         mode == YK_MODE_ASSIGNED);
    rv = yk_store_lock(store, l);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    place = yk_ledger_place(l, m->slot_id, m->place_no);
    if (!place->found ||
        (place->seat &&
         !yk_ledger_anchor(l, YK_ANCHOR_AREA, m->slot_id, m->section_no)
              ->found)) {
        return APR_EGENERAL;
    }
    m->wrong = decide(m, l, place);
    if (m->wrong != NULL) {
        return APR_EINVAL;
    }
    return m->is_same ? APR_SUCCESS : yk_store_write(store, l);
}

apr_status_t yk_setup_place(yk_store_t *store, const char **say,
                            uint32_t tenant_id, const char *slot,
                            const char *place, int for_sale, apr_pool_t *p)
{
    keeping_t m;
    apr_status_t rv;

    memset(&m, 0, sizeof(m));
    m.tenant_id = tenant_id;
    m.slot_key = slot;
    m.guid = place;
    m.for_sale = for_sale;
    m.p = p;
    if (!yk_operate_is_text(slot, YK_TEXT_KEY) ||
        !yk_operate_is_text(place, YK_TEXT_KEY)) {
        *say = apr_psprintf(p, "slot, place: 1 to %d bytes.", YK_TEXT_KEY);
        return APR_EINVAL;
    }
    rv = yk_operate(store, keep, &m);
    if (rv != APR_SUCCESS) {
        *say = m.wrong != NULL ? m.wrong : "The place could not be changed.";
        return rv;
    }
    *say = apr_psprintf(p,
                        m.is_same  ? "The place %s is so already."
                        : for_sale ? "The place %s is for sale."
                                   : "The place %s is not for sale.",
                        place);
    return APR_SUCCESS;
}
