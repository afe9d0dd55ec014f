/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <apr_strings.h>
#include <stdio.h>
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

/* A plan with one zone, whose rows are given. */
static char *plan_of(const char *rows)
{
    return apr_pstrcat(
        p,
        "{\"name\":\"Small\",\"size\":{\"width\":100,\"height\":50},"
        "\"categories\":[{\"name\":\"one\",\"color\":\"#c0392b\"},"
        "{\"name\":\"two\",\"color\":\"red;}\"}],"
        "\"zones\":[{\"name\":\"Stalls\",\"position\":{\"x\":100,\"y\":10},"
        "\"areas\":[{\"shape\":\"circle\"}],\"rows\":[",
        rows, "]}]}", NULL);
}

static char *seat(const char *guid, double x, double y)
{
    return apr_psprintf(p,
                        "{\"seat_guid\":\"%s\",\"seat_number\":\"n%s\","
                        "\"position\":{\"x\":%g,\"y\":%g},\"category\":"
                        "\"one\"}",
                        guid, guid, x, y);
}

/* A row of seats at the given places along x, named a, b, c.. */
static char *row(const char *label, const double *x, int n)
{
    char *seats = "", name[2] = "a";

    for (int i = 0; i < n; i++, name[0]++) {
        seats =
            apr_pstrcat(p, seats, i > 0 ? "," : "", seat(name, x[i], 0), NULL);
    }
    return apr_psprintf(p,
                        "{\"row_number\":\"%s\",\"position\":{\"x\":0,"
                        "\"y\":0},\"seats\":[%s]}",
                        label, seats);
}

static const char *errors_of(const char *bytes, apr_size_t len)
{
    yk_hall_t *hall = NULL;
    const char *errors = NULL;

    ck_assert_int_eq(yk_hall_parse(&hall, &errors, bytes, len, NULL, p),
                     APR_EINVAL);
    ck_assert_ptr_null(hall);
    ck_assert_int_eq(errors[strlen(errors) - 1], '.');
    return errors;
}

static void must_refuse(const char *text, const char *why)
{
    const char *errors = errors_of(text, strlen(text));

    ck_assert_msg(strstr(errors, why) != NULL, "%s: %s", why, errors);
}

/* "abc|d": the places in plan order, a bar where two are not joined */
static const char *drawn(const yk_hall_t *hall)
{
    char *text = "";

    for (uint32_t i = 0; i < hall->nplaces; i++) {
        int last = i + 1 == hall->nplaces;

        text = apr_pstrcat(p, text, hall->places[i].guid,
                           hall->places[i].joined || last ? "" : "|", NULL);
    }
    return text;
}

/* ---- real houses; the figures come from the files by a computation of its
 *      own (distance of listed seats against 1.5 times statistics.median) ----
 */

static uint32_t joined_of(const yk_hall_t *hall, uint32_t section)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < hall->sections[section].places; i++) {
        n += (uint32_t)hall->places[hall->sections[section].first + i].joined;
    }
    return n;
}

START_TEST(the_theatre_has_its_1011_places_in_three_sections)
{
    static const struct {
        const char *name;
        uint32_t first, places, joined;
    } sections[] = {{"Stalls", 0, 343, 313},
                    {"Mezzanine", 343, 364, 337},
                    {"Balcony", 707, 304, 274}};
    yk_hall_t *hall = core_hall_file("theatre-1011.json", p);

    ck_assert_str_eq(hall->name, "Theatre, 1011 seats");
    ck_assert_uint_eq(hall->nplaces, 1011);
    ck_assert_uint_eq(hall->nsections, 3);
    ck_assert_double_eq(hall->width, 800);
    ck_assert_double_eq(hall->height, 458);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_str_eq(hall->sections[i].name, sections[i].name);
        ck_assert_uint_eq(hall->sections[i].first, sections[i].first);
        ck_assert_uint_eq(hall->sections[i].places, sections[i].places);
        ck_assert_uint_eq(joined_of(hall, i), sections[i].joined);
    }
    ck_assert_uint_eq(hall->ngrades, 3);
    ck_assert_str_eq(hall->grades[1].name, "T069");
    ck_assert_str_eq(hall->grades[1].color, "#2980b9");
}
END_TEST

START_TEST(an_aisle_of_the_theatre_separates_and_nothing_else_does)
{
    yk_hall_t *hall = core_hall_file("theatre-1011.json", p);
    uint32_t at = core_place(hall, "I-37");

    ck_assert_str_eq(hall->places[at].row, "I");
    ck_assert_str_eq(hall->places[at].seat, "37");
    ck_assert_str_eq(hall->places[at].grade, "T071");
    ck_assert_double_eq(hall->places[at].x, 49.09);
    ck_assert_double_eq(hall->places[at].y, 263.24);
    ck_assert_int_eq(hall->places[at].joined, 1);
    ck_assert_str_eq(hall->places[at + 1].guid, "I-36");
    /* row I: 37 .. 25 | 24 .. 14 | 13 .. 1 */
    for (int i = 0; i < 37; i++) {
        int is_gap = i == 12 || i == 23 || i == 36;

        ck_assert_int_eq(hall->places[at + i].joined, !is_gap);
    }
    /* the balcony's inner aisle is two seats wide: Y-29 | Y-28 */
    at = core_place(hall, "Y-29");
    ck_assert_str_eq(hall->places[at + 1].guid, "Y-28");
    ck_assert_int_eq(hall->places[at].joined, 0);
    ck_assert_int_eq(hall->places[at - 1].joined, 1);
}
END_TEST

START_TEST(the_arena_has_92_blocks_without_an_aisle)
{
    yk_hall_t *hall = core_hall_file("arena-8724.json", p);
    uint32_t joined = 0;

    ck_assert_uint_eq(hall->nplaces, 8724);
    ck_assert_uint_eq(hall->nsections, 92);
    for (uint32_t i = 0; i < hall->nsections; i++) {
        uint32_t places = hall->sections[i].places;

        ck_assert_uint_eq(places, i < 8 ? 9 : 103);
        ck_assert_uint_eq(joined_of(hall, i), places - 1);
        joined += joined_of(hall, i);
    }
    ck_assert_uint_eq(joined, 8632);
}
END_TEST

/* ---- what a plan means ---- */

START_TEST(positions_of_zone_row_and_seat_add_up)
{
    yk_hall_t *hall = core_hall(
        plan_of("{\"row_number\":\"A\",\"position\":{\"x\":-5,\"y\":1.5},"
                "\"seats\":[{\"seat_guid\":\"g\",\"seat_number\":7,"
                "\"position\":{\"x\":0.25,\"y\":-2},\"category\":\"two\","
                "\"uuid\":\"passed over\"}]}"),
        p);

    ck_assert_uint_eq(hall->nplaces, 1);
    ck_assert_double_eq(hall->places[0].x, 95.25);
    ck_assert_double_eq(hall->places[0].y, 9.5);
    ck_assert_str_eq(hall->places[0].seat, "7");
    ck_assert_str_eq(hall->places[0].grade, "two");
    ck_assert_int_eq(hall->places[0].joined, 0);
}
END_TEST

START_TEST(a_colour_is_a_hex_colour_or_none)
{
    const double x[] = {0};
    yk_hall_t *hall = core_hall(plan_of(row("A", x, 1)), p);

    ck_assert_str_eq(hall->grades[0].color, "#c0392b");
    ck_assert_str_eq(hall->grades[1].color, "");
}
END_TEST

static const struct {
    int n;
    double x[10];
    const char *drawn;
} rows[] = {
    {1, {0}, "a"},
    {2, {0, 100}, "ab"},
    {5, {0, 10, 20, 30, 40}, "abcde"},
    {5, {0, 10, 25, 35, 45}, "abcde"}, /* 15 is not above 1.5 times 10 */
    {5, {0, 10, 25.01, 35, 45}, "ab|cde"},
    {6, {0, 10, 20, 60, 70, 80}, "abc|def"},
    {6, {80, 70, 60, 20, 10, 0}, "abc|def"}, /* listed from the right */
    {5, {0, 20, 10, 40, 30}, "acbed"},       /* listed in disorder */
    {3, {0, 10, 50}, "ab|c"},
    {6, {0, 10, 40, 50, 80, 90}, "ab|cd|ef"},
    {4, {0, 0, 10, 20}, "abcd"}, /* drawn one upon another */
    {3, {5, 5, 5}, "abc"},
};

START_TEST(neighbours_come_from_the_drawing)
{
    yk_hall_t *hall = core_hall(plan_of(row("A", rows[_i].x, rows[_i].n)), p);

    ck_assert_str_eq(drawn(hall), rows[_i].drawn);
}
END_TEST

START_TEST(a_row_in_disorder_runs_the_way_it_was_listed)
{
    const double x[] = {40, 30, 10, 20, 0};
    yk_hall_t *hall = core_hall(plan_of(row("A", x, 5)), p);

    ck_assert_str_eq(drawn(hall), "abdce");
}
END_TEST

START_TEST(a_slanted_row_is_ordered_along_its_slant)
{
    char *seats = apr_pstrcat(p, seat("a", 0, 0), ",", seat("b", 20, 40), ",",
                              seat("c", 10, 20), ",", seat("d", 30, 60), NULL);
    yk_hall_t *hall = core_hall(
        plan_of(apr_pstrcat(p,
                            "{\"row_number\":\"A\",\"position\":{\"x\":0,"
                            "\"y\":0},\"seats\":[",
                            seats, "]}", NULL)),
        p);

    ck_assert_str_eq(drawn(hall), "acbd");
}
END_TEST

START_TEST(a_horseshoe_is_taken_as_listed)
{
    /* up one side, across, down the other: no projection orders this */
    static const double at[][2] = {{0, 30},  {0, 20},  {0, 10},
                                   {0, 0},   {10, 0},  {20, 0},
                                   {20, 10}, {20, 20}, {20, 30}};
    char *seats = "", name[2] = "a";

    for (int i = 0; i < 9; i++, name[0]++) {
        seats = apr_pstrcat(p, seats, i > 0 ? "," : "",
                            seat(name, at[i][0], at[i][1]), NULL);
    }
    ck_assert_str_eq(
        drawn(core_hall(
            plan_of(apr_pstrcat(p,
                                "{\"row_number\":\"A\",\"position\":{\"x\":0,"
                                "\"y\":0},\"seats\":[",
                                seats, "]}", NULL)),
            p)),
        "abcdefghi");
}
END_TEST

START_TEST(two_rows_of_one_label_are_two_rows)
{
    const double x[] = {0, 10};
    char *one = row("A", x, 2), *two = apr_pstrdup(p, one);
    char *guid;

    while ((guid = strstr(two, "\"a\"")) != NULL) {
        guid[1] = 'c';
    }
    while ((guid = strstr(two, "\"b\"")) != NULL) {
        guid[1] = 'd';
    }
    ck_assert_str_eq(
        drawn(core_hall(plan_of(apr_pstrcat(p, one, ",", two, NULL)), p)),
        "ab|cd");
}
END_TEST

START_TEST(a_zone_may_have_no_seats)
{
    const double x[] = {0};
    char *text = plan_of(row("A", x, 1));
    yk_hall_t *hall;

    text[strlen(text) - 2] = '\0';
    text = apr_pstrcat(p, text,
                       ",{\"name\":\"Standing\",\"position\":{\"x\":0,\"y\":0},"
                       "\"rows\":[]}]}",
                       NULL);
    hall = core_hall(text, p);
    ck_assert_uint_eq(hall->nsections, 2);
    ck_assert_uint_eq(hall->sections[1].first, 1);
    ck_assert_uint_eq(hall->sections[1].places, 0);
}
END_TEST

START_TEST(the_same_drawing_has_the_same_digest_and_another_has_not)
{
    const double x[] = {0, 10, 20}, other[] = {0, 10, 21};
    yk_hall_t *one = core_hall(plan_of(row("A", x, 3)), p);
    yk_hall_t *two = core_hall(
        apr_pstrcat(p, "\xef\xbb\xbf\n", plan_of(row("A", x, 3)), NULL), p);
    yk_hall_t *three = core_hall(plan_of(row("A", other, 3)), p);
    yk_hall_t *four = core_hall(plan_of(row("B", x, 3)), p);

    ck_assert_mem_eq(&one->digest, &two->digest, sizeof(one->digest));
    ck_assert_mem_ne(&one->digest, &three->digest, sizeof(one->digest));
    ck_assert_mem_ne(&one->digest, &four->digest, sizeof(one->digest));
}
END_TEST

START_TEST(the_caller_may_name_the_hall)
{
    const double x[] = {0};
    char *text = plan_of(row("A", x, 1));
    yk_hall_t *hall;
    const char *errors;

    ck_assert_int_eq(
        yk_hall_parse(&hall, &errors, text, strlen(text), "Mine", p),
        APR_SUCCESS);
    ck_assert_str_eq(hall->name, "Mine");
}
END_TEST

/* ---- what is refused ---- */

#define SEAT(members)                                                          \
    "{\"row_number\":\"A\",\"position\":{\"x\":0,\"y\":0},"                    \
    "\"seats\":[{" members "}]}"
#define GUID "\"seat_guid\":\"g\""
#define NUMBER "\"seat_number\":\"1\""
#define AT "\"position\":{\"x\":1,\"y\":1}"
#define ONE "\"category\":\"one\""

static const struct {
    const char *row, *why;
} bad_rows[] = {
    {"7", "row_number is not"},
    {"{\"position\":{\"x\":0,\"y\":0},\"seats\":[]}",
     "zone \"Stalls\": row_number is not"},
    {"{\"row_number\":\"A\",\"seats\":[]}", "position is not"},
    {"{\"row_number\":\"A\",\"position\":{\"x\":0},\"seats\":[]}",
     "position is not"},
    {"{\"row_number\":\"A\",\"position\":{\"x\":0,\"y\":0}}",
     "row \"A\": seats is not a list"},
    {SEAT(NUMBER "," AT "," ONE),
     "zone \"Stalls\" row \"A\" seat 1: seat_guid is not"},
    {SEAT(GUID "," AT "," ONE), "seat 1: seat_number is not"},
    {SEAT(GUID "," NUMBER "," ONE), "seat 1: position is not"},
    {SEAT(GUID "," NUMBER "," AT), "seat 1: category is not"},
    {SEAT("\"seat_guid\":\"\"," NUMBER "," AT "," ONE), "seat_guid is not"},
    {SEAT("\"seat_guid\":null," NUMBER "," AT "," ONE), "seat_guid is not"},
    {SEAT("\"seat_guid\":\"a\\nb\"," NUMBER "," AT "," ONE),
     "seat_guid is not"},
    {SEAT("\"seat_guid\":\"0123456789012345678901234567890123456789012345678"
          "901234567890123x5\"," NUMBER "," AT "," ONE),
     "seat_guid is not a text of 1 to 64 bytes"},
    {SEAT(GUID "," NUMBER ",\"position\":{\"x\":\"1\",\"y\":1}," ONE),
     "position is not"},
    {SEAT(GUID "," NUMBER ",\"position\":{\"x\":1e8,\"y\":1}," ONE),
     "position is not"},
    {SEAT(GUID "," NUMBER "," AT ",\"category\":\"three\""),
     "there is no category \"three\""},
    {SEAT(GUID "," NUMBER "," AT "," ONE "},{" GUID "," NUMBER "," AT "," ONE),
     "seat 2: seat_guid \"g\" stands there twice"},
};

START_TEST(a_bad_seat_is_refused_with_its_place)
{
    must_refuse(plan_of(bad_rows[_i].row), bad_rows[_i].why);
}
END_TEST

static const struct {
    const char *text, *why;
} bad_plans[] = {
    {"", "the file is empty"},
    {"\xef\xbb\xbf \n", "the file is empty"},
    {"{", "not JSON at line 1, column"},
    {"{\"name\":\"x\",\n}", "not JSON at line 2"},
    {"[]", "not a seating plan"},
    {"{\"a\":1,\"a\":2}", "not JSON"},
    {"{}", "the plan: name is not a text of 1 to 250 bytes"},
    {"{}", "size is not"},
    {"{}", "categories is not a list"},
    {"{}", "zones is not a list"},
    {"{\"name\":\"x\",\"size\":{\"width\":1,\"height\":1},\"categories\":[],"
     "\"zones\":[]}",
     "the drawing has no places"},
    {"{\"name\":\"x\",\"size\":{\"width\":1,\"height\":1},\"categories\":["
     "{\"name\":\"a\"},{\"name\":\"a\"}],\"zones\":[]}",
     "two categories \"a\""},
    {"{\"name\":\"x\",\"size\":{\"width\":1,\"height\":1},\"categories\":[],"
     "\"zones\":[{\"name\":\"Z\",\"position\":{\"x\":0,\"y\":0},\"rows\":[]},"
     "{\"name\":\"Z\",\"position\":{\"x\":0,\"y\":0},\"rows\":[]}]}",
     "there are two zones \"Z\""},
    {"{\"name\":\"x\",\"size\":{\"width\":1,\"height\":1},\"categories\":[],"
     "\"zones\":[5]}",
     "name is not"},
};

START_TEST(a_bad_plan_is_refused_with_a_sentence)
{
    must_refuse(bad_plans[_i].text, bad_plans[_i].why);
}
END_TEST

START_TEST(what_is_not_utf8_is_refused)
{
    ck_assert_str_eq(errors_of("{\"name\":\"\xff\"}", 12),
                     "the file is not UTF-8.");
    ck_assert_str_eq(errors_of("{\0}", 3), "the file is not UTF-8.");
}
END_TEST

START_TEST(the_first_offenders_are_named_and_the_rest_counted)
{
    const char *many = "", *errors;

    for (int i = 0; i < 20; i++) {
        many = apr_pstrcat(p, many, i > 0 ? "," : "",
                           SEAT(NUMBER "," AT "," ONE), NULL);
    }
    many = plan_of(many);
    errors = errors_of(many, strlen(many));
    ck_assert_ptr_nonnull(strstr(errors, "; and 15 more."));
}
END_TEST

/* `n` seats in one row, each of its own guid */
static char *big_plan(int n)
{
    char *text = apr_palloc(p, (apr_size_t)n * 100 + 1000), *at = text;

    at += sprintf(at, "%s",
                  "{\"name\":\"Big\",\"size\":{\"width\":1,\"height\":1},"
                  "\"categories\":[{\"name\":\"one\"}],\"zones\":[{\"name\":"
                  "\"Z\",\"position\":{\"x\":0,\"y\":0},\"rows\":[{"
                  "\"row_number\":\"A\",\"position\":{\"x\":0,\"y\":0},"
                  "\"seats\":[");
    for (int i = 0; i < n; i++) {
        at += sprintf(at,
                      "%s{\"seat_guid\":\"%d\",\"seat_number\":\"%d\","
                      "\"position\":{\"x\":%d,\"y\":0},\"category\":\"one\"}",
                      i > 0 ? "," : "", i, i, i);
    }
    sprintf(at, "]}]}]}");
    return text;
}

START_TEST(two_hundred_thousand_places_are_read_and_one_more_is_not)
{
    yk_hall_t *hall = core_hall(big_plan(YK_PLAN_PLACES_MAX), p);

    ck_assert_uint_eq(hall->nplaces, YK_PLAN_PLACES_MAX);
    must_refuse(big_plan(YK_PLAN_PLACES_MAX + 1), "more than 200000 places");
}
END_TEST

Suite *hall_json_suite(void)
{
    Suite *suite = suite_create("hall_json");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, the_theatre_has_its_1011_places_in_three_sections);
    tcase_add_test(all,
                   an_aisle_of_the_theatre_separates_and_nothing_else_does);
    tcase_add_test(all, the_arena_has_92_blocks_without_an_aisle);
    tcase_add_test(all, positions_of_zone_row_and_seat_add_up);
    tcase_add_test(all, a_colour_is_a_hex_colour_or_none);
    tcase_add_loop_test(all, neighbours_come_from_the_drawing, 0,
                        COUNT_OF(rows));
    tcase_add_test(all, a_row_in_disorder_runs_the_way_it_was_listed);
    tcase_add_test(all, a_slanted_row_is_ordered_along_its_slant);
    tcase_add_test(all, a_horseshoe_is_taken_as_listed);
    tcase_add_test(all, two_rows_of_one_label_are_two_rows);
    tcase_add_test(all, a_zone_may_have_no_seats);
    tcase_add_test(all,
                   the_same_drawing_has_the_same_digest_and_another_has_not);
    tcase_add_test(all, the_caller_may_name_the_hall);
    tcase_add_loop_test(all, a_bad_seat_is_refused_with_its_place, 0,
                        COUNT_OF(bad_rows));
    tcase_add_loop_test(all, a_bad_plan_is_refused_with_a_sentence, 0,
                        COUNT_OF(bad_plans));
    tcase_add_test(all, what_is_not_utf8_is_refused);
    tcase_add_test(all, the_first_offenders_are_named_and_the_rest_counted);
    tcase_add_test(all,
                   two_hundred_thousand_places_are_read_and_one_more_is_not);
    suite_add_tcase(suite, all);
    return suite;
}
