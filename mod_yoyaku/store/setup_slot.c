/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "operate.h"
#include "setup_slot.h"
#include "yoyaku/text.h"

static void hall_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_making_slot_t *m = baton;

    m->hall_id = yk_column_uint(row[0]);
    m->nplaces = (uint32_t)yk_column_uint(row[1]);
}

static void section_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_making_slot_t *m = baton;
    yk_making_area_t *area;

    if (m->nareas == YK_AREAS_MOST) {
        return;
    }
    area = &m->areas[m->nareas++];
    area->name = yk_column_text(row[0], lengths[0], m->p);
    area->first = (uint32_t)yk_column_uint(row[1]);
    area->places = (uint32_t)yk_column_uint(row[2]);
    area->mode = YK_MODE_PLACED;
    area->max = area->places;
}

/* The newest hall of the name and its sections, which are areas. */
static apr_status_t read_hall(yk_store_t *store, yk_making_slot_t *m)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, hall_row, m);
    apr_status_t rv;

    yk_sql_put(sql, "SELECT hall_id,nplaces FROM yoyaku_hall"
                    " WHERE tenant_id=");
    yk_sql_uint(sql, m->tenant_id);
    yk_sql_put(sql, " AND name=");
    yk_sql_text(sql, m->said->hall);
    yk_sql_put(sql, " ORDER BY version DESC LIMIT 1");
    rv = yk_packet_run(packet);
    if (rv != APR_SUCCESS || m->hall_id == 0) {
        return rv;
    }
    packet = yk_packet_make(store);
    sql = yk_packet_ask(packet, section_row, m);
    yk_sql_put(sql, "SELECT name,first_place,places FROM yoyaku_section"
                    " WHERE hall_id=");
    yk_sql_uint(sql, m->hall_id);
    yk_sql_put(sql, " ORDER BY section_no");
    return yk_packet_run(packet);
}

static yk_making_area_t *find(yk_making_slot_t *m, const char *name)
{
    uint32_t i;

    for (i = 0; i < m->nareas; i++) {
        if (strcmp(m->areas[i].name, name) == 0) {
            return &m->areas[i];
        }
    }
    return NULL;
}

/* Sections as they are said to be sold, then pools in the order named.
 * @return NULL, or what is wrong */
static const char *arrange(yk_making_slot_t *m)
{
    uint32_t i;

    for (i = 0; i < m->said->nareas; i++) {
        const yk_setup_area_t *said = &m->said->areas[i];
        yk_making_area_t *area = find(m, said->name);
        if (said->mode == YK_MODE_POOLED &&
            (said->max < 0 || said->max > YK_POOL_MOST)) {
            return apr_psprintf(m->p, "area %s: a pool has 0 to %d places.",
                                said->name, YK_POOL_MOST);
        }
        if (area == NULL && said->mode != YK_MODE_POOLED) {
            return apr_psprintf(m->p,
                                "area %s: the hall has no such section, "
                                "so it can only be pooled.",
                                said->name);
        }
        if (area == NULL) {
            if (m->nareas == YK_AREAS_MOST) {
                return apr_psprintf(m->p, "areas: at most %d.", YK_AREAS_MOST);
            }
            area = &m->areas[m->nareas++];
            area->name = said->name;
            area->first = 0;
            area->places = 0;
        }
        area->mode = said->mode;
        area->max = area->places;
        if (said->mode == YK_MODE_POOLED &&
            (said->max > 0 || area->places == 0)) {
            area->max = said->max;
        }
    }
    return m->nareas == 0 ? "areas: a slot has a hall or at least one pool."
                          : NULL;
}

/* ---- again with other words ---- */

static const char *or_before(const char *said, const char *before)
{
    return said != NULL ? said : before;
}

static apr_time_t time_or_before(apr_time_t said, apr_time_t before)
{
    return said != 0 ? said : before;
}

/* @return NULL, or what may not change */
static const char *compare(yk_making_slot_t *m)
{
    const yk_slot_t *was = m->was;
    const yk_setup_slot_t *said = m->said;
    uint32_t i;

    if (said->resource != NULL && strcmp(said->resource, was->resource) != 0) {
        return "resource: a slot's resource never changes.";
    }
    if (said->hall != NULL &&
        (m->was_hall == NULL || strcmp(said->hall, m->was_hall) != 0)) {
        return "hall: a slot's hall never changes.";
    }
    if (said->nareas == 0) {
        return NULL;
    }
    for (i = 0; i < said->nareas; i++) {
        const yk_area_t *area = yk_slot_area(was, said->areas[i].name);
        if (area == NULL || area->mode != said->areas[i].mode ||
            (area->mode == YK_MODE_POOLED && said->areas[i].max > 0 &&
             area->max != said->areas[i].max)) {
            return "areas: a slot's areas never change.";
        }
    }
    return NULL;
}

static apr_status_t change(yk_store_t *store, yk_making_slot_t *m)
{
    const yk_slot_t *was = m->was;
    const yk_setup_slot_t *said = m->said;
    const char *title = or_before(said->title, was->title);
    const char *series = or_before(said->series, was->series);
    apr_time_t starts = time_or_before(said->starts, was->starts);
    apr_time_t ends = time_or_before(said->ends, was->ends);
    apr_time_t opens = time_or_before(said->opens, was->opens);
    apr_time_t closes = time_or_before(said->closes, was->closes);
    yk_packet_t *packet;
    yk_sql_t *sql;

    m->moved = strcmp(series, was->series) != 0;
    if (!m->moved && strcmp(title, was->title) == 0 && starts == was->starts &&
        ends == was->ends && opens == was->opens && closes == was->closes) {
        m->done = YK_MADE_NOTHING;
        return APR_SUCCESS;
    }
    m->done = YK_MADE_CHANGES;
    packet = yk_packet_make(store);
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "UPDATE yoyaku_slot SET version=version+1,title=");
    yk_sql_text(sql, title);
    yk_sql_put(sql, ",series=");
    yk_sql_text(sql, series);
    yk_sql_put(sql, ",starts_us=");
    yk_sql_int(sql, starts);
    yk_sql_put(sql, ",ends_us=");
    yk_sql_int(sql, ends);
    yk_sql_put(sql, ",opens_us=");
    yk_sql_int(sql, opens);
    yk_sql_put(sql, ",closes_us=");
    yk_sql_int(sql, closes);
    yk_sql_put(sql, " WHERE slot_id=");
    yk_sql_uint(sql, was->slot_id);
    yk_making_slot_resource(packet, m, was->resource, series);
    yk_packet_commit(packet);
    return yk_packet_run(packet);
}

static void hall_name_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_making_slot_t *m = baton;
    m->was_hall = yk_column_text(row[0], lengths[0], m->p);
}

static apr_status_t make_or_change(yk_store_t *store, void *baton)
{
    yk_making_slot_t *m = baton;
    apr_status_t rv = yk_operate_begin(store, m->tenant_id);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    m->nareas = 0;
    m->hall_id = 0;
    m->nplaces = 0;
    rv = yk_store_slot(store, &m->was, m->tenant_id, m->said->key, m->p);
    if (rv == APR_SUCCESS) {
        yk_packet_t *packet = yk_packet_make(store);
        yk_sql_t *sql = yk_packet_ask(packet, hall_name_row, m);
        yk_sql_put(sql, "SELECT name FROM yoyaku_hall WHERE hall_id=");
        yk_sql_uint(sql, m->was->hall_id);
        rv = yk_packet_run(packet);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        m->slot_id = m->was->slot_id;
        m->wrong = compare(m);
        return m->wrong != NULL ? APR_EINVAL : change(store, m);
    }
    if (rv != APR_NOTFOUND) {
        return rv;
    }
    rv = m->said->hall != NULL ? read_hall(store, m) : APR_SUCCESS;
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (m->said->hall != NULL && m->hall_id == 0) {
        m->wrong = apr_psprintf(m->p, "There is no hall %s.", m->said->hall);
        return APR_NOTFOUND;
    }
    m->wrong = arrange(m);
    if (m->wrong != NULL) {
        return APR_EINVAL;
    }
    m->done = YK_MADE_SLOT;
    return yk_making_slot_write(store, m);
}

static int is_text_or_null(const char *text, apr_size_t most)
{
    return text == NULL || *text == '\0' || yk_operate_is_text(text, most);
}

static const char *check(const yk_setup_slot_t *said, apr_pool_t *p)
{
    uint32_t i;

    if (said->key == NULL || !yk_text_is_key(said->key)) {
        return "slot: a key is 1 to 64 of letters, digits, dot, underscore, "
               "hyphen.";
    }
    if (!is_text_or_null(said->title, YK_TEXT_NAME)) {
        return apr_psprintf(p, "title: at most %d bytes of UTF-8.",
                            YK_TEXT_NAME);
    }
    if (!is_text_or_null(said->resource, YK_TEXT_KEY) ||
        !is_text_or_null(said->series, YK_TEXT_KEY)) {
        return apr_psprintf(p, "resource, series: at most %d bytes of UTF-8.",
                            YK_TEXT_KEY);
    }
    if (said->starts < 0 || said->ends < 0 || said->opens < 0 ||
        said->closes < 0) {
        return "times: not before 1970.";
    }
    for (i = 0; i < said->nareas; i++) {
        if (!yk_operate_is_text(said->areas[i].name, YK_TEXT_NAME) ||
            (unsigned)said->areas[i].mode >= YK_MODE_COUNT) {
            return apr_psprintf(p,
                                "area %u: a name of 1 to %d bytes and one "
                                "of closed, placed, assigned, pooled.",
                                i + 1, YK_TEXT_NAME);
        }
    }
    return NULL;
}

apr_status_t yk_setup_slot(yk_store_t *store, const char **say,
                           uint32_t tenant_id, const yk_setup_slot_t *slot,
                           apr_pool_t *p)
{
    static const char *const words[] = {"The slot %s is there unchanged.",
                                        "Changed the slot %s.",
                                        "Added the slot %s; it is closed."};
    yk_making_slot_t *m = apr_pcalloc(p, sizeof(*m));
    apr_status_t rv;

    *say = check(slot, p);
    if (*say != NULL) {
        return APR_EINVAL;
    }
    m->said = slot;
    m->tenant_id = tenant_id;
    m->p = p;
    m->areas = apr_pcalloc(p, YK_AREAS_MOST * sizeof(*m->areas));
    rv = yk_operate(store, make_or_change, m);
    if (rv == APR_SUCCESS && m->moved) {
        /* limits over the series reach it now: whoever did not count under
         * them has committed when this returns */
        const char *resource =
            m->was != NULL ? m->was->resource : slot->resource;
        rv = *resource != '\0'
                 ? yk_operate_barrier_over(store, tenant_id, YK_OVER_RESOURCE,
                                           resource, p)
                 : yk_operate_barrier(store, m->slot_id);
    }
    if (rv != APR_SUCCESS) {
        *say = m->wrong != NULL     ? m->wrong
               : rv == APR_NOTFOUND ? "There is no such tenant."
                                    : "The slot could not be written.";
        return rv;
    }
    *say = apr_psprintf(p, words[m->done], slot->key);
    return APR_SUCCESS;
}
