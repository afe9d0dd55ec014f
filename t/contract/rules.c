/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <apr_thread_proc.h>
#include <string.h>
#include "contract.h"

static const char *say;

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

TCase *rules_case(void)
{
    TCase *tc = tcase_create("rules");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, pool_make, pool_end);
    tcase_add_test(tc, a_quota_starts_from_the_lines_that_live);
    tcase_add_test(tc, a_quota_waits_for_holds_that_do_not_count);
    tcase_add_test(tc, a_slot_is_closed_when_no_hold_goes_on);
    tcase_add_test(tc, a_bookers_limit_waits_for_holds_that_do_not_count);
    tcase_add_test(tc, a_slot_sees_the_limits_that_reach_it);
    return tc;
}
