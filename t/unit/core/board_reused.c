/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../mod_yoyaku/core/board_memory.h"
#include "../memcached.h"
#include "board.h"

#include <apr_strings.h>

/*
 * While somebody reads the book for a slot its board gives way, and the entry
 * becomes another slot's: what he does afterwards is his own slot's still.
 */

#define ONE 7
#define OTHER 8

static memcached_t server;
static yk_cache_t *cache;
static yk_board_ref_t ref;
static const char *other; /* a key that lands in the same entry */

static void cache_start(void)
{
    memcached_start(&server, board_pool);
    ck_assert_int_eq(yk_cache_open(&cache, server.servers,
                                   yk_boards_cache_shared(board_boards),
                                   board_pool),
                     APR_SUCCESS);
    yk_boards_cache(board_boards, cache);
}

static void setup(void)
{
    const yk_slot_t *slot;

    board_setup();
    cache_start();
    slot = board_slot("one", ONE, 10);
    ref = board_make(slot);
    other = NULL;
    for (int i = 0; other == NULL && i < 100000; i++) {
        const char *key = apr_psprintf(board_pool, "other-%d", i);
        yk_board_ref_t found;

        yk_board_drop(board_boards, &ref);
        found = board_make(board_slot(key, OTHER, 10));
        if (found.entry == ref.entry) {
            other = key;
        }
        yk_board_drop(board_boards, &found);
        ref = board_make(slot);
    }
    ck_assert_ptr_nonnull(other);
}

static void teardown(void)
{
    memcached_stop(&server);
    board_teardown();
}

/* Read once, a while ago: the journal tells what happened since. */
static void age(entry_t *e)
{
    atomic_store(&e->is_read, 1);
    e->whole_us = yk_state_now();
    atomic_store(&e->read_us, yk_state_now() - 2 * YK_BOARD_READ);
}

static int is_flying(uint64_t slot_id)
{
    apr_status_t rv =
        yk_cache_add(cache, YK_CACHE_FLIGHT, slot_id, "test", 4, 60);

    ck_assert(rv == APR_SUCCESS || rv == APR_EEXIST);
    return rv == APR_EEXIST;
}

/* In the midst of the reading; then the book is out of reach. */
static apr_status_t open_late(void *baton, yk_store_t **store)
{
    yk_board_ref_t made;

    ck_assert_int_eq(is_flying(ONE), 1);
    yk_board_drop(board_boards, &ref);
    made = board_make(board_slot(other, OTHER, 10));
    ck_assert_uint_eq(made.entry, ref.entry);
    ck_assert_int_eq(is_flying(OTHER), 0); /* and from now on it is */
    return APR_ECONNRESET;
}

static apr_status_t no_slot(void *baton, const yk_slot_t **slot, int fresh)
{
    return APR_NOTFOUND;
}

/* The slot's board is due, and its entry becomes another's while it is read. */
static const entry_t *read_late(void)
{
    yk_board_source_t source = {NULL, open_late, no_slot};
    entry_t *e = &board_boards->entries[ref.entry];
    yk_board_ref_t found;
    int old;

    age(e);
    yk_board_fresh(board_boards, &found, &old, yk_board_id("db", "t", "one"),
                   &source, board_pool);
    return e;
}

START_TEST(a_reading_ends_the_flight_it_began_and_no_others)
{
    read_late();
    ck_assert_int_eq(is_flying(OTHER), 1);
    ck_assert_int_eq(is_flying(ONE), 0);
}
END_TEST

START_TEST(a_reading_that_failed_has_not_failed_for_another_slot)
{
    ck_assert_int_eq(atomic_load(&read_late()->failed_us), 0);
}
END_TEST

Suite *board_reused_suite(void)
{
    Suite *suite = suite_create("board_reused");
    TCase *tc = tcase_create("reused");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_reading_ends_the_flight_it_began_and_no_others);
    tcase_add_test(tc, a_reading_that_failed_has_not_failed_for_another_slot);
    suite_add_tcase(suite, tc);
    return suite;
}
