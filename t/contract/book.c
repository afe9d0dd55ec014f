/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "contract.h"

apr_pool_t *pool;

void pool_make(void)
{
    apr_pool_create(&pool, NULL);
}

void pool_end(void)
{
    apr_pool_destroy(pool);
}

yk_store_t *book_open(void)
{
    yk_store_t *store;
    ck_ok(yk_store_open(&store, server_params("contract", pool), pool));
    return store;
}

MYSQL *book_line(void)
{
    return server_line("contract");
}

yk_store_t *book_make(void)
{
    yk_store_t *store;
    const char *say = NULL;

    server_database("contract");
    store = book_open();
    ck_assert_msg(yk_setup_schema(store, &say, server_schema(pool), pool) ==
                      APR_SUCCESS,
                  "%s", say);
    return store;
}

START_TEST(a_transaction_writes_what_it_locked)
{
    yk_store_t *store = book_make();
    yk_ledger_t *l = yk_ledger_make(pool);
    yk_order_t *order = apr_pcalloc(pool, sizeof(*order));
    yk_order_row_t *row;
    yk_place_t *place;
    yk_order_t *read;
    MYSQL *line = book_line();

    server_run(line, "INSERT INTO yoyaku_slot_place VALUES (7,1,0,0,0,1),"
                     "(7,2,0,0,0,1),(7,3,0,0,0,1)");
    yk_ledger_want_place(l, 7, 0, 2, 0);
    ck_ok(yk_store_lock(store, l));
    place = yk_ledger_place(l, 7, 2);
    ck_assert(place->found);
    ck_assert(l->now_us > 0);
    order->order_id = 77;
    order->tenant_id = 1;
    order->state = YK_ORDER_HELD;
    order->until_us = l->now_us + 1000000;
    order->next_line = 1;
    row = yk_ledger_order_add(l, order);
    row->why = "hold";
    row->who = "somebody";
    row->change_id = 99;
    yk_ledger_line_add(l, order)->slot_id = 7;
    order->lines[0].live = 1;
    order->lines[0].quantity = 1;
    order->lines[0].place_no = 2;
    yk_ledger_touch_place(l, place);
    place->state = YK_PLACE_HELD;
    place->order_id = 77;
    place->by_order = 77;
    place->until_us = order->until_us;
    ck_ok(yk_store_write(store, l));
    ck_assert_uint_eq(place->version, 2);
    ck_assert_uint_eq(order->version, 1);
    ck_ok(yk_store_order(store, &read, NULL, 1, 77, pool));
    ck_assert_uint_eq(read->nlines, 1);
    ck_assert_str_eq(
        server_text(line, "SELECT `change` FROM yoyaku_journal", pool),
        apr_psprintf(pool,
                     "{\"until\":%" APR_INT64_T_FMT
                     ",\"places\":[[2,1,2]],\"counts\":[]}",
                     order->until_us));
    mysql_close(line);
}
END_TEST

TCase *book_case(void)
{
    TCase *tc = tcase_create("book");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, pool_make, pool_end);
    tcase_add_test(tc, a_transaction_writes_what_it_locked);
    return tc;
}
