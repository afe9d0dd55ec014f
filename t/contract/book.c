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

static apr_status_t close_line(void *line)
{
    mysql_close(line);
    return APR_SUCCESS;
}

/* Closed with the pool, also when the test fails: what it holds would stop
 * the next test. */
MYSQL *book_line(void)
{
    MYSQL *line = server_line("contract");

    /* as the store's own: without gap locks that a test does not mean */
    server_run(line, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    apr_pool_cleanup_register(pool, line, close_line, apr_pool_cleanup_null);
    return line;
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

uint64_t book_hall(yk_store_t *store, const char *name, uint32_t sections,
                   uint32_t places)
{
    yk_hall_t *hall;
    uint64_t hall_id = 0;
    const char *say = NULL;

    ck_ok(yk_hall_generate(&hall, sections, places, pool));
    hall->name = name;
    ck_assert_msg(yk_setup_hall(store, &say, &hall_id, 1, hall, NULL, NULL,
                                pool) == APR_SUCCESS,
                  "%s", say);
    return hall_id;
}

uint64_t book_slot(yk_store_t *store, const char *key, const char *hall,
                   yk_mode_e mode)
{
    yk_setup_slot_t slot;
    yk_setup_area_t areas[64];
    yk_slot_t *made;
    yk_hall_t *drawn;
    const char *say = NULL;
    uint32_t i;
    MYSQL *line = book_line();

    memset(&slot, 0, sizeof(slot));
    memset(areas, 0, sizeof(areas));
    slot.key = key;
    slot.hall = hall;
    slot.areas = areas;
    slot.nareas = 1;
    areas[0].name = "Pool";
    areas[0].mode = YK_MODE_POOLED;
    areas[0].max = 100;
    if (hall != NULL) {
        uint64_t id = (uint64_t)server_number(
            line, apr_psprintf(pool,
                               "SELECT hall_id FROM yoyaku_hall WHERE name='%s'"
                               " ORDER BY version DESC LIMIT 1",
                               hall));
        ck_ok(yk_store_hall(store, &drawn, id, pool));
        slot.nareas = drawn->nsections;
        for (i = 0; i < drawn->nsections; i++) {
            areas[i].name = drawn->sections[i].name;
            areas[i].mode = mode;
        }
    }
    ck_assert_msg(yk_setup_slot(store, &say, 1, &slot, pool) == APR_SUCCESS,
                  "%s", say);
    ck_ok(yk_setup_slot_state(store, &say, 1, key, YK_SLOT_OPEN, pool));
    ck_ok(yk_store_slot(store, &made, 1, key, pool));
    return made->slot_id;
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
