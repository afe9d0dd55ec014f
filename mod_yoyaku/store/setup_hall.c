/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include "operate.h"
#include "yoyaku/text.h"

/* Rows of one statement: some 300 KiB, well below a packet's usual limit. */
#define HALL_ROWS 1000

typedef struct making_t {
    const yk_hall_t *hall;
    uint32_t tenant_id;
    uint64_t hall_id;
    uint32_t version; /* newest in the book, then the one made */
    yk_hash_t digest;
    int is_new;
    yk_setup_progress_fn *progress;
    void *progress_baton;
} making_t;

static void newest_row(void *baton, char **row, const unsigned long *lengths)
{
    making_t *m = baton;

    m->hall_id = yk_column_uint(row[0]);
    m->version = (uint32_t)yk_column_uint(row[1]);
    yk_column_bytes(m->digest.bytes, sizeof(m->digest.bytes), row[2],
                    lengths[2]);
}

static apr_status_t find_newest(yk_store_t *store, making_t *m)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, newest_row, m);

    m->hall_id = 0;
    m->version = 0;
    yk_sql_put(sql, "SELECT hall_id,version,digest FROM yoyaku_hall"
                    " WHERE tenant_id=");
    yk_sql_uint(sql, m->tenant_id);
    yk_sql_put(sql, " AND name=");
    yk_sql_text(sql, m->hall->name);
    yk_sql_put(sql, " ORDER BY version DESC LIMIT 1");
    return yk_packet_run(packet);
}

static void put_hall(yk_packet_t *packet, const making_t *m)
{
    const yk_hall_t *hall = m->hall;
    yk_sql_t *sql = yk_packet_do(packet);

    yk_sql_put(sql, "INSERT INTO yoyaku_hall (hall_id,tenant_id,name,version,"
                    "width,height,nsections,nplaces,ngrades,digest) VALUES ");
    yk_sql_row(sql);
    yk_sql_uint(sql, m->hall_id);
    yk_sql_uint(sql, m->tenant_id);
    yk_sql_text(sql, hall->name);
    yk_sql_uint(sql, m->version);
    yk_sql_double(sql, hall->width);
    yk_sql_double(sql, hall->height);
    yk_sql_uint(sql, hall->nsections);
    yk_sql_uint(sql, hall->nplaces);
    yk_sql_uint(sql, hall->ngrades);
    yk_sql_hash(sql, &hall->digest);
    yk_sql_row_end(sql);
}

static void put_sections(yk_packet_t *packet, const making_t *m)
{
    yk_sql_t *sql = yk_packet_do(packet);
    uint32_t i;

    yk_sql_put(sql, "INSERT INTO yoyaku_section (hall_id,section_no,name,"
                    "first_place,places) VALUES ");
    for (i = 0; i < m->hall->nsections; i++) {
        const yk_plan_section_t *section = &m->hall->sections[i];
        yk_sql_row(sql);
        yk_sql_uint(sql, m->hall_id);
        yk_sql_uint(sql, i);
        yk_sql_text(sql, section->name);
        yk_sql_uint(sql, section->first);
        yk_sql_uint(sql, section->places);
        yk_sql_row_end(sql);
    }
}

static void put_grades(yk_packet_t *packet, const making_t *m)
{
    yk_sql_t *sql;
    uint32_t i;

    if (m->hall->ngrades == 0) {
        return;
    }
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "INSERT INTO yoyaku_grade (hall_id,grade_no,name,color)"
                    " VALUES ");
    for (i = 0; i < m->hall->ngrades; i++) {
        yk_sql_row(sql);
        yk_sql_uint(sql, m->hall_id);
        yk_sql_uint(sql, i);
        yk_sql_text(sql, m->hall->grades[i].name);
        yk_sql_text(sql, m->hall->grades[i].color);
        yk_sql_row_end(sql);
    }
}

static void put_places(yk_packet_t *packet, const making_t *m, uint32_t from,
                       uint32_t to)
{
    yk_sql_t *sql = yk_packet_do(packet);
    uint32_t i;

    yk_sql_put(sql, "INSERT INTO yoyaku_place (hall_id,place_no,section_no,"
                    "guid,row_name,seat,grade,x,y,joined) VALUES ");
    for (i = from; i < to; i++) {
        const yk_plan_place_t *place = &m->hall->places[i];
        yk_sql_row(sql);
        yk_sql_uint(sql, m->hall_id);
        yk_sql_uint(sql, i);
        yk_sql_uint(sql, place->section_no);
        yk_sql_text(sql, place->guid);
        yk_sql_text(sql, place->row);
        yk_sql_text(sql, place->seat);
        yk_sql_text(sql, place->grade);
        yk_sql_double(sql, place->x);
        yk_sql_double(sql, place->y);
        yk_sql_uint(sql, place->joined ? 1 : 0);
        yk_sql_row_end(sql);
    }
}

/* One transaction: nobody sees a hall by halves, and nobody waits for its
 * rows, which are all new. */
static apr_status_t make(yk_store_t *store, void *baton)
{
    making_t *m = baton;
    const yk_hall_t *hall = m->hall;
    yk_packet_t *packet;
    uint32_t from;
    apr_status_t rv = yk_operate_begin(store, m->tenant_id);

    if (rv == APR_SUCCESS) {
        rv = find_newest(store, m);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    m->is_new = m->version == 0 ||
                memcmp(&m->digest, &hall->digest, sizeof(m->digest)) != 0;
    if (!m->is_new) {
        return APR_SUCCESS;
    }
    m->hall_id = yk_operate_number();
    m->version++;
    packet = yk_packet_make(store);
    put_hall(packet, m);
    put_sections(packet, m);
    put_grades(packet, m);
    rv = yk_packet_run(packet);
    for (from = 0; from < hall->nplaces && rv == APR_SUCCESS;
         from += HALL_ROWS) {
        uint32_t to =
            from + HALL_ROWS < hall->nplaces ? from + HALL_ROWS : hall->nplaces;
        packet = yk_packet_make(store);
        put_places(packet, m, from, to);
        rv = yk_packet_run(packet);
        if (rv == APR_SUCCESS && m->progress != NULL) {
            m->progress(m->progress_baton, to, hall->nplaces);
        }
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    packet = yk_packet_make(store);
    yk_packet_commit(packet);
    return yk_packet_run(packet);
}

static int place_fits(const yk_plan_place_t *place)
{
    return yk_operate_is_text(place->guid, YK_TEXT_KEY) &&
           strlen(place->row) <= YK_TEXT_NAME &&
           strlen(place->seat) <= YK_TEXT_NAME &&
           strlen(place->grade) <= YK_TEXT_NAME && isfinite(place->x) &&
           isfinite(place->y);
}

/* What a parser has let through and the book could not keep. */
static const char *check(const yk_hall_t *hall, apr_pool_t *p)
{
    uint32_t i;

    if (!yk_operate_is_text(hall->name, YK_TEXT_NAME)) {
        return apr_psprintf(p, "hall: a name has 1 to %d bytes.", YK_TEXT_NAME);
    }
    if (hall->nplaces == 0 || hall->nplaces > YK_PLAN_PLACES_MAX ||
        hall->nsections == 0) {
        return apr_psprintf(p, "hall: it has 1 to %d places, in sections.",
                            YK_PLAN_PLACES_MAX);
    }
    for (i = 0; i < hall->nsections; i++) {
        if (!yk_operate_is_text(hall->sections[i].name, YK_TEXT_NAME)) {
            return apr_psprintf(p, "section %u: a name has 1 to %d bytes.",
                                i + 1, YK_TEXT_NAME);
        }
    }
    for (i = 0; i < hall->nplaces; i++) {
        if (!place_fits(&hall->places[i])) {
            return apr_psprintf(p,
                                "place %u: a guid has 1 to %d bytes, other "
                                "names at most %d, coordinates are numbers.",
                                i + 1, YK_TEXT_KEY, YK_TEXT_NAME);
        }
    }
    return NULL;
}

apr_status_t yk_setup_hall(yk_store_t *store, const char **say,
                           uint64_t *hall_id, uint32_t tenant_id,
                           const yk_hall_t *hall,
                           yk_setup_progress_fn *progress, void *baton,
                           apr_pool_t *p)
{
    making_t m;
    apr_status_t rv;

    memset(&m, 0, sizeof(m));
    m.hall = hall;
    m.tenant_id = tenant_id;
    m.progress = progress;
    m.progress_baton = baton;
    *say = check(hall, p);
    if (*say != NULL) {
        return APR_EINVAL;
    }
    rv = yk_operate(store, make, &m);
    if (rv != APR_SUCCESS) {
        *say = rv == APR_NOTFOUND ? "There is no such tenant."
                                  : "The hall could not be written.";
        return rv;
    }
    *hall_id = m.hall_id;
    *say = apr_psprintf(p,
                        m.is_new ? "Put the hall %s into the book: version "
                                   "%u, %u places."
                                 : "The hall %s is there unchanged: version "
                                   "%u, %u places.",
                        hall->name, m.version, hall->nplaces);
    return APR_SUCCESS;
}
