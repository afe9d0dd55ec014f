/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <apr_strings.h>
#include <string.h>
#include "yoyaku/request.h"

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

/* JSON when it begins like it, else a form. */
static yk_body_t *body(const char *text)
{
    yk_body_t *read = NULL;
    apr_status_t rv =
        *text == '{' ? yk_body_parse_json(&read, &fault, text, strlen(text), p)
                     : yk_body_parse_form(&read, &fault, text, strlen(text), p);

    ck_assert_msg(rv == APR_SUCCESS, "%s: %s", text, fault.detail);
    return read;
}

/* A wish in one line of text: "slot/place@tariff slot/[area]*2@tariff". */
static const char *wish_text(const yk_wish_t *wish)
{
    const char *text = "";

    for (uint32_t i = 0; i < wish->nlines; i++) {
        const yk_wish_line_t *line = &wish->lines[i];

        text = apr_pstrcat(p, text, i > 0 ? " " : "", line->slot, "/",
                           line->place != NULL ? line->place : "[",
                           line->place != NULL ? "" : line->area,
                           line->place != NULL ? "" : "]", NULL);
        for (uint32_t j = 0; j < line->nparts; j++) {
            const yk_wish_part_t *part = &line->parts[j];

            text = apr_psprintf(p, "%s*%u@%s", text, part->quantity,
                                part->tariff != NULL ? part->tariff : "-");
        }
    }
    return text;
}

static const struct {
    const char *slot; /* of the URL */
    const char *body, *wish;
} wishes[] = {
    {NULL, "{\"lines\":[{\"slot\":\"s\",\"place\":\"A-1\",\"tariff\":\"x\"}]}",
     "s/A-1*1@x"},
    {NULL,
     "{\"lines\":[{\"slot\":\"s\",\"place\":\"A-1\"},{\"slot\":\"t\","
     "\"place\":\"A-1\"}]}",
     "s/A-1*1@- t/A-1*1@-"},
    {NULL,
     "{\"lines\":[{\"slot\":\"s\",\"area\":\"Stalls\",\"quantity\":256,"
     "\"tariff\":\"x\"}]}",
     "s/[Stalls]*256@x"},
    {NULL,
     "{\"lines\":[{\"slot\":\"s\",\"area\":\"Stalls\",\"tariffs\":{\"adult\":"
     "2,\"child\":1}}]}",
     "s/[Stalls]*2@adult*1@child"},
    {NULL,
     "{\"lines\":[{\"slot\":\"s\",\"area\":\"P\",\"quantity\":1},"
     "{\"slot\":\"s\",\"area\":\"P\",\"quantity\":1}]}",
     "s/[P]*1@- s/[P]*1@-"},
    {"s",
     "{\"lines\":[{\"place\":\"A-1\"},{\"slot\":\"s\",\"place\":\"A-2\"}]}",
     "s/A-1*1@- s/A-2*1@-"},
    {"s", "{\"places\":[\"A-1\",\"A-2\"],\"tariff\":\"adult\"}",
     "s/A-1*1@adult s/A-2*1@adult"},
    {"s", "{\"places\":[\"\xf0\x9f\x8e\xad '\\\"\"]}",
     "s/\xf0\x9f\x8e\xad '\"*1@-"},
    {"s", "{\"area\":\"Stalls\",\"quantity\":4}", "s/[Stalls]*4@-"},
    {"s", "{\"area\":\"Stalls\",\"tariffs\":{\"a\":1,\"b\":2}}",
     "s/[Stalls]*1@a*2@b"},
    {"s", "places=A-1&places=A-2&tariff=adult", "s/A-1*1@adult s/A-2*1@adult"},
    {"s", "places=A-1&tariff=", "s/A-1*1@-"},
    {"s", "area=Stalls&quantity=4&tariff=adult", "s/[Stalls]*4@adult"},
    {"s", "area=Front+left&tariffs.adult=2&tariffs.child=0&tariffs.press=",
     "s/[Front left]*2@adult"},
    {"s",
     "area=P&tariffs.a=0&tariffs.b=0&tariffs.c=0&tariffs.d=0&tariffs.e=0"
     "&tariffs.f=0&tariffs.g=0&tariffs.h=0&tariffs.i=0&tariffs.j=3",
     "s/[P]*3@j"},
    {NULL,
     "lines[0].slot=s&lines[0].place=A-1&lines[0].tariff=x&lines[1].slot=t&"
     "lines[1].area=P&lines[1].quantity=2&together=on",
     "s/A-1*1@x t/[P]*2@-"},
};

START_TEST(a_wish_is_read_in_all_its_forms)
{
    yk_wish_t *wish = NULL;

    ck_assert_msg(yk_request_wish(&wish, &fault, body(wishes[_i].body),
                                  wishes[_i].slot, p) == APR_SUCCESS,
                  "%s: %s", wishes[_i].body, fault.detail);
    ck_assert_str_eq(wish_text(wish), wishes[_i].wish);
}
END_TEST

START_TEST(what_a_wish_says_beside_its_lines_is_read)
{
    yk_wish_t *wish = NULL;

    ck_assert_int_eq(
        yk_request_wish(&wish, &fault,
                        body("{\"places\":[\"a\",\"b\"],\"together\":true,"
                             "\"confirm\":true,\"new\":true,\"reference\":"
                             "\"r\"}"),
                        "s", p),
        APR_SUCCESS);
    ck_assert(wish->together && wish->confirm && wish->fresh);
    ck_assert_str_eq(wish->reference, "r");
    ck_assert_str_eq(wish->lines[1].field, "places[1]");
    ck_assert_int_eq(yk_request_wish(&wish, &fault,
                                     body("{\"area\":\"a\",\"quantity\":1}"),
                                     "s", p),
                     APR_SUCCESS);
    ck_assert(!wish->together && !wish->confirm && !wish->fresh);
    ck_assert_ptr_null(wish->reference);
    ck_assert_str_eq(wish->lines[0].field, "area");
}
END_TEST

START_TEST(a_caller_may_read_a_member_of_his_own_first)
{
    static const char text[] = "{\"booker\":\"b\",\"lines\":[{\"slot\":\"s\","
                               "\"place\":\"a\"}]}";
    yk_body_t *read = body(text);
    yk_wish_t *wish;

    ck_assert_str_eq(yk_body_text(read, "booker", 1, 250), "b");
    ck_assert_int_eq(yk_request_wish(&wish, &fault, read, NULL, p),
                     APR_SUCCESS);
    ck_assert_int_eq(yk_request_wish(&wish, &fault, body(text), NULL, p),
                     APR_EINVAL);
    ck_assert_str_eq(fault.field, "booker");
}
END_TEST

#define L(members) "{\"lines\":[{" members "}]}"
#define S "\"slot\":\"s\""
#define LONG_64                                                                \
    "0123456789012345678901234567890123456789012345678901234567890123"

static const struct {
    const char *slot, *body, *field;
} bad_wishes[] = {
    {NULL, "{}", "lines"},
    {NULL, "{\"lines\":null}", "lines"},
    {NULL, "{\"lines\":[]}", "lines"},
    {NULL, "{\"lines\":{}}", "lines"},
    {NULL, "{\"lines\":[null]}", "lines[0]"},
    {NULL, "{\"lines\":[\"A-1\"]}", "lines[0]"},
    {NULL, "{\"places\":[\"A-1\"]}", "places"},
    {NULL, L("\"place\":\"a\""), "lines[0].slot"},
    {NULL, L("\"slot\":\"a b\",\"place\":\"a\""), "lines[0].slot"},
    {NULL, L("\"slot\":null,\"place\":\"a\""), "lines[0].slot"},
    {NULL, L(S), "lines[0].area"},
    {NULL, L(S ",\"place\":\"\""), "lines[0].place"},
    {NULL, L(S ",\"place\":1"), "lines[0].place"},
    {NULL, L(S ",\"place\":null"), "lines[0].place"},
    {NULL, L(S ",\"place\":\"" LONG_64 "x\""), "lines[0].place"},
    {NULL, L(S ",\"place\":\"a\",\"area\":\"b\""), "lines[0].area"},
    {NULL, L(S ",\"place\":\"a\",\"quantity\":1"), "lines[0].quantity"},
    {NULL, L(S ",\"place\":\"a\",\"tariffs\":{\"x\":1}"), "lines[0].tariffs"},
    {NULL, L(S ",\"place\":\"a\",\"tariff\":\"\""), "lines[0].tariff"},
    {NULL, L(S ",\"place\":\"a\",\"price\":1"), "lines[0].price"},
    {NULL, L(S ",\"area\":\"a\""), "lines[0].quantity"},
    {NULL, L(S ",\"area\":\"a\",\"quantity\":0"), "lines[0].quantity"},
    {NULL, L(S ",\"area\":\"a\",\"quantity\":-1"), "lines[0].quantity"},
    {NULL, L(S ",\"area\":\"a\",\"quantity\":257"), "lines[0].quantity"},
    {NULL, L(S ",\"area\":\"a\",\"quantity\":1e999"), "lines[0].quantity"},
    {NULL, L(S ",\"area\":\"a\",\"quantity\":1.5"), "lines[0].quantity"},
    {NULL, L(S ",\"area\":\"a\",\"quantity\":\"1\""), "lines[0].quantity"},
    {NULL, L(S ",\"area\":\"a\",\"quantity\":1,\"tariffs\":{\"x\":1}"),
     "lines[0].quantity"},
    {NULL, L(S ",\"area\":\"a\",\"tariff\":\"x\",\"tariffs\":{\"x\":1}"),
     "lines[0].tariff"},
    {NULL, L(S ",\"area\":\"a\",\"tariffs\":{}"), "lines[0].tariffs"},
    {NULL, L(S ",\"area\":\"a\",\"tariffs\":[]"), "lines[0].tariffs"},
    {NULL, L(S ",\"area\":\"a\",\"tariffs\":{\"x\":0}"), "lines[0].tariffs.x"},
    {NULL, L(S ",\"area\":\"a\",\"tariffs\":{\"\":1}"), "lines[0].tariffs."},
    {NULL, L(S ",\"area\":\"a\",\"tariffs\":{\"x\":200,\"y\":57}"),
     "lines[0].tariffs"},
    {NULL,
     L(S ",\"area\":\"a\",\"tariffs\":{\"1\":1,\"2\":1,\"3\":1,\"4\":1,"
         "\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1}"),
     "lines[0].tariffs"},
    {NULL,
     "{\"lines\":[{" S ",\"place\":\"a\"},{" S ",\"place\":\"b\"},{" S
     ",\"place\":\"a\"}]}",
     "lines[2]"},
    {NULL, "{\"lines\":[{" S ",\"place\":\"a\"}],\"area\":\"x\"}", "area"},
    {NULL, "{\"lines\":[{" S ",\"place\":\"a\"}],\"tariff\":\"x\"}", "tariff"},
    {NULL, "{\"lines\":[{" S ",\"place\":\"a\"}],\"together\":1}", "together"},
    {NULL, "{\"lines\":[{" S ",\"place\":\"a\"}],\"confirm\":\"true\"}",
     "confirm"},
    {NULL, "{\"lines\":[{" S ",\"place\":\"a\"}],\"reference\":5}",
     "reference"},
    {NULL, "{\"lines\":[{" S ",\"place\":\"a\"}],\"Confirm\":true}", "Confirm"},
    {"s", "{}", "area"},
    {"s", "{\"places\":[]}", "places"},
    {"s", "{\"places\":\"a\"}", "places"},
    {"s", "{\"places\":[\"a\",\"\"]}", "places[1]"},
    {"s", "{\"places\":[\"a\",null]}", "places[1]"},
    {"s", "{\"places\":[\"a\",[\"b\"]]}", "places[1]"},
    {"s", "{\"places\":[\"a\",\"b\",\"a\"]}", "places[2]"},
    {"s", "{\"places\":[\"a\"],\"area\":\"b\"}", "area"},
    {"s", "{\"places\":[\"a\"],\"quantity\":1}", "quantity"},
    {"s", "{\"places\":[\"a\"],\"tariffs\":{\"x\":1}}", "tariffs"},
    {"s", "{\"lines\":[{\"slot\":\"t\",\"place\":\"a\"}]}", "lines[0].slot"},
    {"s", "{\"lines\":[{\"place\":\"a\"}],\"places\":[\"b\"]}", "places"},
    {"s", "{\"area\":\"a\",\"quantity\":1,\"lines\":[{\"place\":\"a\"}]}",
     "area"},
    {"s", "{\"area\":\"\",\"quantity\":1}", "area"},
    {"s", "{\"quantity\":1}", "area"},
    {"s", "places=", "area"},
    {"s", "places=a&places=", "places[1]"},
    {"s", "area=a&quantity=0", "quantity"},
    {"s", "area=a&tariffs.x=0", "tariffs"},
    {"s", "area=a&tariffs.x=-1", "tariffs.x"},
    {"s", "area=a&quantity=1&submit=Hold", "submit"},
};

START_TEST(a_bad_wish_is_refused_by_field)
{
    yk_wish_t *wish = NULL;

    ck_assert_int_eq(yk_request_wish(&wish, &fault, body(bad_wishes[_i].body),
                                     bad_wishes[_i].slot, p),
                     APR_EINVAL);
    ck_assert_ptr_null(wish);
    ck_assert_int_eq(fault.answer, YK_ANSWER_INVALID);
    ck_assert_msg(strcmp(fault.field, bad_wishes[_i].field) == 0,
                  "%s: %s is named, not %s", bad_wishes[_i].body, fault.field,
                  bad_wishes[_i].field);
    ck_assert_int_eq(fault.detail[strlen(fault.detail) - 1], '.');
}
END_TEST

START_TEST(a_wish_has_at_most_256_lines)
{
    yk_wish_t *wish = NULL;

    for (int n = 256; n <= 257; n++) {
        const char *text = "{\"places\":[\"first\"";

        for (int i = 1; i < n; i++) {
            text = apr_psprintf(p, "%s,\"%d\"", text, i);
        }
        text = apr_pstrcat(p, text, "]}", NULL);
        ck_assert_int_eq(yk_request_wish(&wish, &fault, body(text), "s", p),
                         n == 256 ? APR_SUCCESS : APR_EINVAL);
    }
    ck_assert_uint_eq(wish->nlines, 256);
    ck_assert_str_eq(fault.field, "places");
    ck_assert_str_eq(fault.allowed, "a list of 1 to 256 values");
}
END_TEST

/* ---- exchange ---- */

START_TEST(an_exchange_gives_and_takes)
{
    yk_exchange_t *exchange = NULL;

    ck_assert_int_eq(
        yk_request_exchange(
            &exchange, &fault,
            body("{\"give\":[{\"line\":1,\"quantity\":2},{\"line\":3}],"
                 "\"take\":{\"lines\":[{\"slot\":\"s\",\"place\":\"a\"}],"
                 "\"together\":true},\"amount\":\"12.50\",\"currency\":"
                 "\"EUR\",\"reason\":\"moved\"}"),
            p),
        APR_SUCCESS);
    ck_assert_uint_eq(exchange->ngive, 2);
    ck_assert_uint_eq(exchange->give[0].line, 1);
    ck_assert_uint_eq(exchange->give[0].quantity, 2);
    ck_assert_uint_eq(exchange->give[1].line, 3);
    ck_assert_uint_eq(exchange->give[1].quantity, 0);
    ck_assert_str_eq(wish_text(exchange->take), "s/a*1@-");
    ck_assert_str_eq(exchange->take->lines[0].field, "take.lines[0]");
    ck_assert_int_eq(exchange->take->together, 1);
    ck_assert_int_eq(exchange->amount, 1250);
    ck_assert_str_eq(exchange->currency, "EUR");
    ck_assert_str_eq(exchange->reason, "moved");
}
END_TEST

START_TEST(an_exchange_may_only_give_or_only_take)
{
    yk_exchange_t *exchange = NULL;

    ck_assert_int_eq(yk_request_exchange(&exchange, &fault,
                                         body("{\"give\":[{\"line\":1}]}"), p),
                     APR_SUCCESS);
    ck_assert_uint_eq(exchange->take->nlines, 0);
    ck_assert_int_eq(exchange->amount, -1);
    ck_assert_str_eq(exchange->currency, "");
    ck_assert_str_eq(exchange->reason, "");
    ck_assert_int_eq(yk_request_exchange(
                         &exchange, &fault,
                         body("take.lines[0].slot=s&take.lines[0].place=a"), p),
                     APR_SUCCESS);
    ck_assert_uint_eq(exchange->ngive, 0);
    ck_assert_str_eq(wish_text(exchange->take), "s/a*1@-");
}
END_TEST

static const struct {
    const char *body, *field;
} bad_exchanges[] = {
    {"{}", "give"},
    {"{\"give\":[]}", "give"},
    {"{\"give\":[1]}", "give[0]"},
    {"{\"give\":[{}]}", "give[0].line"},
    {"{\"give\":[{\"line\":0}]}", "give[0].line"},
    {"{\"give\":[{\"line\":4294967296}]}", "give[0].line"},
    {"{\"give\":[{\"line\":1,\"quantity\":0}]}", "give[0].quantity"},
    {"{\"give\":[{\"line\":1},{\"line\":1}]}", "give[1].line"},
    {"{\"give\":[{\"line\":1}],\"take\":null}", "take"},
    {"{\"take\":{}}", "take.lines"},
    {"{\"take\":{\"lines\":[{\"slot\":\"s\"}]}}", "take.lines[0].area"},
    {"{\"take\":{\"lines\":[{\"slot\":\"s\",\"place\":\"a\"},"
     "{\"slot\":\"s\",\"place\":\"a\"}]}}",
     "take.lines[1]"},
    {"{\"take\":{\"places\":[\"a\"]}}", "take.lines"},
    {"{\"give\":[{\"line\":1}],\"amount\":12}", "amount"},
    {"{\"give\":[{\"line\":1}],\"amount\":\"12\"}", "currency"},
    {"{\"give\":[{\"line\":1}],\"amount\":\"-1.00\",\"currency\":\"EUR\"}",
     "amount"},
    {"{\"give\":[{\"line\":1}],\"confirm\":true}", "confirm"},
};

START_TEST(a_bad_exchange_is_refused_by_field)
{
    yk_exchange_t *exchange = NULL;

    ck_assert_int_eq(
        yk_request_exchange(&exchange, &fault, body(bad_exchanges[_i].body), p),
        APR_EINVAL);
    ck_assert_ptr_null(exchange);
    ck_assert_str_eq(fault.field, bad_exchanges[_i].field);
}
END_TEST

/* ---- patch ---- */

START_TEST(a_patch_leaves_alone_what_it_does_not_name)
{
    yk_patch_t *patch = NULL;

    ck_assert_int_eq(
        yk_request_patch(&patch, &fault,
                         body("{\"reference\":\"\",\"holders\":[{\"line\":2,"
                              "\"holder\":\"n\"},{\"line\":1,\"holder\":\"\"}"
                              "]}"),
                         p),
        APR_SUCCESS);
    ck_assert_str_eq(patch->reference, "");
    ck_assert_ptr_null(patch->contact);
    ck_assert_ptr_null(patch->data);
    ck_assert_uint_eq(patch->nholders, 2);
    ck_assert_uint_eq(patch->holders[0].line, 2);
    ck_assert_str_eq(patch->holders[0].holder, "n");
    ck_assert_str_eq(patch->holders[1].holder, "");
}
END_TEST

START_TEST(an_orders_data_has_at_most_4096_bytes)
{
    yk_patch_t *patch = NULL;
    char *data = apr_pcalloc(p, 4098);

    memset(data, 'd', 4096);
    ck_assert_int_eq(yk_request_patch(&patch, &fault,
                                      body(apr_pstrcat(p, "data=", data, NULL)),
                                      p),
                     APR_SUCCESS);
    ck_assert_str_eq(patch->data, data);
    data[4096] = 'd';
    ck_assert_int_eq(yk_request_patch(&patch, &fault,
                                      body(apr_pstrcat(p, "data=", data, NULL)),
                                      p),
                     APR_EINVAL);
    ck_assert_str_eq(fault.field, "data");
    ck_assert_str_eq(fault.allowed, "a text of 0 to 4096 bytes");
}
END_TEST

static const struct {
    const char *body, *field;
} bad_patches[] = {
    {"{\"contact\":null}", "contact"},
    {"{\"data\":{}}", "data"},
    {"{\"holders\":{}}", "holders"},
    {"{\"holders\":[{\"line\":1}]}", "holders[0].holder"},
    {"{\"holders\":[{\"holder\":\"n\"}]}", "holders[0].line"},
    {"{\"holders\":[{\"line\":1,\"holder\":\"n\"},{\"line\":1,\"holder\":"
     "\"m\"}]}",
     "holders[1].line"},
    {"{\"state\":\"confirmed\"}", "state"},
};

START_TEST(a_bad_patch_is_refused_by_field)
{
    yk_patch_t *patch = NULL;

    ck_assert_int_eq(
        yk_request_patch(&patch, &fault, body(bad_patches[_i].body), p),
        APR_EINVAL);
    ck_assert_str_eq(fault.field, bad_patches[_i].field);
}
END_TEST

/* ---- payment, reason, nothing ---- */

static const struct {
    const char *body;
    int64_t amount;
    const char *currency, *payment;
} payments[] = {
    {"{\"attempt\":3,\"amount\":\"90.00\",\"currency\":\"EUR\",\"payment\":"
     "\"p1\"}",
     9000, "EUR", "p1"},
    {"{\"attempt\":3,\"amount\":\"90\",\"currency\":\"JPY\"}", 90, "JPY", ""},
    {"{\"attempt\":3,\"amount\":\"0.00\",\"currency\":null}", 0, "", ""},
    {"{\"attempt\":3,\"amount\":\"0.00\"}", 0, "", ""},
    {"attempt=3&amount=1.234&currency=KWD&payment=p", 1234, "KWD", "p"},
    {"attempt=3&amount=0.00&currency=", 0, "", ""},
};

START_TEST(a_payment_is_read_in_its_currency)
{
    yk_payment_t *payment = NULL;

    ck_assert_int_eq(
        yk_request_payment(&payment, &fault, body(payments[_i].body), p),
        APR_SUCCESS);
    ck_assert_uint_eq(payment->attempt, 3);
    ck_assert_int_eq(payment->amount, payments[_i].amount);
    ck_assert_str_eq(payment->currency, payments[_i].currency);
    ck_assert_str_eq(payment->payment, payments[_i].payment);
}
END_TEST

static const struct {
    const char *body, *field;
} bad_payments[] = {
    {"{\"amount\":\"1.00\",\"currency\":\"EUR\"}", "attempt"},
    {"{\"attempt\":\"1\",\"amount\":\"1.00\",\"currency\":\"EUR\"}", "attempt"},
    {"{\"attempt\":-1,\"amount\":\"1.00\",\"currency\":\"EUR\"}", "attempt"},
    {"{\"attempt\":4294967296,\"amount\":\"1.00\",\"currency\":\"EUR\"}",
     "attempt"},
    {"{\"attempt\":1,\"currency\":\"EUR\"}", "amount"},
    {"{\"attempt\":1,\"amount\":1.00,\"currency\":\"EUR\"}", "amount"},
    {"{\"attempt\":1,\"amount\":\"1.005\",\"currency\":\"EUR\"}", "amount"},
    {"{\"attempt\":1,\"amount\":\"1.00\",\"currency\":\"JPY\"}", "amount"},
    {"{\"attempt\":1,\"amount\":\"1.00\",\"currency\":\"eur\"}", "currency"},
    {"{\"attempt\":1,\"amount\":\"1.00\",\"currency\":\"EURO\"}", "currency"},
    {"{\"attempt\":1,\"amount\":\"1.00\"}", "currency"},
    {"{\"attempt\":1,\"amount\":\"1.00\",\"currency\":null}", "currency"},
    {"{\"attempt\":1,\"amount\":\"1.00\",\"currency\":\"EUR\",\"payment\":7}",
     "payment"},
    {"{\"attempt\":1,\"amount\":\"1.00\",\"currency\":\"EUR\",\"paid\":true}",
     "paid"},
};

START_TEST(a_bad_payment_is_refused_by_field)
{
    yk_payment_t *payment = NULL;

    ck_assert_int_eq(
        yk_request_payment(&payment, &fault, body(bad_payments[_i].body), p),
        APR_EINVAL);
    ck_assert_str_eq(fault.field, bad_payments[_i].field);
}
END_TEST

START_TEST(a_reason_may_be_said)
{
    const char *reason = NULL;

    ck_assert_int_eq(
        yk_request_reason(&reason, &fault, body("{\"reason\":\"ill\"}"), p),
        APR_SUCCESS);
    ck_assert_str_eq(reason, "ill");
    ck_assert_int_eq(yk_request_reason(&reason, &fault, yk_body_make(p), p),
                     APR_SUCCESS);
    ck_assert_str_eq(reason, "");
    ck_assert_int_eq(
        yk_request_reason(&reason, &fault, body("{\"reason\":1}"), p),
        APR_EINVAL);
}
END_TEST

START_TEST(a_request_that_says_nothing_says_nothing)
{
    ck_assert_int_eq(yk_request_nothing(&fault, body("{}")), APR_SUCCESS);
    ck_assert_int_eq(yk_request_nothing(&fault, body("{\"x\":1}")), APR_EINVAL);
    ck_assert_str_eq(fault.field, "x");
}
END_TEST

Suite *request_suite(void)
{
    Suite *suite = suite_create("request");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 60); /* also under valgrind */
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_loop_test(all, a_wish_is_read_in_all_its_forms, 0,
                        COUNT_OF(wishes));
    tcase_add_test(all, what_a_wish_says_beside_its_lines_is_read);
    tcase_add_test(all, a_caller_may_read_a_member_of_his_own_first);
    tcase_add_loop_test(all, a_bad_wish_is_refused_by_field, 0,
                        COUNT_OF(bad_wishes));
    tcase_add_test(all, a_wish_has_at_most_256_lines);
    tcase_add_test(all, an_exchange_gives_and_takes);
    tcase_add_test(all, an_exchange_may_only_give_or_only_take);
    tcase_add_loop_test(all, a_bad_exchange_is_refused_by_field, 0,
                        COUNT_OF(bad_exchanges));
    tcase_add_test(all, a_patch_leaves_alone_what_it_does_not_name);
    tcase_add_test(all, an_orders_data_has_at_most_4096_bytes);
    tcase_add_loop_test(all, a_bad_patch_is_refused_by_field, 0,
                        COUNT_OF(bad_patches));
    tcase_add_loop_test(all, a_payment_is_read_in_its_currency, 0,
                        COUNT_OF(payments));
    tcase_add_loop_test(all, a_bad_payment_is_refused_by_field, 0,
                        COUNT_OF(bad_payments));
    tcase_add_test(all, a_reason_may_be_said);
    tcase_add_test(all, a_request_that_says_nothing_says_nothing);
    suite_add_tcase(suite, all);
    return suite;
}
