/* SPDX-License-Identifier: Apache-2.0 */
#include "hall_draft.h"

#include <apr_strings.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include "yoyaku/text.h"

/*
 * A pretix seating plan:
 *   name, size {width, height}, categories [{name, color}],
 *   zones [{name, position {x, y}, rows [{row_number, position,
 *     seats [{seat_guid, seat_number, position, category}]}]}]
 */

#define FAR 1e7 /* no drawing is larger */

/* Where in the plan we are, for sentences; NULL and 0 are left out. */
typedef struct where_t {
    const char *zone, *row;
    int seat;
} where_t;

static const char *where_text(yk_hall_draft_t *draft, const where_t *where)
{
    const char *text = "the plan";

    if (where->zone != NULL) {
        text = apr_pstrcat(draft->p, "zone ", yk_hall_shown(draft, where->zone),
                           NULL);
    }
    if (where->row != NULL) {
        text = apr_pstrcat(draft->p, text, " row ",
                           yk_hall_shown(draft, where->row), NULL);
    }
    return where->seat > 0
               ? apr_psprintf(draft->p, "%s seat %d", text, where->seat)
               : text;
}

/* Sentences beyond those that are shown are only counted. */
static void missing(yk_hall_draft_t *draft, const where_t *where,
                    const char *member, const char *what)
{
    if (draft->nfaults >= YK_HALL_FAULTS_SHOWN) {
        draft->nfaults++;
        return;
    }
    yk_hall_fault(draft, "%s: %s is not %s", where_text(draft, where), member,
                  what);
}

/* A text, or a whole number taken as one. NULL: told as a fault */
static const char *text_of(yk_hall_draft_t *draft, const json_t *object,
                           const char *member, apr_size_t min, apr_size_t max,
                           const where_t *where)
{
    const json_t *value = json_object_get(object, member);
    const char *text = NULL;

    if (json_is_string(value)) {
        text = apr_pstrdup(draft->p, json_string_value(value));
    }
    else if (json_is_integer(value)) {
        text = apr_psprintf(draft->p, "%" APR_INT64_T_FMT,
                            (apr_int64_t)json_integer_value(value));
    }
    if (text == NULL || !yk_hall_is_text(text, min, max)) {
        missing(draft, where, member,
                apr_psprintf(draft->p,
                             "a text of %" APR_SIZE_T_FMT " to %" APR_SIZE_T_FMT
                             " bytes",
                             min, max));
        return NULL;
    }
    return text;
}

static int number_of(double *number, const json_t *value)
{
    *number = json_number_value(value);
    return json_is_number(value) && fabs(*number) <= FAR;
}

/* Add an object's position to x, y. */
static int position_add(yk_hall_draft_t *draft, double *x, double *y,
                        const json_t *object, const where_t *where)
{
    const json_t *position = json_object_get(object, "position");
    double dx, dy;

    if (!number_of(&dx, json_object_get(position, "x")) ||
        !number_of(&dy, json_object_get(position, "y"))) {
        missing(draft, where, "position", "{x, y} of two numbers");
        return 0;
    }
    *x += dx;
    *y += dy;
    return 1;
}

static void read_seat(yk_hall_draft_t *draft, const json_t *seat, double x,
                      double y, int section_no, uint32_t row_no,
                      const where_t *where)
{
    yk_plan_place_t place = {0};
    const char *category;
    int grade_no;
    apr_status_t rv;

    place.guid = text_of(draft, seat, "seat_guid", 1, YK_TEXT_KEY, where);
    place.seat = text_of(draft, seat, "seat_number", 0, YK_TEXT_KEY, where);
    category = text_of(draft, seat, "category", 1, YK_TEXT_KEY, where);
    if (!position_add(draft, &x, &y, seat, where) || place.guid == NULL ||
        place.seat == NULL || category == NULL || section_no < 0) {
        return;
    }
    grade_no = yk_hall_draft_find_grade(draft, category);
    if (grade_no < 0) {
        yk_hall_fault(draft, "%s: there is no category %s",
                      where_text(draft, where), yk_hall_shown(draft, category));
        return;
    }
    place.grade = APR_ARRAY_IDX(draft->grades, grade_no, yk_plan_grade_t).name;
    place.row = where->row;
    place.section_no = (uint32_t)section_no;
    place.x = x;
    place.y = y;
    rv = yk_hall_draft_place(draft, &place, row_no);
    if (rv == APR_EEXIST) {
        yk_hall_fault(draft, "%s: seat_guid %s stands there twice",
                      where_text(draft, where),
                      yk_hall_shown(draft, place.guid));
    }
}

static void read_row(yk_hall_draft_t *draft, const json_t *row, double x,
                     double y, int section_no, where_t *where)
{
    const json_t *seats = json_object_get(row, "seats"), *seat;
    uint32_t row_no = yk_hall_draft_row(draft);
    size_t i;

    where->row = text_of(draft, row, "row_number", 0, YK_TEXT_KEY, where);
    if (where->row == NULL) {
        return;
    }
    if (!json_is_array(seats)) {
        missing(draft, where, "seats", "a list");
    }
    if (position_add(draft, &x, &y, row, where)) {
        json_array_foreach(seats, i, seat)
        {
            where->seat = (int)i + 1;
            read_seat(draft, seat, x, y, section_no, row_no, where);
        }
    }
    where->seat = 0;
    where->row = NULL;
}

static void read_zone(yk_hall_draft_t *draft, const json_t *zone)
{
    const json_t *rows = json_object_get(zone, "rows"), *row;
    where_t where = {0};
    double x = 0, y = 0;
    int section_no;
    size_t i;

    where.zone = text_of(draft, zone, "name", 1, YK_TEXT_NAME, &where);
    if (where.zone == NULL) {
        return;
    }
    section_no = yk_hall_draft_section(draft, where.zone);
    if (section_no < 0) {
        yk_hall_fault(draft, "there are two zones %s",
                      yk_hall_shown(draft, where.zone));
    }
    if (!json_is_array(rows)) {
        missing(draft, &where, "rows", "a list");
    }
    if (position_add(draft, &x, &y, zone, &where)) {
        json_array_foreach(rows, i, row)
        {
            read_row(draft, row, x, y, section_no, &where);
        }
    }
}

/* It goes into style sheets: a hex colour or nothing. */
static const char *color_of(yk_hall_draft_t *draft, const json_t *category)
{
    const char *color = json_string_value(json_object_get(category, "color"));
    apr_size_t len = color != NULL ? strlen(color) : 0;

    if ((len != 4 && len != 7) || color[0] != '#' ||
        strspn(color + 1, "0123456789abcdefABCDEF") != len - 1) {
        return "";
    }
    return apr_pstrdup(draft->p, color);
}

static void read_categories(yk_hall_draft_t *draft, const json_t *plan)
{
    const json_t *categories = json_object_get(plan, "categories"), *category;
    where_t where = {0};
    size_t i;

    if (!json_is_array(categories)) {
        missing(draft, &where, "categories", "a list");
    }
    json_array_foreach(categories, i, category)
    {
        const char *name =
            text_of(draft, category, "name", 1, YK_TEXT_KEY, &where);

        if (name != NULL &&
            yk_hall_draft_grade(draft, name, color_of(draft, category)) < 0) {
            yk_hall_fault(draft, "there are two categories %s",
                          yk_hall_shown(draft, name));
        }
    }
}

/* Seats in the whole plan, so that one too many is refused before the work. */
static size_t seats_of(const json_t *zones)
{
    size_t i, j, n = 0;
    const json_t *zone, *row;

    json_array_foreach(zones, i, zone)
    {
        const json_t *rows = json_object_get(zone, "rows");

        json_array_foreach(rows, j, row)
        {
            n += json_array_size(json_object_get(row, "seats"));
        }
    }
    return n;
}

static void read_plan(yk_hall_draft_t *draft, const json_t *plan)
{
    const json_t *size = json_object_get(plan, "size");
    const json_t *zones = json_object_get(plan, "zones"), *zone;
    where_t where = {0};
    size_t i;

    if (draft->name == NULL) {
        draft->name = text_of(draft, plan, "name", 1, YK_TEXT_NAME, &where);
    }
    if (!number_of(&draft->width, json_object_get(size, "width")) ||
        !number_of(&draft->height, json_object_get(size, "height")) ||
        draft->width < 0 || draft->height < 0) {
        missing(draft, &where, "size", "{width, height} of two numbers");
    }
    read_categories(draft, plan);
    if (!json_is_array(zones)) {
        missing(draft, &where, "zones", "a list");
    }
    if (seats_of(zones) > YK_PLAN_PLACES_MAX) {
        yk_hall_fault(draft, "the drawing has more than %d places",
                      YK_PLAN_PLACES_MAX);
        return;
    }
    json_array_foreach(zones, i, zone)
    {
        read_zone(draft, zone);
    }
}

void yk_hall_parse_json(yk_hall_draft_t *draft, const char *bytes,
                        apr_size_t len)
{
    json_error_t error;
    json_t *plan = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &error);

    if (plan == NULL) {
        int is_text = yk_text_is_utf8(error.text, strlen(error.text));

        yk_hall_fault(draft, "the file is not JSON at line %d, column %d: %s",
                      error.line, error.column, is_text ? error.text : "?");
    }
    else if (!json_is_object(plan)) {
        yk_hall_fault(draft, "the file is JSON, but not a seating plan");
    }
    else {
        read_plan(draft, plan);
    }
    json_decref(plan);
}
