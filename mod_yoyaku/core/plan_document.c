/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_file.h"

#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include "yoyaku/text.h"

/* Written straight into one growing text: 80,000 places are five megabytes, and
 * a tree of them would be a hundred. */
typedef struct paper_t {
    apr_pool_t *p;
    char *bytes;
    apr_size_t len, space;
} paper_t;

static char *room(paper_t *paper, apr_size_t more)
{
    if (paper->len + more > paper->space) {
        char *old = paper->bytes;

        paper->space = 2 * (paper->len + more);
        paper->bytes = apr_palloc(paper->p, paper->space);
        memcpy(paper->bytes, old, paper->len);
    }
    return paper->bytes + paper->len;
}

static void put(paper_t *paper, const char *text)
{
    apr_size_t len = strlen(text);

    memcpy(room(paper, len), text, len);
    paper->len += len;
}

static void put_text(paper_t *paper, const char *text)
{
    char *from = room(paper, 6 * strlen(text) + 2);

    paper->len += (apr_size_t)(yk_text_json(from, text) - from);
}

/* Thousandths at most, and no noughts behind. Not printf's %f, whose point
 * depends on the locale. */
static void put_number(paper_t *paper, double number)
{
    char digits[32], *at = digits + sizeof(digits);
    int64_t thousandths = llround(fmin(fmax(number, -1e12), 1e12) * 1000);
    uint64_t size =
        thousandths < 0 ? -(uint64_t)thousandths : (uint64_t)thousandths;

    *--at = '\0';
    for (int i = 0; i < 3; i++, size /= 10) {
        if (size % 10 != 0 || *at != '\0') {
            *--at = (char)('0' + size % 10);
        }
    }
    if (*at != '\0') {
        *--at = '.';
    }
    do {
        *--at = (char)('0' + size % 10);
        size /= 10;
    } while (size > 0);
    if (thousandths < 0) {
        *--at = '-';
    }
    put(paper, at);
}

static void put_member(paper_t *paper, const char *before, const char *text)
{
    put(paper, before);
    put_text(paper, text);
}

static void put_place(paper_t *paper, const yk_plan_place_t *place)
{
    put_member(paper, "{\"guid\":", place->guid);
    put_member(paper, ",\"seat\":", place->seat);
    put(paper, ",\"x\":");
    put_number(paper, place->x);
    put(paper, ",\"y\":");
    put_number(paper, place->y);
    put_member(paper, ",\"grade\":", place->grade);
    put(paper, "}");
}

static void put_section(paper_t *paper, const yk_plan_t *plan,
                        uint32_t section_no)
{
    yk_plan_section_t section;
    yk_plan_place_t place;
    const char *row = NULL;

    yk_plan_section(plan, &section, section_no);
    put_member(paper, "{\"section\":", section.name);
    put(paper, ",\"places\":");
    put_number(paper, section.places);
    put(paper, ",\"rows\":[");
    for (uint32_t i = 0; i < section.places; i++) {
        yk_plan_place(plan, &place, section.first + i);
        if (row == NULL || strcmp(row, place.row) != 0) {
            put(paper, row != NULL ? "]}," : "");
            put_member(paper, "{\"row\":", place.row);
            put(paper, ",\"places\":[");
            row = place.row;
        }
        else {
            put(paper, ",");
        }
        put_place(paper, &place);
    }
    put(paper, row != NULL ? "]}]}" : "]}");
}

static void put_head(paper_t *paper, const yk_plan_t *plan)
{
    double width, height;

    yk_plan_size(plan, &width, &height);
    put_member(paper, "{\"hall\":", yk_plan_name(plan));
    put(paper, ",\"version\":");
    put_number(paper, yk_plan_version(plan));
    put_member(
        paper, ",\"hash\":",
        yk_text_hex(yk_plan_digest(plan)->bytes, YK_HASH_BYTES, paper->p));
    put(paper, ",\"size\":{\"width\":");
    put_number(paper, width);
    put(paper, ",\"height\":");
    put_number(paper, height);
    put(paper, "},\"grades\":[");
    for (uint32_t i = 0; i < yk_plan_grades(plan); i++) {
        yk_plan_grade_t grade;

        yk_plan_grade(plan, &grade, i);
        put_member(paper, i > 0 ? ",{\"grade\":" : "{\"grade\":", grade.name);
        if (grade.color[0] != '\0') {
            put_member(paper, ",\"color\":", grade.color);
        }
        put(paper, "}");
    }
    put(paper, "],\"sections\":[");
}

void yk_plan_document(const yk_plan_t *plan, const char **json, apr_size_t *len,
                      uint32_t section_no, apr_pool_t *p)
{
    paper_t paper = {p, NULL, 0, 0};
    uint32_t first = section_no == YK_PLAN_NONE ? 0 : section_no;
    uint32_t end =
        section_no == YK_PLAN_NONE ? yk_plan_sections(plan) : section_no + 1;

    paper.space = 4096 + (apr_size_t)90 * yk_plan_places(plan) * (end - first) /
                             (yk_plan_sections(plan) + 1);
    paper.bytes = apr_palloc(p, paper.space);
    put_head(&paper, plan);
    for (uint32_t i = first; i < end; i++) {
        put(&paper, i > first ? "," : "");
        put_section(&paper, plan, i);
    }
    put(&paper, "]}");
    *json = paper.bytes;
    *len = paper.len;
}
