/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <apr_thread_proc.h>
#include <string.h>
#include "contract.h"

static const char *say;

/* The server's word on the number of rows of a table. */
static long long rows(const char *table)
{
    MYSQL *line = book_line();
    long long n = server_number(
        line, apr_psprintf(pool, "SELECT COUNT(*) FROM yoyaku_%s", table));
    return n;
}

START_TEST(the_schema_can_be_applied_again)
{
    yk_store_t *store = book_make();

    ck_ok(yk_setup_schema(store, &say, server_schema(pool), pool));
    ck_assert_str_eq(say, "The schema is up to date.");
    ck_assert_int_eq(rows("tenant"), 1);
}
END_TEST

typedef struct applier_t {
    apr_thread_t *thread;
    apr_status_t rv;
} applier_t;

static void *APR_THREAD_FUNC apply(apr_thread_t *thread, void *data)
{
    applier_t *a = data;
    yk_store_t *store;
    const char *words;
    apr_pool_t *p;

    apr_pool_create(&p, NULL);
    a->rv = yk_store_open(&store, server_params("contract", p), p);
    if (a->rv == APR_SUCCESS) {
        a->rv = yk_setup_schema(store, &words, server_schema(p), p);
    }
    apr_pool_destroy(p);
    mysql_thread_end();
    return NULL;
}

START_TEST(two_hosts_may_apply_the_schema_at_once)
{
    applier_t a[4];
    int round, i;

    for (round = 0; round < 3; round++) {
        server_database("contract");
        for (i = 0; i < 4; i++) {
            ck_ok(apr_thread_create(&a[i].thread, NULL, apply, &a[i], pool));
        }
        for (i = 0; i < 4; i++) {
            apr_status_t rv;
            ck_ok(apr_thread_join(&rv, a[i].thread));
            ck_ok(a[i].rv);
        }
        ck_assert_int_eq(rows("schema_version"), 6);
        ck_assert_int_eq(rows("tenant"), 1);
        ck_assert_int_eq(rows("lock_anchor"), 1);
    }
}
END_TEST

START_TEST(a_table_that_is_not_innodb_is_refused)
{
    yk_store_t *store = book_make();
    MYSQL *line = book_line();
    const char *why = NULL;

    ck_assert_msg(yk_store_probe(store, &why, pool) == APR_SUCCESS, "%s", why);
    server_run(line, "ALTER TABLE yoyaku_slot_place ENGINE=MyISAM");
    ck_assert_int_eq(yk_store_probe(store, &why, pool), APR_ENOTIMPL);
    ck_assert_str_eq(why, "The table yoyaku_slot_place is of the engine "
                          "MyISAM; it must be InnoDB, or locks do not lock.");
    ck_assert_int_eq(yk_setup_schema(store, &say, server_schema(pool), pool),
                     APR_ENOTIMPL);
    server_run(line, "DROP TABLE yoyaku_slot_place");
    ck_assert_int_eq(yk_store_probe(store, &why, pool), APR_ENOTIMPL);
    ck_assert_str_eq(why, "The table yoyaku_slot_place is missing: run "
                          "yoyakuctl schema.");
}
END_TEST

START_TEST(a_read_only_server_or_wrong_session_is_not_fit)
{
    yk_store_t *store = book_make();
    MYSQL *line = book_line();
    const char *why = NULL;

    server_run(line, "SET GLOBAL read_only=1");
    ck_assert_int_eq(yk_store_probe(store, &why, pool), APR_ENOTIMPL);
    ck_assert_ptr_nonnull(strstr(why, "read only"));
    server_run(line, "SET GLOBAL read_only=0");
    ck_ok(yk_store_probe(store, &why, pool));
    server_run(line, "DELETE FROM yoyaku_schema_version WHERE version=6");
    ck_assert_int_eq(yk_store_probe(store, &why, pool), APR_ENOTIMPL);
    ck_assert_ptr_nonnull(strstr(why, "version 5"));
}
END_TEST

/* Replaces the second line's look at the locked row by one that locks
 * nothing, as an engine would that takes FOR UPDATE for decoration. */
static const char *unlocking(void *baton, const char *sql, apr_pool_t *p)
{
    int *set = baton;

    if (!*set && strstr(sql, "FOR UPDATE") != NULL) {
        *set = 1;
        return "ROLLBACK;BEGIN;SELECT version FROM yoyaku_lock_anchor WHERE "
               "kind=0;SELECT 1 INTO @x";
    }
    return sql;
}

START_TEST(locks_that_do_not_lock_are_noticed)
{
    yk_store_t *store = book_make();
    const char *why = NULL;
    int set = 0;

    yk_store_watch(store, unlocking, &set);
    ck_assert_int_eq(yk_store_probe(store, &why, pool), APR_ENOTIMPL);
    ck_assert_ptr_nonnull(strstr(why, "row locks do not lock"));
}
END_TEST

START_TEST(a_tenant_is_made_once)
{
    yk_store_t *store = book_make();
    uint32_t a = 0, b = 0;

    ck_ok(yk_setup_tenant(store, &say, &a, "other", pool));
    ck_ok(yk_setup_tenant(store, &say, &b, "other", pool));
    ck_assert_uint_eq(a, b);
    ck_assert_uint_eq(a, 2);
    ck_assert_int_eq(yk_setup_tenant(store, &say, &a, "no spaces", pool),
                     APR_EINVAL);
    ck_assert_int_eq(yk_store_tenant(store, &a, "nobody"), APR_NOTFOUND);
}
END_TEST

START_TEST(a_hall_comes_back_as_it_was_drawn)
{
    yk_store_t *store = book_make();
    yk_hall_t *hall, *read;
    uint64_t id = 0, again = 0;
    uint32_t i;

    ck_ok(yk_hall_generate(&hall, 3, 41, pool));
    hall->name = "H\303\266lle";
    hall->places[5].x = 0.1 + 0.2;
    hall->places[5].y = -1e-300;
    ck_ok(yk_setup_hall(store, &say, &id, 1, hall, NULL, NULL, pool));
    ck_ok(yk_setup_hall(store, &say, &again, 1, hall, NULL, NULL, pool));
    ck_assert_uint_eq(id, again);
    ck_assert_int_eq(rows("hall"), 1);
    ck_ok(yk_store_hall(store, &read, id, pool));
    ck_assert_str_eq(read->name, hall->name);
    ck_assert_uint_eq(read->nplaces, 123);
    ck_assert_mem_eq(&read->digest, &hall->digest, sizeof(hall->digest));
    for (i = 0; i < hall->nplaces; i++) {
        ck_assert_str_eq(read->places[i].guid, hall->places[i].guid);
        ck_assert_str_eq(read->places[i].row, hall->places[i].row);
        ck_assert_str_eq(read->places[i].seat, hall->places[i].seat);
        ck_assert_str_eq(read->places[i].grade, hall->places[i].grade);
        ck_assert(read->places[i].x == hall->places[i].x);
        ck_assert(read->places[i].y == hall->places[i].y);
        ck_assert_int_eq(read->places[i].joined, hall->places[i].joined);
    }
    hall->digest.bytes[0] ^= 1;
    ck_ok(yk_setup_hall(store, &say, &again, 1, hall, NULL, NULL, pool));
    ck_assert_uint_ne(id, again);
    ck_ok(yk_store_hall(store, &read, again, pool));
    ck_assert_uint_eq(read->version, 2);
}
END_TEST

START_TEST(a_hall_is_there_whole_or_not_at_all)
{
    yk_store_t *store = book_make();
    yk_hall_t *hall;
    uint64_t id = 0;

    ck_ok(yk_hall_generate(&hall, 1, 1500, pool));
    hall->name = "twice";
    hall->places[1400].guid = hall->places[3].guid;
    ck_assert_int_ne(yk_setup_hall(store, &say, &id, 1, hall, NULL, NULL, pool),
                     APR_SUCCESS);
    ck_assert_int_eq(rows("hall"), 0);
    ck_assert_int_eq(rows("place"), 0);
}
END_TEST

START_TEST(eighty_thousand_places_take_seconds)
{
    yk_store_t *store = book_make();
    apr_time_t began = apr_time_now();
    MYSQL *line = book_line();
    uint64_t slot_id;

    book_hall(store, "arena", 40, 2000);
    slot_id = book_slot(store, "big", "arena", YK_MODE_PLACED);
    ck_assert_int_lt(apr_time_sec(apr_time_now() - began), 30);
    ck_assert_int_eq(
        server_number(
            line,
            apr_psprintf(pool,
                         "SELECT COUNT(*) FROM "
                         "yoyaku_slot_place WHERE slot_id=%" APR_UINT64_T_FMT
                         " AND state=0",
                         slot_id)),
        80000);
}
END_TEST

START_TEST(a_slot_is_added_once_and_some_of_it_changes)
{
    yk_store_t *store = book_make();
    yk_setup_slot_t said;
    yk_setup_area_t areas[3];
    yk_slot_t *slot;
    uint64_t version;

    book_hall(store, "house", 2, 10);
    memset(&said, 0, sizeof(said));
    memset(areas, 0, sizeof(areas));
    said.key = "hamlet-24";
    said.title = "Hamlet";
    said.resource = "hamlet";
    said.hall = "house";
    said.nareas = 2;
    said.areas = areas;
    areas[0].name = server_text(book_line(),
                                "SELECT name FROM yoyaku_section"
                                " WHERE section_no=1",
                                pool);
    areas[0].mode = YK_MODE_ASSIGNED;
    areas[1].name = "Standing";
    areas[1].mode = YK_MODE_POOLED;
    areas[1].max = 50;
    ck_ok(yk_setup_slot(store, &say, 1, &said, pool));
    ck_ok(yk_store_slot(store, &slot, 1, "hamlet-24", pool));
    version = slot->version;
    ck_assert_uint_eq(slot->nareas, 3);
    ck_assert_int_eq(slot->areas[0].mode, YK_MODE_PLACED);
    ck_assert_int_eq(slot->areas[0].max, 10);
    ck_assert_int_eq(slot->areas[1].mode, YK_MODE_ASSIGNED);
    ck_assert_int_eq(slot->areas[2].mode, YK_MODE_POOLED);
    ck_assert_int_eq(slot->areas[2].max, 50);
    ck_assert_int_eq(slot->state, YK_SLOT_CLOSED);
    ck_assert_str_eq(server_text(book_line(),
                                 "SELECT GROUP_CONCAT(no,':',used,':',max,':',"
                                 "COALESCE(HEX(map),'-') ORDER BY no)"
                                 " FROM yoyaku_lock_anchor WHERE kind=2",
                                 pool),
                     "1:0:10:FF03,2:0:50:-");

    ck_ok(yk_setup_slot(store, &say, 1, &said, pool));
    ck_assert_ptr_nonnull(strstr(say, "unchanged"));
    ck_ok(yk_store_slot(store, &slot, 1, "hamlet-24", pool));
    ck_assert_uint_eq(slot->version, version);

    said.title = "Hamlet, Prince";
    said.series = "autumn";
    said.starts = 5000000;
    ck_ok(yk_setup_slot(store, &say, 1, &said, pool));
    ck_ok(yk_store_slot(store, &slot, 1, "hamlet-24", pool));
    ck_assert_uint_eq(slot->version, version + 1);
    ck_assert_str_eq(slot->series, "autumn");
    ck_assert_int_eq(slot->starts, 5000000);

    areas[1].max = 60;
    ck_assert_int_eq(yk_setup_slot(store, &say, 1, &said, pool), APR_EINVAL);
    areas[1].max = 50;
    said.resource = "macbeth";
    ck_assert_int_eq(yk_setup_slot(store, &say, 1, &said, pool), APR_EINVAL);
    said.resource = "hamlet";
    said.hall = "other";
    ck_assert_int_eq(yk_setup_slot(store, &say, 1, &said, pool), APR_EINVAL);
    said.key = "bad key";
    ck_assert_int_eq(yk_setup_slot(store, &say, 1, &said, pool), APR_EINVAL);
}
END_TEST

START_TEST(a_series_is_a_tag_of_the_resource)
{
    yk_store_t *store = book_make();
    yk_setup_slot_t said;
    yk_setup_area_t area = {"Pool", YK_MODE_POOLED, 5};
    yk_slot_t *slot;

    memset(&said, 0, sizeof(said));
    said.nareas = 1;
    said.areas = &area;
    said.resource = "hamlet";
    said.key = "one";
    ck_ok(yk_setup_slot(store, &say, 1, &said, pool));
    said.key = "two";
    said.series = "autumn";
    ck_ok(yk_setup_slot(store, &say, 1, &said, pool));
    said.key = "three";
    said.series = NULL;
    ck_ok(yk_setup_slot(store, &say, 1, &said, pool));
    ck_ok(yk_store_slot(store, &slot, 1, "one", pool));
    ck_assert_str_eq(slot->series, "autumn");
    ck_assert_uint_eq(slot->version, 2);
    ck_ok(yk_store_slot(store, &slot, 1, "three", pool));
    ck_assert_str_eq(slot->series, "autumn");
}
END_TEST

/* In a house sold place by place, and in one where the house seats people. */
START_TEST(a_place_kept_from_sale_is_so_in_row_map_and_journal)
{
    yk_store_t *store = book_make();
    MYSQL *line = book_line();
    const char *guid;

    book_hall(store, "house", 1, 12);
    book_slot(store, "placed", "house", YK_MODE_PLACED);
    guid = server_text(line, "SELECT guid FROM yoyaku_place WHERE place_no=9",
                       pool);
    ck_ok(yk_setup_place(store, &say, 1, "placed", guid, 0, pool));
    ck_ok(yk_setup_place(store, &say, 1, "placed", guid, 0, pool));
    ck_assert_ptr_nonnull(strstr(say, "already"));
    ck_assert_str_eq(server_text(line,
                                 "SELECT CONCAT(place_no,':',version) FROM"
                                 " yoyaku_slot_place WHERE state=3",
                                 pool),
                     "9:2");
    ck_assert_str_eq(server_text(line,
                                 "SELECT `change` FROM yoyaku_journal WHERE"
                                 " order_id=0",
                                 pool),
                     "{\"until\":0,\"places\":[[9,3,2]],\"counts\":[]}");
    ck_ok(yk_setup_place(store, &say, 1, "placed", guid, 1, pool));
    server_run(line, "UPDATE yoyaku_slot_place SET state=2,order_id=7 WHERE"
                     " place_no=9");
    ck_assert_int_eq(yk_setup_place(store, &say, 1, "placed", guid, 0, pool),
                     APR_EINVAL);
    ck_assert_ptr_nonnull(strstr(say, "booked"));
    ck_assert_int_eq(yk_setup_place(store, &say, 1, "placed", "?", 0, pool),
                     APR_NOTFOUND);

    book_slot(store, "assigned", "house", YK_MODE_ASSIGNED);
    ck_ok(yk_setup_place(store, &say, 1, "assigned", guid, 0, pool));
    ck_assert_str_eq(server_text(line,
                                 "SELECT CONCAT(HEX(map),':',version) FROM"
                                 " yoyaku_lock_anchor WHERE kind=2",
                                 pool),
                     "FF0D:2");
    ck_ok(yk_setup_place(store, &say, 1, "assigned", guid, 1, pool));
    ck_assert_str_eq(server_text(line,
                                 "SELECT HEX(map) FROM yoyaku_lock_anchor"
                                 " WHERE kind=2",
                                 pool),
                     "FF0F");
}
END_TEST

TCase *setup_case(void)
{
    TCase *tc = tcase_create("setup");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, pool_make, pool_end);
    tcase_add_test(tc, the_schema_can_be_applied_again);
    tcase_add_test(tc, two_hosts_may_apply_the_schema_at_once);
    tcase_add_test(tc, a_table_that_is_not_innodb_is_refused);
    tcase_add_test(tc, a_read_only_server_or_wrong_session_is_not_fit);
    tcase_add_test(tc, locks_that_do_not_lock_are_noticed);
    tcase_add_test(tc, a_tenant_is_made_once);
    tcase_add_test(tc, a_hall_comes_back_as_it_was_drawn);
    tcase_add_test(tc, a_hall_is_there_whole_or_not_at_all);
    tcase_add_test(tc, eighty_thousand_places_take_seconds);
    tcase_add_test(tc, a_slot_is_added_once_and_some_of_it_changes);
    tcase_add_test(tc, a_series_is_a_tag_of_the_resource);
    tcase_add_test(tc, a_place_kept_from_sale_is_so_in_row_map_and_journal);
    return tc;
}
