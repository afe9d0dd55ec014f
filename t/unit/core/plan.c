/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <apr_file_io.h>
#include <apr_strings.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static apr_pool_t *p;

static void setup(void)
{
    apr_pool_create(&p, NULL);
}

static void teardown(void)
{
    apr_pool_destroy(p);
}

START_TEST(a_plan_says_what_the_hall_said)
{
    yk_hall_t *hall = core_hall_file("theatre-1011.json", p);
    yk_plan_t *plan;
    double width, height;

    hall->hall_id = 7;
    hall->version = 3;
    plan = core_plan(hall, p);
    ck_assert_uint_eq(yk_plan_hall_id(plan), 7);
    ck_assert_uint_eq(yk_plan_version(plan), 3);
    ck_assert_str_eq(yk_plan_name(plan), hall->name);
    ck_assert_mem_eq(yk_plan_digest(plan), &hall->digest, YK_HASH_BYTES);
    yk_plan_size(plan, &width, &height);
    ck_assert_double_eq(width, 800);
    ck_assert_double_eq(height, 458);
    ck_assert_uint_eq(yk_plan_places(plan), hall->nplaces);
    ck_assert_uint_eq(yk_plan_sections(plan), hall->nsections);
    ck_assert_uint_eq(yk_plan_grades(plan), hall->ngrades);
    for (uint32_t i = 0; i < hall->nplaces; i++) {
        yk_plan_place_t place;

        yk_plan_place(plan, &place, i);
        ck_assert_str_eq(place.guid, hall->places[i].guid);
        ck_assert_str_eq(place.row, hall->places[i].row);
        ck_assert_str_eq(place.seat, hall->places[i].seat);
        ck_assert_str_eq(place.grade, hall->places[i].grade);
        ck_assert_uint_eq(place.section_no, hall->places[i].section_no);
        ck_assert_double_eq(place.x, hall->places[i].x);
        ck_assert_double_eq(place.y, hall->places[i].y);
        ck_assert_int_eq(place.joined, hall->places[i].joined);
        ck_assert_uint_eq(yk_plan_find(plan, place.guid), i);
    }
    for (uint32_t i = 0; i < hall->nsections; i++) {
        yk_plan_section_t section;

        yk_plan_section(plan, &section, i);
        ck_assert_str_eq(section.name, hall->sections[i].name);
        ck_assert_uint_eq(section.first, hall->sections[i].first);
        ck_assert_uint_eq(section.places, hall->sections[i].places);
        ck_assert_uint_eq(yk_plan_find_section(plan, section.name), i);
    }
    for (uint32_t i = 0; i < hall->ngrades; i++) {
        yk_plan_grade_t grade;

        yk_plan_grade(plan, &grade, i);
        ck_assert_str_eq(grade.name, hall->grades[i].name);
        ck_assert_str_eq(grade.color, hall->grades[i].color);
    }
}
END_TEST

START_TEST(what_is_not_in_a_plan_is_not_found)
{
    yk_plan_t *plan = core_plan(core_hall_file("theatre-1011.json", p), p);

    ck_assert_uint_eq(yk_plan_find(plan, ""), YK_PLAN_NONE);
    ck_assert_uint_eq(yk_plan_find(plan, "I-38"), YK_PLAN_NONE);
    ck_assert_uint_eq(yk_plan_find(plan, "i-37"), YK_PLAN_NONE);
    ck_assert_uint_eq(yk_plan_find(plan, "I-37 "), YK_PLAN_NONE);
    ck_assert_uint_eq(yk_plan_find(plan, "\xff"), YK_PLAN_NONE);
    ck_assert_uint_eq(yk_plan_find_section(plan, "stalls"), YK_PLAN_NONE);
    ck_assert_uint_eq(yk_plan_find_section(plan, ""), YK_PLAN_NONE);
}
END_TEST

START_TEST(a_number_the_plan_has_not_reads_as_nothing)
{
    static const unsigned char map[1] = {0xff};
    yk_plan_t *plan = core_plan(core_hall("S,A,1,0,0,g\n", p), p);
    yk_plan_place_t place;
    yk_plan_section_t section;
    yk_plan_grade_t grade;
    uint32_t seats[1];

    yk_plan_place(plan, &place, 1);
    ck_assert_str_eq(place.guid, "");
    ck_assert_uint_eq(place.section_no, YK_PLAN_NONE);
    yk_plan_place(plan, &place, YK_PLAN_NONE);
    ck_assert_str_eq(place.grade, "");
    yk_plan_section(plan, &section, 1);
    ck_assert_uint_eq(section.places, 0);
    yk_plan_grade(plan, &grade, 1);
    ck_assert_str_eq(grade.name, "");
    ck_assert_int_eq(yk_plan_seat(plan, seats, 1, map, 1, 0), YK_SEATING_NONE);
}
END_TEST

START_TEST(a_plan_of_eighty_thousand_places_finds_each)
{
    yk_hall_t *hall;
    yk_plan_t *plan;

    yk_hall_generate(&hall, 80, 1000, p);
    plan = core_plan(hall, p);
    for (uint32_t i = 0; i < hall->nplaces; i++) {
        ck_assert_uint_eq(yk_plan_find(plan, hall->places[i].guid), i);
    }
}
END_TEST

START_TEST(a_file_that_is_not_there_is_said_to_be_missing)
{
    yk_plan_t *plan;

    ck_assert_int_eq(yk_plan_open(&plan, core_path(p), p), APR_ENOENT);
}
END_TEST

START_TEST(a_folder_is_no_plan)
{
    yk_plan_t *plan;

    ck_assert_int_ne(yk_plan_open(&plan, YK_BUILD_FOLDER, p), APR_SUCCESS);
}
END_TEST

START_TEST(a_place_of_an_unknown_grade_makes_no_plan)
{
    yk_hall_t *hall = core_hall("S,A,1,0,0,g\n", p);
    const char *path = core_path(p);
    yk_plan_t *plan;

    hall->places[0].grade = "other";
    ck_assert_int_eq(yk_plan_write(hall, path, p), APR_EINVAL);
    ck_assert_int_eq(yk_plan_open(&plan, path, p), APR_ENOENT);
}
END_TEST

START_TEST(a_plan_replaces_another_for_those_who_open_it_next)
{
    yk_hall_t *hall = core_hall("S,A,1,0,0,g\n", p);
    const char *path = core_path(p);
    yk_plan_t *before, *after;

    ck_assert_int_eq(yk_plan_write(hall, path, p), APR_SUCCESS);
    ck_assert_int_eq(yk_plan_open(&before, path, p), APR_SUCCESS);
    hall = core_hall("S,A,1,0,0,g\nS,A,2,1,0,g\n", p);
    ck_assert_int_eq(yk_plan_write(hall, path, p), APR_SUCCESS);
    ck_assert_int_eq(yk_plan_open(&after, path, p), APR_SUCCESS);
    ck_assert_uint_eq(yk_plan_places(before), 1);
    ck_assert_uint_eq(yk_plan_places(after), 2);
}
END_TEST

/* ---- broken files ---- */

typedef struct file_t {
    const char *path;
    char *bytes;
    apr_size_t len;
} file_t;

static void plan_file(file_t *file)
{
    yk_hall_t *hall = core_hall("S,A,1,0,0,g\nS,A,2,1,0,g\nT,A,1,0,0,h\n", p);
    apr_file_t *from;
    apr_finfo_t info;

    file->path = core_path(p);
    ck_assert_int_eq(yk_plan_write(hall, file->path, p), APR_SUCCESS);
    apr_file_open(&from, file->path, APR_FOPEN_READ, 0, p);
    apr_file_info_get(&info, APR_FINFO_SIZE, from);
    file->len = (apr_size_t)info.size;
    file->bytes = apr_palloc(p, file->len);
    ck_assert_int_eq(apr_file_read_full(from, file->bytes, file->len, NULL),
                     APR_SUCCESS);
    apr_file_close(from);
}

static apr_status_t open_bytes(const file_t *file, const char *bytes,
                               apr_size_t len, apr_pool_t *ptemp)
{
    apr_file_t *to;
    yk_plan_t *plan;

    apr_file_open(&to, file->path,
                  APR_FOPEN_WRITE | APR_FOPEN_CREATE | APR_FOPEN_TRUNCATE,
                  APR_FPROT_OS_DEFAULT, ptemp);
    apr_file_write_full(to, bytes, len, NULL);
    apr_file_close(to);
    return yk_plan_open(&plan, file->path, ptemp);
}

START_TEST(a_plan_cut_anywhere_is_refused)
{
    apr_pool_t *ptemp;
    file_t file;

    plan_file(&file);
    apr_pool_create(&ptemp, p);
    for (apr_size_t len = 0; len < file.len; len++) {
        ck_assert_int_eq(open_bytes(&file, file.bytes, len, ptemp), APR_EINVAL);
        apr_pool_clear(ptemp);
    }
    ck_assert_int_eq(open_bytes(&file, file.bytes, file.len, ptemp),
                     APR_SUCCESS);
}
END_TEST

START_TEST(a_plan_with_any_bit_turned_behind_its_head_is_refused)
{
    apr_pool_t *ptemp;
    file_t file;

    plan_file(&file);
    apr_pool_create(&ptemp, p);
    for (apr_size_t at = 104; at < file.len; at++) {
        file.bytes[at] ^= 1 << at % 8;
        ck_assert_int_eq(open_bytes(&file, file.bytes, file.len, ptemp),
                         APR_EINVAL);
        file.bytes[at] ^= 1 << at % 8;
        apr_pool_clear(ptemp);
    }
}
END_TEST

/* Somebody who means harm makes the checksum right. Whatever he turns, either
 * the file is refused, or everything in it can be read. */
START_TEST(a_forged_plan_is_refused_or_harmless)
{
    apr_pool_t *ptemp;
    file_t file;
    int refused = 0;

    plan_file(&file);
    srand(20261224);
    apr_pool_create(&ptemp, p);
    for (int i = 0; i < 4000; i++) {
        char *bytes = apr_pmemdup(ptemp, file.bytes, file.len);
        apr_size_t at = 12 + (apr_size_t)rand() % (file.len - 12);
        uint32_t crc;
        yk_plan_t *plan;

        bytes[at] ^= (char)(1 + rand() % 255);
        crc = (uint32_t)crc32_z(0, (Bytef *)bytes + 104, file.len - 104);
        memcpy(bytes + 12, &crc, 4);
        if (open_bytes(&file, bytes, file.len, ptemp) == APR_SUCCESS) {
            const char *json;
            apr_size_t len = 0;

            ck_assert_int_eq(yk_plan_open(&plan, file.path, ptemp),
                             APR_SUCCESS);
            yk_plan_document(plan, &json, &len, YK_PLAN_NONE, ptemp);
            ck_assert_uint_gt(len, 0);
            yk_plan_find(plan, "S-A-2");
        }
        else {
            refused++;
        }
        apr_pool_clear(ptemp);
    }
    ck_assert_int_gt(refused, 2000);
}
END_TEST

/* ---- the document ---- */

static json_t *document(const yk_plan_t *plan, uint32_t section_no)
{
    const char *text;
    apr_size_t len;
    json_t *json;

    yk_plan_document(plan, &text, &len, section_no, p);
    json = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

static const char *text_of(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

START_TEST(the_document_says_the_whole_drawing_in_plan_order)
{
    yk_hall_t *hall = core_hall_file("theatre-1011.json", p);
    json_t *json = document(core_plan(hall, p), YK_PLAN_NONE);
    json_t *section, *row, *place;
    size_t i, j, k;
    uint32_t no = 0;

    ck_assert_str_eq(text_of(json, "hall"), hall->name);
    ck_assert_uint_eq(strlen(text_of(json, "hash")), 64);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "grades")), 3);
    json_array_foreach(json_object_get(json, "sections"), i, section)
    {
        ck_assert_str_eq(text_of(section, "section"), hall->sections[i].name);
        ck_assert_int_eq(json_integer_value(json_object_get(section, "places")),
                         hall->sections[i].places);
        json_array_foreach(json_object_get(section, "rows"), j, row)
        {
            json_array_foreach(json_object_get(row, "places"), k, place)
            {
                const yk_plan_place_t *its = &hall->places[no++];

                ck_assert_str_eq(text_of(row, "row"), its->row);
                ck_assert_str_eq(text_of(place, "guid"), its->guid);
                ck_assert_str_eq(text_of(place, "seat"), its->seat);
                ck_assert_str_eq(text_of(place, "grade"), its->grade);
                ck_assert_double_eq(
                    json_number_value(json_object_get(place, "x")), its->x);
                ck_assert_double_eq(
                    json_number_value(json_object_get(place, "y")), its->y);
            }
        }
    }
    ck_assert_uint_eq(no, 1011);
    json_decref(json);
}
END_TEST

START_TEST(the_document_of_one_section_has_that_one)
{
    json_t *json =
        document(core_plan(core_hall_file("theatre-1011.json", p), p), 2);
    json_t *sections = json_object_get(json, "sections");

    ck_assert_uint_eq(json_array_size(sections), 1);
    ck_assert_str_eq(text_of(json_array_get(sections, 0), "section"),
                     "Balcony");
    ck_assert_uint_eq(
        json_array_size(json_object_get(json_array_get(sections, 0), "rows")),
        8);
    json_decref(json);
}
END_TEST

START_TEST(the_document_is_written_to_the_letter)
{
    yk_hall_t *hall = core_hall("\"a\"\"b\\\",\"\xf0\x9f\x8e\xad\",1,-1.5,"
                                "0.001,g\n\"a\"\"b\\\",\"B\",1,10,20.50,g\n",
                                p);
    const char *text;
    apr_size_t len;

    hall->sections[0].name = "a\"b\\\x01";
    yk_plan_document(core_plan(hall, p), &text, &len, YK_PLAN_NONE, p);
    text = apr_pstrmemdup(p, text, len);
    ck_assert_str_eq(
        strstr(text, "\"size\""),
        "\"size\":{\"width\":10,\"height\":21},\"grades\":[{\"grade\":\"g\"}],"
        "\"sections\":[{\"section\":\"a\\\"b\\\\\\u0001\",\"places\":2,"
        "\"rows\":[{\"row\":\"\xf0\x9f\x8e\xad\",\"places\":[{\"guid\":"
        "\"a\\\"b\\\\-\xf0\x9f\x8e\xad-1\",\"seat\":\"1\",\"x\":-1.5,"
        "\"y\":0.001,\"grade\":\"g\"}]},{\"row\":\"B\",\"places\":[{\"guid\":"
        "\"a\\\"b\\\\-B-1\",\"seat\":\"1\",\"x\":10,\"y\":20.5,\"grade\":"
        "\"g\"}]}]}]}");
}
END_TEST

Suite *plan_suite(void)
{
    Suite *suite = suite_create("plan");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, a_plan_says_what_the_hall_said);
    tcase_add_test(all, what_is_not_in_a_plan_is_not_found);
    tcase_add_test(all, a_number_the_plan_has_not_reads_as_nothing);
    tcase_add_test(all, a_plan_of_eighty_thousand_places_finds_each);
    tcase_add_test(all, a_file_that_is_not_there_is_said_to_be_missing);
    tcase_add_test(all, a_folder_is_no_plan);
    tcase_add_test(all, a_place_of_an_unknown_grade_makes_no_plan);
    tcase_add_test(all, a_plan_replaces_another_for_those_who_open_it_next);
    tcase_add_test(all, a_plan_cut_anywhere_is_refused);
    tcase_add_test(all, a_plan_with_any_bit_turned_behind_its_head_is_refused);
    tcase_add_test(all, a_forged_plan_is_refused_or_harmless);
    tcase_add_test(all, the_document_says_the_whole_drawing_in_plan_order);
    tcase_add_test(all, the_document_of_one_section_has_that_one);
    tcase_add_test(all, the_document_is_written_to_the_letter);
    suite_add_tcase(suite, all);
    return suite;
}
