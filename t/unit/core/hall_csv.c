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

static const char *errors_of(const char *text)
{
    yk_hall_t *hall = NULL;
    const char *errors = "accepted";

    yk_hall_parse(&hall, &errors, text, strlen(text), NULL, p);
    return errors;
}

/* The same two places in every dress CSV comes in. */
static const char *const dresses[] = {
    "Stalls,A,1,10,20,one\nStalls,A,2,30.5,20,two\n",
    "Stalls,A,1,10,20,one\r\nStalls,A,2,30.5,20,two\r\n",
    "Stalls,A,1,10,20,one\rStalls,A,2,30.5,20,two",
    "\xef\xbb\xbfStalls,A,1,10,20,one\nStalls,A,2,30.5,20,two",
    "Stalls;A;1;10;20;one\nStalls;A;2;30,5;20;two\n",
    "Stalls\tA\t1\t10\t20\tone\nStalls\tA\t2\t30.5\t20\ttwo\n",
    "section,row,place,x,y,grade\nStalls,A,1,10,20,one\n"
    "Stalls,A,2,30.5,20,two\n",
    "Grade;X;Y;Place;Row;Section;colour\none;10;20;1;A;Stalls;red\n"
    "two;30,5;20,0;2;A;Stalls;blue\n",
    "zone,row_number,seat,pos_x,pos_y,category\nStalls,A,1,10,20,one\n"
    "Stalls,A,2,30.5,20,two\n",
    "\"Stalls\",\"A\",\"1\",\"10\",20,\"one\"\n\n"
    " Stalls , A , 2 , 30.5 , 20 , two \n\n",
    "section,row,place,x,y,grade,guid\nStalls,A,1,10,20,one,Stalls-A-1\n"
    "Stalls,A,2,+30.500,20,two,\n",
};

START_TEST(csv_is_read_in_every_dress)
{
    yk_hall_t *hall = core_hall(dresses[_i], p);

    ck_assert_str_eq(hall->name, "hall");
    ck_assert_uint_eq(hall->nplaces, 2);
    ck_assert_uint_eq(hall->nsections, 1);
    ck_assert_str_eq(hall->sections[0].name, "Stalls");
    ck_assert_str_eq(hall->places[0].guid, "Stalls-A-1");
    ck_assert_str_eq(hall->places[1].guid, "Stalls-A-2");
    ck_assert_str_eq(hall->places[1].row, "A");
    ck_assert_str_eq(hall->places[1].seat, "2");
    ck_assert_str_eq(hall->places[1].grade, "two");
    ck_assert_double_eq(hall->places[1].x, 30.5);
    ck_assert_double_eq(hall->places[1].y, 20);
    ck_assert_double_eq(hall->width, 31);
    ck_assert_double_eq(hall->height, 20);
    ck_assert_uint_eq(hall->ngrades, 2);
    ck_assert_str_eq(hall->grades[0].name, "one");
    ck_assert_str_eq(hall->grades[0].color, "");
}
END_TEST

START_TEST(quotes_keep_what_is_between_them)
{
    yk_hall_t *hall =
        core_hall("\"Front, \"\"left\"\"\",\"A;\",1,1,1,\" g \",id\n", p);

    ck_assert_str_eq(hall->sections[0].name, "Front, \"left\"");
    ck_assert_str_eq(hall->places[0].row, "A;");
    ck_assert_str_eq(hall->places[0].grade, " g ");
    ck_assert_str_eq(hall->places[0].guid, "id");
}
END_TEST

START_TEST(lines_of_one_row_may_stand_anywhere)
{
    static const char *const guids[] = {"S-A-1", "S-A-2", "S-A-3", "S-B-1",
                                        "T-A-1"};
    yk_hall_t *hall = core_hall("S,A,1,0,0,g\nT,A,1,0,90,g\nS,B,1,0,10,g\n"
                                "S,A,3,20,0,g\nS,A,2,10,0,g\n",
                                p);

    ck_assert_uint_eq(hall->nsections, 2);
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(hall->places[i].guid, guids[i]);
        ck_assert_int_eq(hall->places[i].joined, i < 2);
    }
}
END_TEST

START_TEST(names_are_kept_byte_by_byte)
{
    yk_hall_t *hall = core_hall("\xf0\x9f\x8e\xad,e\xcc\x81,1,1,1,g\n"
                                "\xf0\x9f\x8e\xaa,\xc3\xa9,1,1,1,g\n",
                                p);

    ck_assert_uint_eq(hall->nsections, 2);
    ck_assert_str_eq(hall->places[0].guid, "\xf0\x9f\x8e\xad-e\xcc\x81-1");
    ck_assert_str_eq(hall->places[1].guid, "\xf0\x9f\x8e\xaa-\xc3\xa9-1");
}
END_TEST

static const struct {
    const char *text, *why;
} bad[] = {
    {"hello", "neither a seating plan in JSON nor CSV"},
    {"<html>\n</html>", "neither a seating plan in JSON nor CSV"},
    {"section,row,place,x,y,grade\n", "the drawing has no places."},
    {"section,row,place,x,y\nS,A,1,1,1\n", "line 1: there is no column grade"},
    {"row,place,x,y,grade\nA,1,1,1,g\n", "there is no column section"},
    {"S,A,1,1,1,g\nS,A,1,1,1,g\n", "line 2: the guid \"S-A-1\" stands"},
    {"S,A,1,1,1,g,id\nT,A,1,1,1,g,id\n", "line 2: the guid \"id\" stands"},
    {"S,A,1,1,1,g\nS,A,2,1,1\n", "line 2: grade is not a text"},
    {"S,A,1,1,1,g\nS,A,2\n", "line 2: x and y are not"},
    {"S,A,1,1,1,g\n,A,2,1,1,g\n", "line 2: section is not a text"},
    {"S,A,1,1,1,g\nS,A,,1,1,g\n", "line 2: place is not a text"},
    {"S,A,1,one,1,g\n", "line 1: x and y are not"},
    {"S,A,1,1,1.5.2,g\n", "x and y are not"},
    {"S,A,1,1,,g\n", "x and y are not"},
    {"S,A,1,1,-,g\n", "x and y are not"},
    {"S,A,1,1,1e3,g\n", "x and y are not"},
    {"S,A,1,99999999,1,g\n", "x and y are not"},
    {"S,A,1,1,1,\"g\n", "line 1: a quote is not closed"},
    {"S,A,1,1,1,\"g\"x\n", "text follows it"},
    {"S,A,1,1,1,g\n\nS,\"A\nB\",2,1,1,g\n", "line 3: row is not a text"},
    {"S,A,1,1,1,g\nS,\"A\nB\",2,1,1,g\nS,A,3,x,1,g\n",
     "line 4: x and y are not"},
    {"S12345678901234567890123456789012345678901234567890123456789,A,1,1,1,g",
     "accepted"},
    {"S1234567890123456789012345678901234567890123456789012345678901,A,1,1,1,g",
     "line 1: section, row and place are too long for a guid"},
};

START_TEST(a_bad_line_is_refused_with_its_number)
{
    const char *errors = errors_of(bad[_i].text);

    ck_assert_msg(strstr(errors, bad[_i].why) != NULL, "%s: %s", bad[_i].why,
                  errors);
}
END_TEST

START_TEST(the_first_bad_lines_are_named_and_the_rest_counted)
{
    const char *text = "S,A,1,1,1,g\n";

    for (int i = 0; i < 8; i++) {
        text = apr_pstrcat(p, text, "S,A,1,1,1,g\n", NULL);
    }
    ck_assert_ptr_nonnull(strstr(errors_of(text), "line 6: the guid"));
    ck_assert_ptr_null(strstr(errors_of(text), "line 7: the guid"));
    ck_assert_ptr_nonnull(strstr(errors_of(text), "; and 3 more."));
}
END_TEST

START_TEST(csv_ends_at_two_hundred_thousand_places)
{
    char *text = apr_palloc(p, (YK_PLAN_PLACES_MAX + 2) * 24), *at = text;

    for (int i = 0; i < YK_PLAN_PLACES_MAX; i++) {
        at += sprintf(at, "S,A,%d,%d,0,g\n", i, i);
    }
    ck_assert_uint_eq(core_hall(text, p)->nplaces, YK_PLAN_PLACES_MAX);
    sprintf(at, "S,A,x,1,0,g\nS,A,y,1,0,g\n");
    ck_assert_str_eq(errors_of(text),
                     "the drawing has more than 200000 places.");
}
END_TEST

START_TEST(a_generated_hall_has_rows_of_forty_with_an_aisle)
{
    yk_hall_t *hall = NULL, *again = NULL;

    ck_assert_int_eq(yk_hall_generate(&hall, 3, 90, p), APR_SUCCESS);
    ck_assert_int_eq(yk_hall_generate(&again, 3, 90, p), APR_SUCCESS);
    ck_assert_mem_eq(&hall->digest, &again->digest, sizeof(hall->digest));
    ck_assert_uint_eq(hall->nplaces, 270);
    ck_assert_uint_eq(hall->nsections, 3);
    ck_assert_uint_eq(hall->sections[2].first, 180);
    ck_assert_str_eq(hall->places[180 + 41].guid, "3-2-2");
    for (uint32_t i = 0; i < 90; i++) {
        int is_last = i == 89 || i % 40 == 39, is_aisle = i % 40 == 19;

        ck_assert_int_eq(hall->places[90 + i].joined, !is_last && !is_aisle);
    }
}
END_TEST

START_TEST(a_generated_hall_of_no_places_or_too_many_is_refused)
{
    yk_hall_t *hall = NULL;

    ck_assert_int_eq(yk_hall_generate(&hall, 0, 90, p), APR_EINVAL);
    ck_assert_int_eq(yk_hall_generate(&hall, 90, 0, p), APR_EINVAL);
    ck_assert_int_eq(yk_hall_generate(&hall, 65536, 65536, p), APR_EINVAL);
    ck_assert_int_eq(yk_hall_generate(&hall, 200001, 1, p), APR_EINVAL);
}
END_TEST

Suite *hall_csv_suite(void)
{
    Suite *suite = suite_create("hall_csv");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_loop_test(all, csv_is_read_in_every_dress, 0, COUNT_OF(dresses));
    tcase_add_test(all, quotes_keep_what_is_between_them);
    tcase_add_test(all, lines_of_one_row_may_stand_anywhere);
    tcase_add_test(all, names_are_kept_byte_by_byte);
    tcase_add_loop_test(all, a_bad_line_is_refused_with_its_number, 0,
                        COUNT_OF(bad));
    tcase_add_test(all, the_first_bad_lines_are_named_and_the_rest_counted);
    tcase_add_test(all, csv_ends_at_two_hundred_thousand_places);
    tcase_add_test(all, a_generated_hall_has_rows_of_forty_with_an_aisle);
    tcase_add_test(all, a_generated_hall_of_no_places_or_too_many_is_refused);
    suite_add_tcase(suite, all);
    return suite;
}
