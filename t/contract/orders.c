/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <string.h>
#include "../../mod_yoyaku/core/ask.h"
#include "contract.h"
#include "yoyaku/catalogue.h"

/* What becomes of orders at the edges: late, twice, under many bounds. */

static yk_store_t *store;
static yk_catalogue_t *catalogue;
static yk_terms_t terms;
static const char *section;

static yk_desk_t *desk_of(int shop, uint32_t most)
{
    terms.tenant_id = 1;
    terms.booker = "";
    terms.who = "test";
    terms.shop = shop;
    terms.confirm = YK_CONFIRM_BOOKER;
    terms.hold_ttl = apr_time_from_sec(600);
    terms.hold_max_lifetime = apr_time_from_sec(1800);
    terms.checkout_ttl = apr_time_from_sec(600);
    terms.wait = apr_time_from_sec(10);
    terms.hold_places = most;
    return yk_desk_make(store, catalogue, &terms, pool);
}

/* A hall of forty, its only section sold as `mode`, and a pool. */
static void book_begin(yk_mode_e mode)
{
    yk_setup_area_t areas[2] = {{0}, {.name = "Pool", .mode = YK_MODE_POOLED}};
    yk_setup_slot_t slot = {.key = "s", .hall = "hall", .areas = areas};
    const char *say = NULL, *plans;
    uint64_t hall_id;
    yk_hall_t *hall;

    store = book_make();
    hall_id = book_hall(store, "hall", 1, 40);
    ck_ok(yk_store_hall(store, &hall, hall_id, pool));
    section = areas[0].name = hall->sections[0].name;
    areas[0].mode = mode;
    areas[1].max = 1;
    slot.nareas = 2;
    ck_ok(yk_setup_slot(store, &say, 1, &slot, pool));
    ck_ok(yk_setup_slot_state(store, &say, 1, "s", YK_SLOT_OPEN, pool));
    plans = server_beside("plans-orders", pool);
    apr_dir_make(plans, APR_OS_DEFAULT, pool);
    ck_ok(yk_catalogue_create(&catalogue, plans, pool));
}

static yk_wish_t *wish_places(uint32_t first, uint32_t n)
{
    yk_wish_t *wish = apr_pcalloc(pool, sizeof(*wish));

    wish->nlines = n;
    wish->lines = apr_pcalloc(pool, n * sizeof(*wish->lines));
    for (uint32_t i = 0; i < n; i++) {
        wish->lines[i].slot = "s";
        wish->lines[i].place = apr_psprintf(pool, "1-1-%u", first + i);
        wish->lines[i].nparts = 1;
        wish->lines[i].parts[0].quantity = 1;
    }
    return wish;
}

static void want_area(yk_wish_line_t *line, const char *area, uint32_t quantity)
{
    line->slot = "s";
    line->area = area;
    line->nparts = 1;
    line->parts[0].quantity = quantity;
}

/* Once more with the same change, as by one whose leader died. */
static void again(yk_desk_t *desk, yk_reply_t *reply, const yk_ask_t *ask,
                  int maybe_done)
{
    yk_deed_t deed;

    memset(reply, 0, sizeof(*reply));
    yk_deed_make(&deed, desk, ask, reply, pool);
    deed.change_id = 4711;
    deed.maybe_done = maybe_done;
    ck_ok(yk_deed_run(&deed));
}

START_TEST(a_late_payment_is_not_measured_by_the_shops_own_terms)
{
    yk_payment_t payment = {0, 0, "", "p"};
    yk_claim_t claim = {0};
    yk_reply_t reply;
    uint32_t settled;

    book_begin(YK_MODE_PLACED);
    ck_ok(yk_desk_hold(desk_of(0, 20), &reply, wish_places(1, 10), NULL, NULL,
                       pool));
    ck_assert_int_eq(reply.answer, YK_ANSWER_HELD);
    claim.order_id = reply.order->order_id;
    yk_store_clock_shift(store, apr_time_from_sec(700));
    ck_ok(yk_desk_sweep(desk_of(0, 20), &settled, pool));
    ck_assert_uint_eq(settled, 1);
    ck_ok(yk_desk_confirm(desk_of(1, 8), &reply, &payment, &claim, NULL, pool));
    ck_assert_int_eq(reply.answer, YK_ANSWER_OK);
    ck_assert_int_eq(reply.late, 1);
    pool_end();
}
END_TEST

START_TEST(a_second_payment_is_told_so_also_by_who_comes_after_the_dead)
{
    yk_payment_t first = {0, 0, "", "p1"}, second = {0, 0, "", "p2"};
    yk_claim_t claim = {0};
    yk_ask_t ask = {.kind = YK_ASK_CONFIRM,
                    .claim = &claim,
                    .payment = &second,
                    .why = "confirm"};
    yk_reply_t reply;

    book_begin(YK_MODE_PLACED);
    ck_ok(yk_desk_hold(desk_of(0, 8), &reply, wish_places(1, 2), NULL, NULL,
                       pool));
    claim.order_id = reply.order->order_id;
    ck_ok(yk_desk_confirm(desk_of(1, 8), &reply, &first, &claim, NULL, pool));
    ck_assert_int_eq(reply.answer, YK_ANSWER_OK);
    again(desk_of(1, 8), &reply, &ask, 0);
    ck_assert_int_eq(reply.answer, YK_ANSWER_STATE);
    again(desk_of(1, 8), &reply, &ask, 1);
    ck_assert_int_eq(reply.answer, YK_ANSWER_STATE);
    ck_assert_str_eq(reply.state, "confirmed");
    pool_end();
}
END_TEST

START_TEST(what_was_added_begins_no_order_also_after_the_dead)
{
    yk_claim_t claim = {0};
    yk_ask_t ask = {.kind = YK_ASK_HOLD, .claim = &claim, .why = "hold"};
    yk_reply_t reply;

    book_begin(YK_MODE_PLACED);
    ck_ok(yk_desk_hold(desk_of(0, 8), &reply, wish_places(1, 2), NULL, NULL,
                       pool));
    claim.order_id = reply.order->order_id;
    ask.wish = wish_places(3, 1);
    again(desk_of(0, 8), &reply, &ask, 0);
    again(desk_of(0, 8), &reply, &ask, 1);
    ck_assert_int_eq(reply.answer, YK_ANSWER_HELD);
    ck_assert_int_eq(reply.created, 0);
    ck_assert_uint_eq(reply.order->nlines, 3);
    pool_end();
}
END_TEST

START_TEST(due_orders_are_settled_under_however_many_bounds)
{
    yk_wish_line_t lines[6] = {0};
    yk_wish_t wish = {.lines = lines + 5, .nlines = 1};
    yk_reply_t reply;

    book_begin(YK_MODE_ASSIGNED);
    /* no two seats beside each other: every party is spread */
    server_run(book_line(), "UPDATE yoyaku_lock_anchor SET map=UNHEX("
                            "'5555555555') WHERE map IS NOT NULL");
    for (int i = 0; i < 5; i++) {
        want_area(&lines[i], section, 2);
    }
    want_area(&lines[5], "Pool", 1);
    ck_ok(yk_desk_hold(desk_of(0, 20), &reply, &wish, NULL, NULL, pool));
    ck_assert_int_eq(reply.answer, YK_ANSWER_HELD);
    wish.lines = lines;
    wish.nlines = 6;
    yk_store_clock_shift(store, apr_time_from_sec(700));
    ck_ok(yk_desk_hold(desk_of(0, 20), &reply, &wish, NULL, NULL, pool));
    ck_assert_int_eq(reply.answer, YK_ANSWER_HELD);
    pool_end();
}
END_TEST

START_TEST(lines_cannot_be_piled_up)
{
    yk_claim_t claim = {0};
    yk_reply_t reply;
    MYSQL *line;

    book_begin(YK_MODE_PLACED);
    line = book_line();
    ck_ok(yk_desk_hold(desk_of(0, 8), &reply, wish_places(1, 1), NULL, NULL,
                       pool));
    claim.order_id = reply.order->order_id;
    server_run(line,
               apr_psprintf(pool,
                            "INSERT INTO yoyaku_booking SELECT b.order_id,"
                            "s.seq,b.tenant_id,b.booker_hash,0,b.slot_id,"
                            "b.area_no,b.place_no,0,b.price_no,b.amount,"
                            "b.currency,b.tariff,b.holder FROM yoyaku_booking b"
                            " JOIN seq_2_to_%d s",
                            YK_ORDER_LINES));
    server_run(line, "UPDATE yoyaku_order SET next_line=100000");
    ck_ok(yk_desk_hold(desk_of(0, 8), &reply, wish_places(2, 1), &claim, NULL,
                       pool));
    ck_assert_int_eq(reply.answer, YK_ANSWER_LIMIT);
    ck_assert_str_eq(reply.limit, "lines per order");
    ck_ok(yk_desk_remove(desk_of(0, 8), &reply, 1, &claim, NULL, pool));
    ck_assert_int_eq(reply.answer, YK_ANSWER_OK);
    pool_end();
}
END_TEST

TCase *orders_case(void)
{
    TCase *tcase = tcase_create("orders");

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, pool_make, NULL);
    tcase_add_test(tcase,
                   a_late_payment_is_not_measured_by_the_shops_own_terms);
    tcase_add_test(
        tcase, a_second_payment_is_told_so_also_by_who_comes_after_the_dead);
    tcase_add_test(tcase, what_was_added_begins_no_order_also_after_the_dead);
    tcase_add_test(tcase, due_orders_are_settled_under_however_many_bounds);
    tcase_add_test(tcase, lines_cannot_be_piled_up);
    return tcase;
}
