/* SPDX-License-Identifier: Apache-2.0 */
#include "hall_draft.h"

#include <apr_strings.h>
#include <math.h>

#define ROW_PLACES 40
#define SEAT 20.0  /* from seat to seat */
#define ROW 24.0   /* from row to row */
#define AISLE 60.0 /* what an aisle adds */

/* A section's block of rows, its left front corner at x, y. */
static void draw_section(yk_hall_draft_t *draft, uint32_t no, uint32_t places,
                         double x, double y)
{
    const char *name = apr_psprintf(draft->p, "Section %u", no + 1);
    uint32_t row_no = 0;

    yk_hall_draft_section(draft, name);
    for (uint32_t i = 0; i < places; i++) {
        uint32_t row = i / ROW_PLACES, seat = i % ROW_PLACES;
        yk_plan_place_t place = {0};

        if (seat == 0) {
            row_no = yk_hall_draft_row(draft);
        }
        place.section_no = no;
        place.row = apr_psprintf(draft->p, "%u", row + 1);
        place.seat = apr_psprintf(draft->p, "%u", seat + 1);
        place.guid =
            apr_psprintf(draft->p, "%u-%u-%u", no + 1, row + 1, seat + 1);
        place.grade = "standard";
        place.x = x + seat * SEAT + (seat >= ROW_PLACES / 2 ? AISLE : 0);
        place.y = y + row * ROW;
        yk_hall_draft_place(draft, &place, row_no);
    }
}

apr_status_t yk_hall_generate(yk_hall_t **phall, uint32_t sections,
                              uint32_t places_each, apr_pool_t *p)
{
    yk_hall_draft_t *draft;
    const char *errors;
    uint32_t rows, across;
    double wide, deep;

    if (sections == 0 || places_each == 0 ||
        (uint64_t)sections * places_each > YK_PLAN_PLACES_MAX) {
        return APR_EINVAL;
    }
    draft = yk_hall_draft_make(
        apr_psprintf(p, "generated:%ux%u", sections, places_each), p);
    yk_hall_draft_grade(draft, "standard", "#2980b9");
    rows = (places_each + ROW_PLACES - 1) / ROW_PLACES;
    wide = ROW_PLACES * SEAT + 2 * AISLE;
    deep = rows * ROW + AISLE;
    across = (uint32_t)ceil(sqrt(sections * deep / wide));
    across = across > sections ? sections : across;
    for (uint32_t i = 0; i < sections; i++) {
        draw_section(draft, i, places_each, SEAT + i % across * wide,
                     SEAT + i / across * deep);
    }
    draft->width = across * wide;
    draft->height = (sections + across - 1) / across * deep;
    return yk_hall_draft_end(draft, phall, &errors);
}
