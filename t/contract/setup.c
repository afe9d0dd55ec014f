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
        ck_assert_int_eq(rows("schema_version"), 4);
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
    server_run(line, "DELETE FROM yoyaku_schema_version WHERE version=4");
    ck_assert_int_eq(yk_store_probe(store, &why, pool), APR_ENOTIMPL);
    ck_assert_ptr_nonnull(strstr(why, "version 3"));
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

static apr_status_t price(yk_store_t *store, const char *tariff, int64_t amount,
                          int64_t quota)
{
    return yk_setup_price(store, &say, 1, "s", NULL, NULL, tariff, amount,
                          "EUR", quota, pool);
}

START_TEST(a_quota_starts_from_the_lines_that_live)
{
    yk_store_t *store = book_make();
    MYSQL *line = book_line();
    uint64_t slot_id = book_slot(store, "s", NULL, YK_MODE_POOLED);
    yk_slot_t *slot;

    ck_ok(price(store, "adult", 900, -1));
    ck_ok(price(store, "child", 500, 10));
    ck_ok(price(store, "adult", 900, -1));
    ck_assert_ptr_nonnull(strstr(say, "unchanged"));
    ck_assert_str_eq(server_text(line,
                                 "SELECT GROUP_CONCAT(no,':',used,':',max)"
                                 " FROM yoyaku_lock_anchor WHERE kind=3",
                                 pool),
                     "2:0:10");
    server_run(line, apr_psprintf(pool,
                                  "INSERT INTO yoyaku_booking VALUES"
                                  "(1,1,1,'',1,%" APR_UINT64_T_FMT
                                  ",0,4294967295,3,1,900,'EUR','adult',''),"
                                  "(1,2,1,'',0,%" APR_UINT64_T_FMT
                                  ",0,4294967295,5,1,900,'EUR','adult',''),"
                                  "(2,1,1,'',1,%" APR_UINT64_T_FMT
                                  ",0,4294967295,4,1,900,'EUR','adult',''),"
                                  "(2,2,1,'',1,%" APR_UINT64_T_FMT
                                  ",0,4294967295,9,2,500,'EUR','child','')",
                                  slot_id, slot_id, slot_id, slot_id));
    ck_ok(price(store, "adult", 950, 20));
    ck_assert_int_eq(server_number(line, "SELECT used FROM yoyaku_lock_anchor"
                                         " WHERE kind=3 AND no=1"),
                     7);
    ck_assert_int_eq(server_number(line, "SELECT max FROM yoyaku_lock_anchor"
                                         " WHERE kind=3 AND no=1"),
                     20);
    ck_ok(yk_store_slot(store, &slot, 1, "s", pool));
    ck_assert_uint_eq(slot->nprices, 2);
    ck_assert_int_eq(slot->prices[0].quota, 20);
    ck_assert_int_eq(slot->prices[0].counted, 1);
    ck_assert_int_eq(slot->prices[0].amount, 950);

    ck_ok(price(store, "adult", 950, 3));
    ck_assert_int_eq(server_number(line, "SELECT max-used FROM "
                                         "yoyaku_lock_anchor WHERE kind=3"
                                         " AND no=1"),
                     -4);
    ck_ok(price(store, "adult", 950, -1));
    ck_assert_int_eq(server_number(line, "SELECT used FROM yoyaku_lock_anchor"
                                         " WHERE kind=3 AND no=1 AND max=-1"),
                     7);
    ck_ok(price(store, "adult", 950, 30));
    ck_assert_int_eq(server_number(line, "SELECT used FROM yoyaku_lock_anchor"
                                         " WHERE kind=3 AND no=1 AND max=30"),
                     7);
    ck_assert_int_eq(yk_setup_price(store, &say, 1, "s", "gold", NULL, "x", 1,
                                    "EUR", -1, pool),
                     APR_EINVAL);
    ck_assert_int_eq(yk_setup_price(store, &say, 1, "s", NULL, "Nowhere", "x",
                                    1, "EUR", -1, pool),
                     APR_EINVAL);
    ck_assert_int_eq(yk_setup_price(store, &say, 1, "t", NULL, NULL, "x", 1,
                                    "EUR", -1, pool),
                     APR_NOTFOUND);
    ck_assert_int_eq(yk_setup_price(store, &say, 1, "s", NULL, NULL, "x", 1,
                                    "euro", -1, pool),
                     APR_EINVAL);
}
END_TEST

typedef struct setter_t {
    apr_thread_t *thread;
    apr_status_t rv;
    volatile int done;
    apr_status_t (*set)(yk_store_t *store, apr_pool_t *p);
} setter_t;

static void *APR_THREAD_FUNC set_it(apr_thread_t *thread, void *data)
{
    setter_t *s = data;
    yk_store_t *store;
    apr_pool_t *p;

    apr_pool_create(&p, NULL);
    s->rv = yk_store_open(&store, server_params("contract", p), p);
    if (s->rv == APR_SUCCESS) {
        s->rv = s->set(store, p);
    }
    apr_pool_destroy(p);
    mysql_thread_end();
    s->done = 1;
    return NULL;
}

/* Wait for a sign, ten seconds at most. */
static void until(MYSQL *line, const char *sql, long long number)
{
    int i;

    for (i = 0; i < 1000; i++) {
        if (server_number(line, sql) == number) {
            return;
        }
        apr_sleep(10000);
    }
    ck_abort_msg("never: %s", sql);
}

static apr_status_t set_quota(yk_store_t *store, apr_pool_t *p)
{
    const char *words;
    return yk_setup_price(store, &words, 1, "s", NULL, NULL, "adult", 900,
                          "EUR", 20, p);
}

/* A hold that read the old rule: holds the pool's anchor, does not know that
 * the tariff is counted, and commits late. */
START_TEST(a_quota_waits_for_holds_that_do_not_count)
{
    yk_store_t *store = book_make();
    MYSQL *line = book_line(), *holder = book_line();
    uint64_t slot_id = book_slot(store, "s", NULL, YK_MODE_POOLED);
    setter_t s;
    apr_status_t rv;

    ck_ok(price(store, "adult", 900, -1));
    server_run(holder, "BEGIN; SELECT * FROM yoyaku_lock_anchor WHERE kind=2"
                       " FOR UPDATE");
    memset(&s, 0, sizeof(s));
    s.set = set_quota;
    ck_ok(apr_thread_create(&s.thread, NULL, set_it, &s, pool));
    until(line, "SELECT COUNT(*) FROM yoyaku_price WHERE counted=1", 1);
    ck_assert_int_eq(server_number(line, "SELECT max FROM yoyaku_lock_anchor"
                                         " WHERE kind=3"),
                     -1);
    /* meanwhile an older, uncounted line may be given back: no error */
    server_run(line, "UPDATE yoyaku_lock_anchor SET used=used-1 WHERE kind=3");
    apr_sleep(200000);
    ck_assert_int_eq(s.done, 0);
    server_run(holder,
               apr_psprintf(pool,
                            "INSERT INTO yoyaku_booking VALUES"
                            "(1,1,1,'',1,%" APR_UINT64_T_FMT
                            ",0,4294967295,6,1,900,'EUR','adult','');COMMIT",
                            slot_id));
    ck_ok(apr_thread_join(&rv, s.thread));
    ck_ok(s.rv);
    ck_assert_int_eq(server_number(line, "SELECT used FROM yoyaku_lock_anchor"
                                         " WHERE kind=3 AND max=20"),
                     6);
}
END_TEST

static apr_status_t close_slot(yk_store_t *store, apr_pool_t *p)
{
    const char *words;
    return yk_setup_slot_state(store, &words, 1, "s", YK_SLOT_CLOSED, p);
}

START_TEST(a_slot_is_closed_when_no_hold_goes_on)
{
    yk_store_t *store = book_make();
    MYSQL *line = book_line(), *holder = book_line();
    setter_t s;
    apr_status_t rv;

    book_hall(store, "house", 2, 10);
    book_slot(store, "s", "house", YK_MODE_PLACED);
    server_run(holder, "BEGIN; SELECT * FROM yoyaku_slot_place WHERE"
                       " place_no=19 FOR UPDATE");
    memset(&s, 0, sizeof(s));
    s.set = close_slot;
    ck_ok(apr_thread_create(&s.thread, NULL, set_it, &s, pool));
    until(line, "SELECT state FROM yoyaku_slot", 0);
    apr_sleep(200000);
    ck_assert_int_eq(s.done, 0);
    server_run(holder, "ROLLBACK");
    ck_ok(apr_thread_join(&rv, s.thread));
    ck_ok(s.rv);
}
END_TEST

static apr_status_t set_limit(yk_store_t *store, apr_pool_t *p)
{
    const char *words;
    return yk_setup_limit(store, &words, 1, YK_PER_BOOKER, YK_OVER_ALL, "",
                          YK_COUNT_PLACES, 4, p);
}

START_TEST(a_bookers_limit_waits_for_holds_that_do_not_count)
{
    yk_store_t *store = book_make();
    MYSQL *line = book_line(), *holder = book_line();
    yk_version_t version;
    uint64_t slot_id = book_slot(store, "s", NULL, YK_MODE_POOLED);
    uint64_t before;
    yk_slot_t *slot;
    setter_t s;
    apr_status_t rv;

    ck_ok(yk_store_slot_version(store, &version, slot_id));
    before = version.tenant_version;
    server_run(holder, "BEGIN; SELECT * FROM yoyaku_lock_anchor WHERE kind=2"
                       " FOR UPDATE");
    memset(&s, 0, sizeof(s));
    s.set = set_limit;
    ck_ok(apr_thread_create(&s.thread, NULL, set_it, &s, pool));
    until(line, "SELECT COUNT(*) FROM yoyaku_limit", 1);
    ck_assert_int_eq(server_number(line, "SELECT in_force FROM yoyaku_limit"),
                     0);
    ck_assert_int_eq(server_number(line, "SELECT COUNT(*) FROM "
                                         "yoyaku_lock_anchor WHERE kind=1"),
                     65536);
    ck_ok(yk_store_slot(store, &slot, 1, "s", pool));
    ck_assert_uint_eq(slot->nlimits, 1);
    ck_assert_int_eq(slot->limits[0].in_force, 0);
    apr_sleep(200000);
    ck_assert_int_eq(s.done, 0);
    server_run(holder, "ROLLBACK");
    ck_ok(apr_thread_join(&rv, s.thread));
    ck_ok(s.rv);
    ck_ok(yk_store_slot(store, &slot, 1, "s", pool));
    ck_assert_int_eq(slot->limits[0].in_force, 1);
    ck_assert_uint_eq(slot->tenant_version, before + 2);

    ck_ok(yk_setup_limit(store, &say, 1, YK_PER_BOOKER, YK_OVER_ALL, NULL,
                         YK_COUNT_PLACES, 4, pool));
    ck_assert_ptr_nonnull(strstr(say, "unchanged"));
    ck_ok(yk_setup_limit(store, &say, 1, YK_PER_BOOKER, YK_OVER_ALL, NULL,
                         YK_COUNT_PLACES, 2, pool));
    ck_ok(yk_store_slot(store, &slot, 1, "s", pool));
    ck_assert_int_eq(slot->limits[0].max, 2);
    ck_assert_uint_eq(slot->nlimits, 1);
}
END_TEST

START_TEST(a_slot_sees_the_limits_that_reach_it)
{
    yk_store_t *store = book_make();
    yk_slot_t *slot;
    uint64_t version;

    book_slot(store, "s", NULL, YK_MODE_POOLED);
    book_slot(store, "t", NULL, YK_MODE_POOLED);
    ck_ok(yk_store_slot(store, &slot, 1, "s", pool));
    version = slot->version;
    ck_ok(yk_setup_limit(store, &say, 1, YK_PER_ORDER, YK_OVER_SLOT, "s",
                         YK_COUNT_PLACES, 4, pool));
    ck_ok(yk_setup_limit(store, &say, 1, YK_PER_ORDER, YK_OVER_RESOURCE, "r",
                         YK_COUNT_SLOTS, 4, pool));
    ck_ok(yk_setup_limit(store, &say, 1, YK_PER_ORDER, YK_OVER_ALL, NULL,
                         YK_COUNT_PLACES, 6, pool));
    ck_ok(yk_store_slot(store, &slot, 1, "s", pool));
    ck_assert_uint_eq(slot->nlimits, 2);
    ck_assert_uint_eq(slot->version, version + 1);
    ck_ok(yk_store_slot(store, &slot, 1, "t", pool));
    ck_assert_uint_eq(slot->nlimits, 1);
    ck_assert_int_eq(slot->limits[0].over, YK_OVER_ALL);
    ck_assert_int_eq(yk_setup_limit(store, &say, 1, YK_PER_ORDER, YK_OVER_SLOT,
                                    "u", YK_COUNT_PLACES, 4, pool),
                     APR_NOTFOUND);
    ck_assert_int_eq(yk_setup_limit(store, &say, 1, YK_PER_ORDER, YK_OVER_ALL,
                                    "x", YK_COUNT_PLACES, 4, pool),
                     APR_EINVAL);
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
    tcase_add_test(tc, a_quota_starts_from_the_lines_that_live);
    tcase_add_test(tc, a_quota_waits_for_holds_that_do_not_count);
    tcase_add_test(tc, a_slot_is_closed_when_no_hold_goes_on);
    tcase_add_test(tc, a_bookers_limit_waits_for_holds_that_do_not_count);
    tcase_add_test(tc, a_slot_sees_the_limits_that_reach_it);
    tcase_add_test(tc, a_place_kept_from_sale_is_so_in_row_map_and_journal);
    return tc;
}
