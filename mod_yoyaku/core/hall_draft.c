/* SPDX-License-Identifier: Apache-2.0 */
#include "hall_draft.h"

#include <apr_strings.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "yoyaku/text.h"

#define SHOWN_BYTES 40
#define AISLE 1.5          /* times the row's usual gap */
#define SAME_WALK 1.000001 /* two walks of one length, but for rounding */

yk_hall_draft_t *yk_hall_draft_make(const char *name, apr_pool_t *p)
{
    yk_hall_draft_t *draft = apr_pcalloc(p, sizeof(*draft));

    draft->p = p;
    draft->name = name;
    draft->sections = apr_array_make(p, 16, sizeof(yk_plan_section_t));
    draft->grades = apr_array_make(p, 8, sizeof(yk_plan_grade_t));
    draft->seats = apr_array_make(p, 1024, sizeof(yk_hall_seat_t));
    draft->section_nos = apr_hash_make(p);
    draft->grade_nos = apr_hash_make(p);
    draft->guids = apr_hash_make(p);
    draft->faults = "";
    return draft;
}

void yk_hall_fault(yk_hall_draft_t *draft, const char *format, ...)
{
    va_list args;

    draft->nfaults++;
    if (draft->nfaults > YK_HALL_FAULTS_SHOWN) {
        return;
    }
    va_start(args, format);
    draft->faults =
        apr_pstrcat(draft->p, draft->faults, draft->nfaults > 1 ? "; " : "",
                    apr_pvsprintf(draft->p, format, args), NULL);
    va_end(args);
}

const char *yk_hall_shown(yk_hall_draft_t *draft, const char *text)
{
    apr_size_t len;
    char *shown;

    if (text == NULL) {
        return "?";
    }
    len = strlen(text);
    if (len > SHOWN_BYTES) {
        len = SHOWN_BYTES;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    shown = apr_psprintf(draft->p, "\"%.*s%s\"", (int)len, text,
                         text[len] != '\0' ? "..." : "");
    for (char *c = shown; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20) {
            *c = '?';
        }
    }
    return shown;
}

int yk_hall_is_text(const char *text, apr_size_t min, apr_size_t max)
{
    apr_size_t len = strlen(text);

    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            return 0;
        }
    }
    return len >= min && len <= max;
}

/* ---- names ---- */

static int no_of(apr_hash_t *nos, const char *name)
{
    return (int)((uintptr_t)apr_hash_get(nos, name, APR_HASH_KEY_STRING)) - 1;
}

static int name_add(apr_hash_t *nos, const char *name, int no)
{
    if (no_of(nos, name) >= 0) {
        return -1;
    }
    apr_hash_set(nos, name, APR_HASH_KEY_STRING, (void *)(uintptr_t)(no + 1));
    return no;
}

int yk_hall_draft_section(yk_hall_draft_t *draft, const char *name)
{
    int no = name_add(draft->section_nos, name, draft->sections->nelts);

    if (no >= 0) {
        yk_plan_section_t *section = apr_array_push(draft->sections);

        memset(section, 0, sizeof(*section));
        section->name = name;
    }
    return no;
}

int yk_hall_draft_grade(yk_hall_draft_t *draft, const char *name,
                        const char *color)
{
    int no = name_add(draft->grade_nos, name, draft->grades->nelts);

    if (no >= 0) {
        yk_plan_grade_t *grade = apr_array_push(draft->grades);

        grade->name = name;
        grade->color = color;
    }
    return no;
}

int yk_hall_draft_find_section(yk_hall_draft_t *draft, const char *name)
{
    return no_of(draft->section_nos, name);
}

int yk_hall_draft_find_grade(yk_hall_draft_t *draft, const char *name)
{
    return no_of(draft->grade_nos, name);
}

uint32_t yk_hall_draft_row(yk_hall_draft_t *draft)
{
    return draft->nrows++;
}

/* A thousandth of a unit is finer than any drawing, and survives every way
 * through text. Adding 0 makes -0 a plain 0. */
static double rounded(double x)
{
    return round(x * 1000) / 1000 + 0.0;
}

apr_status_t yk_hall_draft_place(yk_hall_draft_t *draft,
                                 const yk_plan_place_t *place, uint32_t row_no)
{
    yk_hall_seat_t *seat;

    if (draft->seats->nelts == YK_PLAN_PLACES_MAX) {
        return APR_ENOSPC;
    }
    if (apr_hash_get(draft->guids, place->guid, APR_HASH_KEY_STRING) != NULL) {
        return APR_EEXIST;
    }
    apr_hash_set(draft->guids, place->guid, APR_HASH_KEY_STRING, place->guid);
    seat = apr_array_push(draft->seats);
    seat->place = *place;
    seat->place.x = rounded(place->x);
    seat->place.y = rounded(place->y);
    seat->place.joined = 0;
    seat->row_no = row_no;
    seat->seq = (uint32_t)draft->seats->nelts;
    seat->along = 0;
    return APR_SUCCESS;
}

/* ---- the order along a row, and who sits beside whom ---- */

static int by_row(const void *a, const void *b)
{
    const yk_hall_seat_t *one = a, *two = b;

    if (one->place.section_no != two->place.section_no) {
        return one->place.section_no < two->place.section_no ? -1 : 1;
    }
    if (one->row_no != two->row_no) {
        return one->row_no < two->row_no ? -1 : 1;
    }
    return one->seq < two->seq ? -1 : one->seq > two->seq;
}

static int by_along(const void *a, const void *b)
{
    const yk_hall_seat_t *one = a, *two = b;

    if (one->along != two->along) {
        return one->along < two->along ? -1 : 1;
    }
    return one->seq < two->seq ? -1 : one->seq > two->seq;
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, two = *(const double *)b;

    return one < two ? -1 : one > two;
}

static double gap(const yk_hall_seat_t *a, const yk_hall_seat_t *b)
{
    return hypot(b->place.x - a->place.x, b->place.y - a->place.y);
}

static double walk(const yk_hall_seat_t *row, uint32_t n)
{
    double length = 0;

    for (uint32_t i = 1; i < n; i++) {
        length += gap(&row[i - 1], &row[i]);
    }
    return length;
}

/* Project every seat on the row's principal direction, pointing from the seat
 * listed first to the one listed last. */
static void project(yk_hall_seat_t *row, uint32_t n)
{
    double mx = 0, my = 0, xx = 0, yy = 0, xy = 0, angle, dx, dy;

    for (uint32_t i = 0; i < n; i++) {
        mx += row[i].place.x / n;
        my += row[i].place.y / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        double x = row[i].place.x - mx, y = row[i].place.y - my;

        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    angle = atan2(2 * xy, xx - yy) / 2;
    dx = cos(angle);
    dy = sin(angle);
    if ((row[n - 1].place.x - row[0].place.x) * dx +
            (row[n - 1].place.y - row[0].place.y) * dy <
        0) {
        dx = -dx;
        dy = -dy;
    }
    for (uint32_t i = 0; i < n; i++) {
        row[i].along = row[i].place.x * dx + row[i].place.y * dy;
    }
}

/* As listed when that is as short a walk as along the direction: a list that
 * follows a curve is better than any projection of it. */
static void order_row(yk_hall_seat_t *row, uint32_t n, double *ptemp_gaps)
{
    double listed = walk(row, n), usual;

    if (n > 2) {
        project(row, n);
        qsort(row, n, sizeof(*row), by_along);
        if (listed <= walk(row, n) * SAME_WALK) {
            qsort(row, n, sizeof(*row), by_row);
        }
    }
    for (uint32_t i = 0; i + 1 < n; i++) {
        ptemp_gaps[i] = gap(&row[i], &row[i + 1]);
    }
    if (n < 2) {
        return;
    }
    /* Of two in the middle the smaller: an aisle is not what is usual. */
    qsort(ptemp_gaps, n - 1, sizeof(*ptemp_gaps), by_size);
    usual = ptemp_gaps[(n - 2) / 2];
    for (uint32_t i = 0; i + 1 < n; i++) {
        row[i].place.joined = gap(&row[i], &row[i + 1]) <= AISLE * usual;
    }
}

static void order_rows(yk_hall_draft_t *draft)
{
    yk_hall_seat_t *seats = (yk_hall_seat_t *)draft->seats->elts;
    uint32_t n = (uint32_t)draft->seats->nelts, first = 0;
    double *gaps = apr_palloc(draft->p, (n + 1) * sizeof(*gaps));

    qsort(seats, n, sizeof(*seats), by_row);
    while (first < n) {
        uint32_t end = first + 1;

        while (end < n && seats[end].row_no == seats[first].row_no &&
               seats[end].place.section_no == seats[first].place.section_no) {
            end++;
        }
        order_row(seats + first, end - first, gaps);
        first = end;
    }
}

/* ---- the digest ---- */

typedef struct digest_t {
    char *bytes;
    apr_size_t len;
} digest_t;

static void put_number(digest_t *digest, double number)
{
    int64_t thousandths = llround(number * 1000);

    for (int i = 0; i < 8; i++) {
        digest->bytes[digest->len++] =
            (char)((uint64_t)thousandths >> (56 - 8 * i));
    }
}

/* Names have no NUL, so one behind each keeps them apart. */
static void put_text(digest_t *digest, const char *text)
{
    apr_size_t len = strlen(text) + 1;

    memcpy(digest->bytes + digest->len, text, len);
    digest->len += len;
}

static apr_size_t digest_bytes(const yk_hall_t *hall)
{
    apr_size_t len = 64;

    for (uint32_t i = 0; i < hall->nsections; i++) {
        len += strlen(hall->sections[i].name) + 9;
    }
    for (uint32_t i = 0; i < hall->ngrades; i++) {
        len += strlen(hall->grades[i].name) + strlen(hall->grades[i].color) + 2;
    }
    for (uint32_t i = 0; i < hall->nplaces; i++) {
        const yk_plan_place_t *place = &hall->places[i];

        len += strlen(place->guid) + strlen(place->row) + strlen(place->seat) +
               strlen(place->grade) + 4 + 3 * 8;
    }
    return len;
}

static void hash_hall(yk_hall_t *hall, apr_pool_t *ptemp)
{
    digest_t digest = {apr_palloc(ptemp, digest_bytes(hall)), 0};

    put_text(&digest, "hall 1");
    put_number(&digest, hall->width);
    put_number(&digest, hall->height);
    put_number(&digest, hall->nsections);
    put_number(&digest, hall->ngrades);
    for (uint32_t i = 0; i < hall->nsections; i++) {
        put_text(&digest, hall->sections[i].name);
        put_number(&digest, hall->sections[i].places);
    }
    for (uint32_t i = 0; i < hall->ngrades; i++) {
        put_text(&digest, hall->grades[i].name);
        put_text(&digest, hall->grades[i].color);
    }
    for (uint32_t i = 0; i < hall->nplaces; i++) {
        const yk_plan_place_t *place = &hall->places[i];

        put_text(&digest, place->guid);
        put_text(&digest, place->row);
        put_text(&digest, place->seat);
        put_text(&digest, place->grade);
        put_number(&digest, place->x);
        put_number(&digest, place->y);
        put_number(&digest, place->joined);
    }
    yk_secret_hash(&hall->digest, digest.bytes, digest.len);
}

/* ---- the end ---- */

static void number_places(yk_hall_t *hall, const yk_hall_draft_t *draft)
{
    const yk_hall_seat_t *seats = (const yk_hall_seat_t *)draft->seats->elts;
    uint32_t first = 0;

    hall->nplaces = (uint32_t)draft->seats->nelts;
    hall->places = apr_palloc(draft->p, hall->nplaces * sizeof(*hall->places));
    for (uint32_t i = 0; i < hall->nplaces; i++) {
        hall->places[i] = seats[i].place;
        hall->sections[seats[i].place.section_no].places++;
        hall->width = fmax(hall->width, ceil(seats[i].place.x));
        hall->height = fmax(hall->height, ceil(seats[i].place.y));
    }
    for (uint32_t i = 0; i < hall->nsections; i++) {
        hall->sections[i].first = first;
        first += hall->sections[i].places;
    }
}

static const char *all_faults(const yk_hall_draft_t *draft)
{
    uint32_t more = draft->nfaults > YK_HALL_FAULTS_SHOWN
                        ? draft->nfaults - YK_HALL_FAULTS_SHOWN
                        : 0;

    return more > 0
               ? apr_psprintf(draft->p, "%s; and %u more.", draft->faults, more)
               : apr_pstrcat(draft->p, draft->faults, ".", NULL);
}

apr_status_t yk_hall_draft_end(yk_hall_draft_t *draft, yk_hall_t **phall,
                               const char **errors)
{
    yk_hall_t *hall;

    if (draft->nfaults == 0 && draft->seats->nelts == 0) {
        yk_hall_fault(draft, "the drawing has no places");
    }
    if (draft->name == NULL) {
        draft->name = "hall";
    }
    if (!yk_hall_is_text(draft->name, 1, YK_TEXT_NAME)) {
        yk_hall_fault(draft, "the hall's name %s is not of 1 to %d bytes",
                      yk_hall_shown(draft, draft->name), YK_TEXT_NAME);
    }
    if (draft->nfaults > 0) {
        *errors = all_faults(draft);
        return APR_EINVAL;
    }
    order_rows(draft);
    hall = apr_pcalloc(draft->p, sizeof(*hall));
    hall->name = draft->name;
    hall->version = 1;
    hall->width = rounded(draft->width);
    hall->height = rounded(draft->height);
    hall->nsections = (uint32_t)draft->sections->nelts;
    hall->sections = (yk_plan_section_t *)draft->sections->elts;
    hall->ngrades = (uint32_t)draft->grades->nelts;
    hall->grades = (yk_plan_grade_t *)draft->grades->elts;
    number_places(hall, draft);
    hash_hall(hall, draft->p);
    *phall = hall;
    return APR_SUCCESS;
}
