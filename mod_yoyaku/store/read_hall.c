/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_tables.h>
#include <string.h>
#include "packet.h"

typedef struct reading_t {
    yk_hall_t *hall;
    uint32_t sections, grades, places; /* read so far */
    const char *row_name, *grade;      /* of the place before: shared */
    apr_pool_t *p;
} reading_t;

#define HALL_SELECT                                                            \
    "SELECT hall_id,name,version,width,height,nsections,nplaces,ngrades,"      \
    "digest FROM yoyaku_hall WHERE "

static yk_hall_t *hall_read(char **row, const unsigned long *lengths,
                            apr_pool_t *p)
{
    yk_hall_t *hall = apr_pcalloc(p, sizeof(*hall));

    hall->hall_id = yk_column_uint(row[0]);
    hall->name = yk_column_text(row[1], lengths[1], p);
    hall->version = (uint32_t)yk_column_uint(row[2]);
    hall->width = yk_column_double(row[3]);
    hall->height = yk_column_double(row[4]);
    hall->nsections = (uint32_t)yk_column_uint(row[5]);
    hall->nplaces = (uint32_t)yk_column_uint(row[6]);
    hall->ngrades = (uint32_t)yk_column_uint(row[7]);
    yk_column_bytes(hall->digest.bytes, sizeof(hall->digest.bytes), row[8],
                    lengths[8]);
    return hall;
}

static void hall_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_hall_t *hall = hall_read(row, lengths, r->p);

    hall->sections =
        apr_pcalloc(r->p, (hall->nsections + 1) * sizeof(*hall->sections));
    hall->grades =
        apr_pcalloc(r->p, (hall->ngrades + 1) * sizeof(*hall->grades));
    hall->places =
        apr_pcalloc(r->p, (hall->nplaces + 1) * sizeof(*hall->places));
    r->hall = hall;
}

static void section_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_plan_section_t *section;

    if (r->hall == NULL || r->sections == r->hall->nsections) {
        return;
    }
    section = &r->hall->sections[r->sections++];
    section->name = yk_column_text(row[0], lengths[0], r->p);
    section->first = (uint32_t)yk_column_uint(row[1]);
    section->places = (uint32_t)yk_column_uint(row[2]);
}

static void grade_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_plan_grade_t *grade;

    if (r->hall == NULL || r->grades == r->hall->ngrades) {
        return;
    }
    grade = &r->hall->grades[r->grades++];
    grade->name = yk_column_text(row[0], lengths[0], r->p);
    grade->color = yk_column_text(row[1], lengths[1], r->p);
}

/* Neighbours mostly share row and grade: keep one copy of those. */
static const char *same_or_new(const char *before, const char *column,
                               unsigned long len, apr_pool_t *p)
{
    if (before != NULL && column != NULL && strlen(before) == len &&
        memcmp(before, column, len) == 0) {
        return before;
    }
    return yk_column_text(column, len, p);
}

static void place_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_plan_place_t *place;

    if (r->hall == NULL || r->places == r->hall->nplaces) {
        return;
    }
    place = &r->hall->places[r->places++];
    place->guid = yk_column_text(row[0], lengths[0], r->p);
    place->row = same_or_new(r->row_name, row[1], lengths[1], r->p);
    place->seat = yk_column_text(row[2], lengths[2], r->p);
    place->grade = same_or_new(r->grade, row[3], lengths[3], r->p);
    place->section_no = (uint32_t)yk_column_uint(row[4]);
    place->x = yk_column_double(row[5]);
    place->y = yk_column_double(row[6]);
    place->joined = (int)yk_column_int(row[7]);
    r->row_name = place->row;
    r->grade = place->grade;
}

/* A hall never changes once it is there: four plain reads agree. */
apr_status_t yk_store_hall(yk_store_t *store, yk_hall_t **hall,
                           uint64_t hall_id, apr_pool_t *p)
{
    reading_t r;
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql;
    apr_status_t rv;

    memset(&r, 0, sizeof(r));
    r.p = p;
    sql = yk_packet_ask(packet, hall_row, &r);
    yk_sql_put(sql, HALL_SELECT "hall_id=");
    yk_sql_uint(sql, hall_id);
    sql = yk_packet_ask(packet, section_row, &r);
    yk_sql_put(sql, "SELECT name,first_place,places FROM yoyaku_section"
                    " WHERE hall_id=");
    yk_sql_uint(sql, hall_id);
    yk_sql_put(sql, " ORDER BY section_no");
    sql = yk_packet_ask(packet, grade_row, &r);
    yk_sql_put(sql, "SELECT name,color FROM yoyaku_grade WHERE hall_id=");
    yk_sql_uint(sql, hall_id);
    yk_sql_put(sql, " ORDER BY grade_no");
    sql = yk_packet_ask(packet, place_row, &r);
    yk_sql_put(sql, "SELECT guid,row_name,seat,grade,section_no,x,y,joined"
                    " FROM yoyaku_place FORCE INDEX (PRIMARY) WHERE hall_id=");
    yk_sql_uint(sql, hall_id);
    yk_sql_put(sql, " ORDER BY place_no");
    rv = yk_packet_run(packet);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (r.hall == NULL) {
        return APR_NOTFOUND;
    }
    if (r.sections != r.hall->nsections || r.grades != r.hall->ngrades ||
        r.places != r.hall->nplaces) {
        return APR_EGENERAL;
    }
    *hall = r.hall;
    return APR_SUCCESS;
}

/* ---- the list ---- */

typedef struct listing_t {
    apr_array_header_t *halls;
    apr_pool_t *p;
} listing_t;

static void listed_row(void *baton, char **row, const unsigned long *lengths)
{
    listing_t *r = baton;

    APR_ARRAY_PUSH(r->halls, yk_hall_t *) = hall_read(row, lengths, r->p);
}

apr_status_t yk_store_halls(yk_store_t *store, yk_hall_t ***halls, uint32_t *n,
                            uint32_t tenant_id, apr_pool_t *p)
{
    listing_t r = {apr_array_make(p, 16, sizeof(yk_hall_t *)), p};
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, listed_row, &r);
    apr_status_t rv;

    yk_sql_put(sql, HALL_SELECT "tenant_id=");
    yk_sql_uint(sql, tenant_id);
    yk_sql_put(sql, " ORDER BY name,version");
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS) {
        *halls = (yk_hall_t **)r.halls->elts;
        *n = (uint32_t)r.halls->nelts;
    }
    return rv;
}
