/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <apr_strings.h>
#include <string.h>
#include "yoyaku/body.h"
#include "yoyaku/text.h"

static apr_pool_t *p;
static yk_fault_t fault;

static void setup(void)
{
    apr_pool_create(&p, NULL);
    memset(&fault, 0, sizeof(fault));
}

static void teardown(void)
{
    apr_pool_destroy(p);
}

static yk_body_t *json(const char *text)
{
    yk_body_t *body = NULL;

    ck_assert_msg(yk_body_parse_json(&body, &fault, text, strlen(text), p) ==
                      APR_SUCCESS,
                  "%s: %s", text, fault.detail);
    return body;
}

static yk_body_t *form(const char *text)
{
    yk_body_t *body = NULL;

    ck_assert_msg(yk_body_parse_form(&body, &fault, text, strlen(text), p) ==
                      APR_SUCCESS,
                  "%s: %s", text, fault.detail);
    return body;
}

/* The field that check names, or "" when all is well. */
static const char *bad_field(yk_body_t *body)
{
    if (yk_body_check(body, &fault) == APR_SUCCESS) {
        return "";
    }
    ck_assert_int_eq(fault.answer, YK_ANSWER_INVALID);
    ck_assert_uint_gt(strlen(fault.detail), 0);
    return fault.field;
}

/* ---- JSON ---- */

#define TEXT(text)                                                             \
    {                                                                          \
        text, sizeof(text) - 1                                                 \
    }

static const struct {
    const char *bytes;
    apr_size_t len;
} not_json[] = {
    TEXT(""),
    TEXT(" "),
    TEXT("{"),
    TEXT("[]"),
    TEXT("1"),
    TEXT("null"),
    TEXT("{}x"),
    TEXT("{} {}"),
    TEXT("{'a':1}"),
    TEXT("{a:1}"),
    TEXT("{\"a\":1,}"),
    TEXT("{\"a\":01}"),
    TEXT("{\"a\":+1}"),
    TEXT("{\"a\":.5}"),
    TEXT("{\"a\":1.}"),
    TEXT("{\"a\":0x10}"),
    TEXT("{\"a\":NaN}"),
    TEXT("{\"a\":-Infinity}"),
    TEXT("{\"a\":1e}"),
    TEXT("{\"a\":1 /* no */}"),
    TEXT("{\"a\":1,\"a\":1}"),
    TEXT("{\"x\":{\"a\":1,\"\\u0061\":1}}"),
    TEXT("{\"a\":\"\\u0000\"}"),
    TEXT("{\"\\u0000\":1}"),
    TEXT("{\"a\":\"\0\"}"),
    TEXT("{\"a\":1}\0"),
    TEXT("{\"a\":\"\n\"}"),
    TEXT("{\"a\":\"\xff\"}"),
    TEXT("{\"a\":\"\xed\xa0\x80\"}"),
    TEXT("{\"a\":\"\\ud800\"}"),
    TEXT("{\"a\":\"\\x41\"}"),
    TEXT("\xef\xbb\xbf{}"),
    TEXT("{\"a\":tru}"),
    TEXT("{\"a\""),
    TEXT("{\"a\":\"\\"),
};

START_TEST(what_is_not_strict_json_is_unreadable)
{
    yk_body_t *body = NULL;

    ck_assert_int_eq(yk_body_parse_json(&body, &fault, not_json[_i].bytes,
                                        not_json[_i].len, p),
                     APR_EINVAL);
    ck_assert_int_eq(fault.answer, YK_ANSWER_UNREADABLE);
    ck_assert_ptr_null(fault.field);
    ck_assert(yk_text_is_utf8(fault.detail, strlen(fault.detail)));
}
END_TEST

START_TEST(what_is_unreadable_is_named_with_its_position)
{
    static const char text[] = "{\"a\": 1,\n \"b\": x}";
    yk_body_t *body;

    yk_body_parse_json(&body, &fault, text, strlen(text), p);
    ck_assert_ptr_nonnull(strstr(fault.detail, "line 2, column"));
}
END_TEST

static char *nested(int depth)
{
    char *text = apr_pcalloc(p, 16 + 2 * depth);

    strcat(text, "{\"a\":");
    memset(text + strlen(text), '[', depth - 1);
    memset(text + strlen(text), ']', depth - 1);
    return strcat(text, "}");
}

START_TEST(nesting_ends_at_its_bound)
{
    yk_body_t *body = NULL;
    char *text = nested(YK_BODY_DEPTH);

    json(text);
    text = nested(YK_BODY_DEPTH + 1);
    ck_assert_int_eq(yk_body_parse_json(&body, &fault, text, strlen(text), p),
                     APR_EINVAL);
    ck_assert_int_eq(fault.answer, YK_ANSWER_UNREADABLE);
    text = nested(30000);
    ck_assert_int_eq(yk_body_parse_json(&body, &fault, text, strlen(text), p),
                     APR_EINVAL);
    /* brackets inside of a text are no nesting */
    text = apr_psprintf(p, "{\"a\":\"\\\"%s\"}", "[[[[[[[[[[[[[[[[[[[[[[");
    ck_assert_str_eq(yk_body_text(json(text), "a", 1, 64),
                     "\"[[[[[[[[[[[[[[[[[[[[[[");
}
END_TEST

START_TEST(a_body_ends_at_its_bound)
{
    yk_body_t *body = NULL;
    char *text = apr_palloc(p, YK_BODY_BYTES + 1);

    memset(text, ' ', YK_BODY_BYTES + 1);
    memcpy(text, "{}", 2);
    ck_assert_int_eq(yk_body_parse_json(&body, &fault, text, YK_BODY_BYTES, p),
                     APR_SUCCESS);
    ck_assert_int_eq(
        yk_body_parse_json(&body, &fault, text, YK_BODY_BYTES + 1, p),
        APR_EINVAL);
    ck_assert_int_eq(fault.answer, YK_ANSWER_TOO_LARGE);
    ck_assert_int_eq(
        yk_body_parse_form(&body, &fault, text, YK_BODY_BYTES + 1, p),
        APR_EINVAL);
    ck_assert_int_eq(fault.answer, YK_ANSWER_TOO_LARGE);
}
END_TEST

START_TEST(members_are_read_by_type)
{
    yk_body_t *body = json(
        "{\"t\":\"\xf0\x9f\x8e\xad\\u00e9 \",\"n\":12,\"e\":1e2,\"f\":true,"
        "\"o\":{\"x\":0},\"l\":[\"a\",\"b\"],\"k\":\"hamlet-24\",\"z\":null}");
    yk_body_t **items, *object;

    ck_assert_str_eq(yk_body_text(body, "t", 1, 64),
                     "\xf0\x9f\x8e\xad\xc3\xa9 ");
    ck_assert_int_eq(yk_body_number(body, "n", 1, 12, 0), 12);
    ck_assert_int_eq(yk_body_number(body, "e", 1, 256, 0), 100);
    ck_assert_int_eq(yk_body_flag(body, "f", 0), 1);
    object = yk_body_object(body, "o");
    ck_assert_int_eq(yk_body_number(object, "x", 0, 1, 5), 0);
    ck_assert_uint_eq(yk_body_list(&items, body, "l", 2), 2);
    ck_assert_str_eq(yk_body_text(items[1], NULL, 1, 1), "b");
    ck_assert_str_eq(yk_body_key(body, "k"), "hamlet-24");
    ck_assert_int_eq(yk_body_is_null(body, "z"), 1);
    ck_assert_int_eq(yk_body_is_null(body, "n"), 0);
    ck_assert_str_eq(bad_field(body), "");
}
END_TEST

START_TEST(what_was_not_sent_is_said_to_be_absent)
{
    yk_body_t *body = yk_body_make(p), **items;

    ck_assert_ptr_null(yk_body_text(body, "t", 0, 9));
    ck_assert_ptr_null(yk_body_key(body, "t"));
    ck_assert_int_eq(yk_body_number(body, "t", 1, 9, 42), 42);
    ck_assert_int_eq(yk_body_flag(body, "t", 7), 7);
    ck_assert_ptr_null(yk_body_object(body, "t"));
    ck_assert_uint_eq(yk_body_list(&items, body, "t", 9), 0);
    ck_assert_str_eq(bad_field(body), "");
}
END_TEST

START_TEST(what_nobody_asked_for_is_refused_by_its_path)
{
    yk_body_t *body = json("{\"l\":[{\"a\":1},{\"a\":1,\"b\":2}]}");
    yk_body_t **items;

    ck_assert_uint_eq(yk_body_list(&items, body, "l", 2), 2);
    yk_body_number(items[0], "a", 1, 1, 0);
    yk_body_number(items[1], "a", 1, 1, 0);
    ck_assert_str_eq(bad_field(body), "l[1].b");
}
END_TEST

/* What "v" may be written as, and which getter takes it:
 * t text of 1 to 3, n number 1 to 9, f flag, o object, l list up to 2, k key */
static const struct {
    const char *value, *takers;
} shapes[] = {
    {"null", ""},     {"true", "f"},
    {"false", "f"},   {"0", ""},
    {"-1", ""},       {"1", "n"},
    {"9", "n"},       {"10", ""},
    {"1.5", ""},      {"9.000000001", ""},
    {"1e300", ""},    {"1e999", ""},
    {"-1e999", ""},   {"123456789012345678901234567890", ""},
    {"\"\"", ""},     {"\"abc\"", "tk"},
    {"\"a b\"", "t"}, {"\"abcd\"", "k"},
    {"\"1\"", "tk"},  {"\"true\"", "k"},
    {"{}", "o"},      {"[]", ""},
    {"[1]", "l"},     {"[1,2]", "l"},
    {"[1,2,3]", ""},
};

static void get(yk_body_t *body, char how)
{
    yk_body_t **items;

    switch (how) {
    case 't':
        yk_body_text(body, "v", 1, 3);
        break;
    case 'n':
        yk_body_number(body, "v", 1, 9, 0);
        break;
    case 'f':
        yk_body_flag(body, "v", 0);
        break;
    case 'o':
        yk_body_object(body, "v");
        break;
    case 'l':
        yk_body_list(&items, body, "v", 2);
        break;
    case 'k':
        yk_body_key(body, "v");
        break;
    }
}

START_TEST(a_wrong_type_or_size_is_refused_with_what_would_be_right)
{
    for (const char *how = "tnfolk"; *how != '\0'; how++) {
        yk_body_t *body =
            json(apr_pstrcat(p, "{\"v\":", shapes[_i].value, "}", NULL));
        int takes = strchr(shapes[_i].takers, *how) != NULL;

        get(body, *how);
        ck_assert_msg(strcmp(bad_field(body), takes ? "" : "v") == 0,
                      "%s as %c: %s", shapes[_i].value, *how, fault.detail);
        if (!takes) {
            ck_assert_ptr_nonnull(fault.allowed);
            ck_assert_ptr_nonnull(strstr(fault.detail, fault.allowed));
        }
    }
}
END_TEST

START_TEST(the_first_fault_is_the_one_that_is_told)
{
    yk_body_t *body = json("{\"a\":0,\"b\":\"\",\"c\":1}");

    yk_body_number(body, "a", 1, 9, 0);
    ck_assert_int_eq(yk_body_is_bad(body), 1);
    ck_assert_ptr_null(yk_body_text(body, "b", 1, 9));
    ck_assert_int_eq(yk_body_number(body, "c", 1, 9, 3), 3);
    ck_assert_str_eq(bad_field(body), "a");
    ck_assert_str_eq(fault.allowed, "a whole number from 1 to 9");
}
END_TEST

START_TEST(a_long_foreign_name_is_cut_between_characters)
{
    char name[200] = "";
    yk_body_t *body;

    for (int i = 0; i < 33; i++) {
        strcat(name, "\xe4\xba\x88");
    }
    body = json(apr_psprintf(p, "{\"%s\":1}", name));
    yk_body_check(body, &fault);
    ck_assert_uint_eq(strlen(fault.field), 63 + 3);
    ck_assert(yk_text_is_utf8(fault.field, strlen(fault.field)));
}
END_TEST

START_TEST(members_with_free_names_are_listed)
{
    yk_body_t *body = json("{\"tariffs\":{\"adult\":2,\"child.x\":1}}");
    yk_body_t *object = yk_body_object(body, "tariffs");
    const char **names;

    ck_assert_uint_eq(yk_body_names(&names, object, 8), 2);
    ck_assert_str_eq(names[0], "adult");
    ck_assert_str_eq(names[1], "child.x");
    ck_assert_int_eq(yk_body_number(object, names[1], 1, 9, 0), 1);
    ck_assert_str_eq(bad_field(body), "tariffs.adult");
}
END_TEST

/* ---- forms ---- */

START_TEST(a_form_is_read_like_json)
{
    yk_body_t *body =
        form("t=caf%C3%A9+au%2Blait&n=12&f=on&l=a&l=b&one=x&o.x=3&k=hamlet-24"
             "&e=&&lines[0].slot=s&lines[1].slot=t&lines[0].n=1");
    yk_body_t **items, *object;

    ck_assert_int_eq(yk_body_is_form(body), 1);
    ck_assert_str_eq(yk_body_text(body, "t", 1, 64), "caf\xc3\xa9 au+lait");
    ck_assert_int_eq(yk_body_number(body, "n", 1, 12, 0), 12);
    ck_assert_int_eq(yk_body_flag(body, "f", 0), 1);
    ck_assert_uint_eq(yk_body_list(&items, body, "l", 2), 2);
    ck_assert_str_eq(yk_body_text(items[0], NULL, 1, 1), "a");
    ck_assert_str_eq(yk_body_text(items[1], NULL, 1, 1), "b");
    ck_assert_str_eq(yk_body_path(items[1], NULL), "l[1]");
    ck_assert_uint_eq(yk_body_list(&items, body, "one", 2), 1);
    ck_assert_str_eq(yk_body_text(items[0], NULL, 1, 1), "x");
    object = yk_body_object(body, "o");
    ck_assert_int_eq(yk_body_number(object, "x", 1, 9, 0), 3);
    ck_assert_str_eq(yk_body_key(body, "k"), "hamlet-24");
    ck_assert_int_eq(yk_body_number(body, "e", 1, 9, 5), 5);
    ck_assert_uint_eq(yk_body_list(&items, body, "lines", 2), 2);
    ck_assert_str_eq(yk_body_text(items[0], "slot", 1, 9), "s");
    ck_assert_int_eq(yk_body_number(items[0], "n", 1, 9, 0), 1);
    ck_assert_str_eq(yk_body_text(items[1], "slot", 1, 9), "t");
    ck_assert_str_eq(bad_field(body), "");
}
END_TEST

START_TEST(a_tariff_of_any_name_fits_into_a_form)
{
    yk_body_t *body = form("tariffs.a.b%5B0%5D%3D=2&tariffs.child=0");
    const char **names;

    ck_assert_uint_eq(yk_body_names(&names, yk_body_object(body, "tariffs"), 8),
                      2);
    ck_assert_str_eq(names[0], "a.b[0]=");
    ck_assert_str_eq(names[1], "child");
}
END_TEST

START_TEST(an_empty_text_is_kept_where_it_means_something)
{
    yk_body_t *body = form("reference=&tariff=&bare");

    ck_assert_str_eq(yk_body_text(body, "reference", 0, 9), "");
    ck_assert_ptr_null(yk_body_text(body, "tariff", 1, 9));
    ck_assert_str_eq(yk_body_text(body, "bare", 0, 9), "");
    ck_assert_str_eq(bad_field(body), "");
}
END_TEST

static const struct {
    const char *bytes;
    apr_size_t len;
} not_form[] = {
    TEXT("a=%"),
    TEXT("a=%4"),
    TEXT("a=%4g"),
    TEXT("a=%zz"),
    TEXT("%=1"),
    TEXT("a=%00"),
    TEXT("a=\0"),
    TEXT("a=%ff"),
    TEXT("a=%C3"),
    TEXT("a=\xc3"),
    TEXT("%00=1"),
    TEXT("=1"),
    TEXT("a[=1"),
    TEXT("a[]=1"),
    TEXT("a[1]=1"),
    TEXT("a[x]=1"),
    TEXT("a[0=1"),
    TEXT("a[0]x=1"),
    TEXT("a[99999]=1"),
    TEXT("a.=1"),
    TEXT(".a=1"),
    TEXT("[0]=1"),
    TEXT("a..b=1"),
    TEXT("a=1&a.b=1"),
    TEXT("a.b=1&a=1"),
    TEXT("a.b=1&a[0]=1"),
    TEXT("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1"),
};

START_TEST(what_is_not_a_strict_form_is_unreadable)
{
    yk_body_t *body = NULL;

    ck_assert_int_eq(yk_body_parse_form(&body, &fault, not_form[_i].bytes,
                                        not_form[_i].len, p),
                     APR_EINVAL);
    ck_assert_int_eq(fault.answer, YK_ANSWER_UNREADABLE);
    ck_assert_ptr_nonnull(strstr(fault.detail, "Field "));
}
END_TEST

static const struct {
    const char *form, *takers;
} boxes[] = {
    {"v=1", "tnflk"},   {"v=0", "tflk"},   {"v=-1", "tlk"},
    {"v=1.5", "tlk"},   {"v=+1", "tl"},    {"v=12", "tlk"},
    {"v=yes", "tlk"},   {"v=on", "tflk"},  {"v=true", "flk"},
    {"v=false", "flk"}, {"v=a%20b", "tl"}, {"v=99999999999999999999", "lk"},
    {"v=", "tnflk"},    {"v=a&v=b", "l"},  {"v=1&v=1&v=1", ""},
    {"v.x=1", "o"},     {"v[0]=1", "l"},   {"v[0].x=1", "l"},
};

START_TEST(a_box_is_refused_where_it_does_not_fit)
{
    for (const char *how = "tnfolk"; *how != '\0'; how++) {
        yk_body_t *body = form(boxes[_i].form);
        int takes = strchr(boxes[_i].takers, *how) != NULL;

        get(body, *how);
        if (takes) {
            ck_assert_msg(!yk_body_is_bad(body), "%s as %c", boxes[_i].form,
                          *how);
        }
        else {
            ck_assert_msg(strcmp(bad_field(body), "v") == 0, "%s as %c",
                          boxes[_i].form, *how);
        }
    }
}
END_TEST

START_TEST(a_form_of_very_many_fields_is_too_large)
{
    char *text = apr_pcalloc(p, 3 * 3000);
    yk_body_t *body;

    for (int i = 0; i < 2100; i++) {
        strcpy(text + 3 * i, "a=&");
    }
    ck_assert_int_eq(yk_body_parse_form(&body, &fault, text, strlen(text), p),
                     APR_EINVAL);
    ck_assert_int_eq(fault.answer, YK_ANSWER_TOO_LARGE);
}
END_TEST

#define COUNT_OF(list) ((int)(sizeof(list) / sizeof(*(list))))

Suite *body_suite(void)
{
    Suite *suite = suite_create("body");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 60); /* also under valgrind */
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_loop_test(all, what_is_not_strict_json_is_unreadable, 0,
                        COUNT_OF(not_json));
    tcase_add_test(all, what_is_unreadable_is_named_with_its_position);
    tcase_add_test(all, nesting_ends_at_its_bound);
    tcase_add_test(all, a_body_ends_at_its_bound);
    tcase_add_test(all, members_are_read_by_type);
    tcase_add_test(all, what_was_not_sent_is_said_to_be_absent);
    tcase_add_test(all, what_nobody_asked_for_is_refused_by_its_path);
    tcase_add_loop_test(
        all, a_wrong_type_or_size_is_refused_with_what_would_be_right, 0,
        COUNT_OF(shapes));
    tcase_add_test(all, the_first_fault_is_the_one_that_is_told);
    tcase_add_test(all, a_long_foreign_name_is_cut_between_characters);
    tcase_add_test(all, members_with_free_names_are_listed);
    tcase_add_test(all, a_form_is_read_like_json);
    tcase_add_test(all, a_tariff_of_any_name_fits_into_a_form);
    tcase_add_test(all, an_empty_text_is_kept_where_it_means_something);
    tcase_add_loop_test(all, what_is_not_a_strict_form_is_unreadable, 0,
                        COUNT_OF(not_form));
    tcase_add_loop_test(all, a_box_is_refused_where_it_does_not_fit, 0,
                        COUNT_OF(boxes));
    tcase_add_test(all, a_form_of_very_many_fields_is_too_large);
    suite_add_tcase(suite, all);
    return suite;
}
