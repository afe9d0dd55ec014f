/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <apr_strings.h>
#include <apr_time.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static apr_pool_t *p;

static void setup(void)
{
    apr_pool_create(&p, NULL);
}

static void teardown(void)
{
    apr_pool_destroy(p);
}

/*
 * A section is drawn as its rows, one text each: '.' free, 'x' gone, ' ' an
 * aisle. The answer is the same drawing with 'P' where the party sits.
 */
#define ROWS_MAX 8

typedef struct house_t {
    yk_plan_t *plan;
    unsigned char map[64];
    uint32_t nplaces;
    char rows[ROWS_MAX][40];
    int row_of[512], column_of[512];
} house_t;

static void house_make(house_t *house, const char *const *rows)
{
    const char *csv = "";

    memset(house, 0, sizeof(*house));
    /* a section before it, so that its first place is not number 0 */
    csv = "first,A,1,0,0,g\nfirst,A,2,10,0,g\nfirst,A,3,20,0,g\n";
    for (int r = 0; r < ROWS_MAX && rows[r] != NULL; r++) {
        strcpy(house->rows[r], rows[r]);
        for (int c = 0; rows[r][c] != '\0'; c++) {
            uint32_t no = house->nplaces;

            if (rows[r][c] == ' ') {
                continue;
            }
            csv = apr_psprintf(p, "%sS,%d,%d,%d,%d,g\n", csv, r, c, c * 10,
                               r * 12);
            house->row_of[no] = r;
            house->column_of[no] = c;
            if (rows[r][c] == '.') {
                house->map[no / 8] |= (unsigned char)(1 << no % 8);
            }
            house->nplaces++;
        }
    }
    house->plan = core_plan(core_hall(csv, p), p);
}

static yk_seating_e seat(house_t *house, uint32_t n, int together)
{
    uint32_t places[64];
    yk_seating_e seating =
        yk_plan_seat(house->plan, places, 1, house->map, n, together);

    if (seating == YK_SEATING_NONE ||
        (seating == YK_SEATING_SPREAD && together)) {
        return seating;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t no = places[i] - 3;

        ck_assert_uint_lt(no, house->nplaces);
        ck_assert(i == 0 || places[i] > places[i - 1]);
        ck_assert_int_eq(house->map[no / 8] >> (no % 8) & 1, 1);
        house->rows[house->row_of[no]][house->column_of[no]] = 'P';
    }
    return seating;
}

static const struct {
    uint32_t n;
    const char *before[ROWS_MAX], *after[ROWS_MAX];
} parties[] = {
    /* an empty row: from its end, leaving the rest in one piece */
    {2, {"........"}, {"PP......"}},
    /* a run that is just filled is better than breaking a long one */
    {2, {".......", "xx..xxx"}, {".......", "xxPPxxx"}},
    /* never a single place between two that are gone, when it can be avoided:
     * a run of three for two would leave one */
    {2, {"x...x", "x....x"}, {"x...x", "xPP..x"}},
    /* nor at a row's end */
    {2, {"...", "...."}, {"...", "PP.."}},
    /* when it cannot, better at the end of a row than between two */
    {2, {"x...x", "x..."}, {"x...x", "xPP."}},
    {2, {"x...x"}, {"xPP.x"}},
    /* one person does not begin a hole either */
    {1, {"x..x", "x...x"}, {"x..x", "xP..x"}},
    {1, {"x..x", "x.x"}, {"x..x", "xPx"}},
    /* an aisle separates */
    {3, {".. ..", "x...x"}, {".. ..", "xPPPx"}},
    {4, {".. ..", "xx ...."}, {".. ..", "xx PPPP"}},
    /* the last of one row and the first of the next are no neighbours */
    {2, {"xx.", ".xx", "..."}, {"xx.", ".xx", "PP."}},
    {5, {"....", "......."}, {"....", "PPPPP.."}},
    /* the whole row */
    {8, {"........"}, {"PPPPPPPP"}},
};

START_TEST(a_party_sits_side_by_side_and_leaves_no_single_place)
{
    house_t house;

    for (int together = 0; together < 2; together++) {
        house_make(&house, parties[_i].before);
        ck_assert_int_eq(seat(&house, parties[_i].n, together),
                         YK_SEATING_TOGETHER);
        for (int r = 0; r < ROWS_MAX && parties[_i].after[r] != NULL; r++) {
            ck_assert_str_eq(house.rows[r], parties[_i].after[r]);
        }
    }
}
END_TEST

static const struct {
    uint32_t n;
    const char *before[ROWS_MAX], *after[ROWS_MAX];
} spreads[] = {
    /* two rows behind each other beat the far end of one */
    {2, {".xxxxx.", ".xxxxxx"}, {"Pxxxxx.", "Pxxxxxx"}},
    {3,
     {"..xxxxxx.", ".xxxxxxx.", "xxxxxxxxx"},
     {"PPxxxxxx.", "Pxxxxxxx.", "xxxxxxxxx"}},
    /* over an aisle when that is nearest */
    {3, {".x. ..x", "xxx xxx", "x.x x.x"}, {".xP PPx", "xxx xxx", "x.x x.x"}},
    /* all that is left */
    {3, {".x.x."}, {"PxPxP"}},
};

START_TEST(a_party_that_cannot_sits_as_close_as_may_be)
{
    house_t house;

    house_make(&house, spreads[_i].before);
    ck_assert_int_eq(seat(&house, spreads[_i].n, 1), YK_SEATING_SPREAD);
    ck_assert_str_eq(house.rows[0], spreads[_i].before[0]);
    ck_assert_int_eq(seat(&house, spreads[_i].n, 0), YK_SEATING_SPREAD);
    for (int r = 0; r < ROWS_MAX && spreads[_i].after[r] != NULL; r++) {
        ck_assert_str_eq(house.rows[r], spreads[_i].after[r]);
    }
}
END_TEST

START_TEST(more_people_than_places_sit_nowhere)
{
    static const char *const rows[] = {"..x", "x.", NULL};
    static const char *const full[] = {"xxx", NULL};
    house_t house;

    house_make(&house, rows);
    ck_assert_int_eq(seat(&house, 4, 0), YK_SEATING_NONE);
    ck_assert_int_eq(seat(&house, 4, 1), YK_SEATING_NONE);
    ck_assert_int_eq(seat(&house, 0, 0), YK_SEATING_NONE);
    ck_assert_int_eq(seat(&house, 3, 0), YK_SEATING_SPREAD);
    house_make(&house, full);
    ck_assert_int_eq(seat(&house, 1, 0), YK_SEATING_NONE);
}
END_TEST

/* ---- against a slow seating of its own: every window, every lonely place ----
 */

static int is_free(const unsigned char *map, uint32_t i)
{
    return map[i / 8] >> (i % 8) & 1;
}

/* Free places all of whose neighbours are gone, once the window is taken; 1000
 * for one between two gone places, 1 for one at the end of a row. -1: no seat
 */
static int loneliness(const yk_plan_place_t *places, uint32_t n,
                      const unsigned char *map, uint32_t at, uint32_t people)
{
    int lonely = 0;

    for (uint32_t i = at; i < at + people; i++) {
        if (!is_free(map, i) || (i + 1 < at + people && !places[i].joined)) {
            return -1;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        int has_left = i > 0 && places[i - 1].joined;
        int has_right = i + 1 < n && places[i].joined;
        int left_free = has_left && is_free(map, i - 1) &&
                        !(i - 1 >= at && i - 1 < at + people);
        int right_free = has_right && is_free(map, i + 1) &&
                         !(i + 1 >= at && i + 1 < at + people);
        int touches = i + 1 == at || i == at + people;

        if (touches && is_free(map, i) && !left_free && !right_free &&
            (has_left || has_right) &&
            ((i + 1 == at && has_right) || (i == at + people && has_left))) {
            lonely += has_left && has_right ? 1000 : 1;
        }
    }
    return lonely;
}

START_TEST(no_seating_is_lonelier_than_the_best_there_is)
{
    yk_hall_t *hall;
    yk_plan_t *plan;
    yk_plan_place_t places[150];

    yk_hall_generate(&hall, 1, 150, p);
    plan = core_plan(hall, p);
    memcpy(places, hall->places, sizeof(places));
    srand(4711);
    for (int round = 0; round < 3000; round++) {
        unsigned char map[19] = {0};
        uint32_t people = 1 + (uint32_t)rand() % 6, seats[8];
        int chance = 1 + rand() % 9, best = -1, its;
        yk_seating_e seating;

        for (uint32_t i = 0; i < 150; i++) {
            if (rand() % 10 < chance) {
                map[i / 8] |= (unsigned char)(1 << i % 8);
            }
        }
        for (uint32_t at = 0; at + people <= 150; at++) {
            its = loneliness(places, 150, map, at, people);
            best = its >= 0 && (best < 0 || its < best) ? its : best;
        }
        seating = yk_plan_seat(plan, seats, 0, map, people, 1);
        if (best < 0) {
            ck_assert_int_ne(seating, YK_SEATING_TOGETHER);
            continue;
        }
        ck_assert_int_eq(seating, YK_SEATING_TOGETHER);
        ck_assert_uint_eq(seats[people - 1], seats[0] + people - 1);
        its = loneliness(places, 150, map, seats[0], people);
        ck_assert_int_eq(its, best);
    }
}
END_TEST

START_TEST(a_very_large_section_is_spread_over_in_bounded_time)
{
    yk_hall_t *hall;
    yk_plan_t *plan;
    unsigned char *map = apr_palloc(p, 25000);
    uint32_t places[8];
    double reach = 0;
    apr_time_t begun;

    yk_hall_generate(&hall, 1, 200000, p);
    plan = core_plan(hall, p);
    memset(map, 0x55, 25000); /* every second place: nobody sits together */
    begun = apr_time_now();
    ck_assert_int_eq(yk_plan_seat(plan, places, 0, map, 8, 0),
                     YK_SEATING_SPREAD);
    ck_assert_int_lt(apr_time_now() - begun, 2 * APR_USEC_PER_SEC);
    for (int i = 1; i < 8; i++) {
        yk_plan_place_t one, two;

        yk_plan_place(plan, &one, places[0]);
        yk_plan_place(plan, &two, places[i]);
        reach = fmax(reach, hypot(one.x - two.x, one.y - two.y));
    }
    /* eight of every second place lie within three rows and six seats */
    ck_assert_double_lt(reach, 130);
}
END_TEST

Suite *plan_seat_suite(void)
{
    Suite *suite = suite_create("plan_seat");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_loop_test(all,
                        a_party_sits_side_by_side_and_leaves_no_single_place, 0,
                        COUNT_OF(parties));
    tcase_add_loop_test(all, a_party_that_cannot_sits_as_close_as_may_be, 0,
                        COUNT_OF(spreads));
    tcase_add_test(all, more_people_than_places_sit_nowhere);
    tcase_add_test(all, no_seating_is_lonelier_than_the_best_there_is);
    tcase_add_test(all, a_very_large_section_is_spread_over_in_bounded_time);
    suite_add_tcase(suite, all);
    return suite;
}
