/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

#include <apr_strings.h>
#include <apr_time.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Boards among processes: killed and stopped at any moment, crowded out, begun
 * again. Memory is shared; children are forked.
 */

/* Run something in a child of ours. */
static pid_t child_run(void (*what)(const yk_board_ref_t *ref),
                       const yk_board_ref_t *ref)
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        what(ref);
        _exit(0);
    }
    return pid;
}

static void child_end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void change_for_ever(const yk_board_ref_t *ref)
{
    yk_board_answer_t answer;
    apr_pool_t *p;

    apr_pool_create(&p, NULL);
    for (uint64_t version = 2;; version++) {
        board_put(ref, (uint32_t)(version % 800), (int)(version % 4), version);
        yk_board_get(board_boards, ref, &answer, YK_BOARD_JSON, p);
        apr_pool_clear(p);
    }
}

/* Whoever was killed while he wrote leaves a whole board, or none. */
START_TEST(a_killed_writer_leaves_a_whole_board_or_none)
{
    const yk_slot_t *slot = board_slot("s", 7, 40);
    uint64_t generation = 0;
    int thrown_away = 0;

    srand(5);
    for (int round = 0; round < 60; round++) {
        yk_board_ref_t ref = board_make(slot);
        yk_board_answer_t answer;
        pid_t pid = child_run(change_for_ever, &ref);
        apr_status_t rv;

        usleep(500 + (unsigned)rand() % 5000);
        child_end(pid);
        rv = yk_board_apply(board_boards, &ref, NULL, 0, 0);
        if (rv == APR_NOTFOUND) {
            thrown_away++;
            continue;
        }
        ck_assert_int_eq(rv, APR_SUCCESS);
        rv = yk_board_get(board_boards, &ref, &answer, YK_BOARD_JSON,
                          board_pool);
        ck_assert_int_eq(rv, APR_SUCCESS);
        board_content(answer.bytes); /* says whether its counts are right */
        ck_assert_uint_ge(answer.generation, generation);
        generation = answer.generation;
        yk_board_drop(board_boards, &ref);
    }
    /* the lock is held most of the time: some died in it */
    ck_assert_int_gt(thrown_away, 3);
}
END_TEST

START_TEST(generations_never_go_back_over_lives)
{
    const yk_slot_t *slot = board_slot("s", 7, 1);
    yk_board_ref_t ref = board_make(slot);
    uint64_t first, second;

    for (uint64_t version = 2; version < 50; version++) {
        board_put(&ref, 1, (int)(version % 2), version);
    }
    board_json(&ref, NULL, &first);
    yk_board_drop(board_boards, &ref);
    ck_assert_int_eq(yk_board_apply(board_boards, &ref, NULL, 0, 0),
                     APR_NOTFOUND);
    ref = board_make(slot);
    board_put(&ref, 1, YK_PLACE_HELD, 2);
    board_json(&ref, NULL, &second);
    ck_assert_uint_gt(second, first);
}
END_TEST

START_TEST(a_new_start_of_the_machine_forgets_boards_not_generations)
{
    const yk_slot_t *slot = board_slot("s", 7, 1);
    yk_state_kind_t kind;
    yk_boards_t *boards;
    void *memory;
    yk_board_ref_t ref;
    yk_board_change_t change = {1, 0, YK_PLACE_BOOKED, 0, 0, 2};
    yk_board_answer_t before, after;

    yk_boards_kind(&kind, YK_BOARDS_MIN_BYTES);
    yk_boards_memory(&memory, &kind, board_pool);
    yk_boards_attach(&boards, memory, kind.size, board_pool);
    yk_board_make(boards, &ref, 1, slot);
    yk_board_apply(boards, &ref, &change, 1, 77777);
    yk_board_get(boards, &ref, &before, YK_BOARD_JSON, board_pool);
    kind.renew(memory);
    ck_assert_int_eq(yk_board_find(boards, &ref, 1), APR_NOTFOUND);
    yk_board_make(boards, &ref, 1, slot);
    yk_board_apply(boards, &ref, &change, 1, 0);
    yk_board_get(boards, &ref, &after, YK_BOARD_JSON, board_pool);
    ck_assert_uint_eq(before.generation, 77777);
    ck_assert_uint_gt(after.generation, before.generation);
}
END_TEST

static void stop_in_the_lock(const yk_board_ref_t *ref)
{
    /* inside a change of all places, over and over */
    yk_board_change_t changes[800];

    for (uint64_t version = 2;; version++) {
        for (uint32_t i = 0; i < 800; i++) {
            yk_board_change_t change = {
                i, 0, (int)(version % 4), INT64_MAX / 2, 0, version};

            changes[i] = change;
        }
        yk_board_apply(board_boards, ref, changes, 800, 0);
    }
}

/* A stopped owner keeps nobody from what is shown, and for a bounded time
 * from the rest; a change that did not get in is known to be missing. */
START_TEST(a_stopped_writer_holds_nobody_up_for_long)
{
    yk_board_ref_t ref = board_make(board_slot("s", 7, 40));
    int found = 0;

    for (int round = 0; round < 200 && !found; round++) {
        pid_t pid = child_run(stop_in_the_lock, &ref);
        yk_boards_use_t before, after;
        apr_time_t began;

        usleep(1000 + (unsigned)rand() % 1000);
        kill(pid, SIGSTOP);
        waitpid(pid, NULL, WUNTRACED);
        yk_boards_use(board_boards, &before);
        began = apr_time_now();
        if (board_put(&ref, 1, YK_PLACE_BOOKED, UINT64_C(1) << 40) ==
            APR_TIMEUP) {
            found = 1;
            yk_boards_use(board_boards, &after);
            ck_assert_uint_eq(after.missed, before.missed + 1);
        }
        ck_assert_int_lt(apr_time_now() - began, APR_USEC_PER_SEC);
        child_end(pid);
    }
    ck_assert(found);
}
END_TEST

/* Readers copy without a lock: never half of one document, half of another. */
START_TEST(readers_see_whole_documents_while_others_write)
{
    yk_board_ref_t ref = board_make(board_slot("s", 7, 40));
    pid_t pid = child_run(change_for_ever, &ref);
    uint64_t last = 0;

    for (int i = 0; i < 3000; i++) {
        yk_board_answer_t answer;
        apr_pool_t *p;
        apr_status_t rv;

        apr_pool_create(&p, NULL);
        rv = yk_board_get(board_boards, &ref, &answer, YK_BOARD_JSON, p);
        if (rv == APR_SUCCESS) {
            if (i % 20 == 0) {
                board_content(answer.bytes);
            }
            ck_assert_int_eq(answer.bytes[answer.len - 1], '\n');
            ck_assert_uint_ge(answer.generation, last);
            last = answer.generation;
        }
        apr_pool_destroy(p);
    }
    child_end(pid);
    ck_assert_uint_gt(last, 0);
}
END_TEST

/* ---- room ---- */

static void ask_for(int from, int to)
{
    yk_board_ref_t ref;

    for (int i = from; i < to; i++) {
        const char *key = apr_psprintf(board_pool, "crowd-%d", i);

        ck_assert_int_eq(
            yk_board_find(board_boards, &ref, yk_board_id("db", "t", key)),
            APR_SUCCESS);
    }
}

/* Fill the memory with boards of large halls, all of them just asked for.
 * @return how many fitted */
static int crowd(yk_board_ref_t *refs, int most)
{
    for (int i = 0; i < most; i++) {
        const char *key = apr_psprintf(board_pool, "crowd-%d", i);
        const yk_slot_t *slot = board_slot(key, 100 + (uint64_t)i, 400);

        ask_for(0, i);
        if (yk_board_make(board_boards, &refs[i], yk_board_id("db", "t", key),
                          slot) != APR_SUCCESS) {
            return i;
        }
    }
    return most;
}

START_TEST(boards_asked_for_just_now_do_not_give_way)
{
    yk_board_ref_t refs[200];
    yk_boards_use_t use;
    int n = crowd(refs, 200);

    ck_assert_int_gt(n, 5);
    ck_assert_int_lt(n, 200);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(board_put(&refs[i], 0, YK_PLACE_HELD, 2), APR_SUCCESS);
    }
    yk_boards_use(board_boards, &use);
    ck_assert_uint_eq(use.gave_way, 0);
    ck_assert_uint_eq(use.boards, (unsigned)n);
    ck_assert_uint_le(use.used, use.bytes);
}
END_TEST

START_TEST(boards_least_lately_asked_for_give_way)
{
    yk_board_ref_t refs[200];
    int n = crowd(refs, 200);

    /* When one was asked for is known to a tenth of YK_BOARD_BUSY; so that the
     * first is the oldest, all the others are asked for later than that. */
    apr_sleep(YK_BOARD_BUSY + 200000);
    ask_for(1, n);
    board_make(board_slot("new", 7, 400));
    ck_assert_int_eq(board_put(&refs[0], 0, YK_PLACE_HELD, 2), APR_NOTFOUND);
    for (int i = 1; i < n; i++) {
        ck_assert_int_eq(board_put(&refs[i], 0, YK_PLACE_HELD, 2), APR_SUCCESS);
    }
}
END_TEST

START_TEST(a_hall_larger_than_the_memory_has_no_room)
{
    yk_board_ref_t ref;
    const yk_slot_t *slot = board_slot("huge", 7, 10000);
    yk_state_kind_t kind;
    yk_boards_t *boards;
    void *memory;

    yk_boards_kind(&kind, YK_BOARDS_MIN_BYTES);
    yk_boards_memory(&memory, &kind, board_pool);
    yk_boards_attach(&boards, memory, kind.size, board_pool);
    ck_assert_int_eq(yk_board_make(boards, &ref, 1, slot), APR_ENOSPC);
}
END_TEST

/* ---- what a reading leaves ---- */

static int trims;

/* The C library's, which goes through all free memory of the process. */
int malloc_trim(size_t pad)
{
    trims++;
    return 0;
}

static apr_status_t no_book(void *baton, yk_store_t **store)
{
    return APR_ECONNRESET;
}

static apr_status_t same_slot(void *baton, const yk_slot_t **slot, int fresh)
{
    *slot = baton;
    return APR_SUCCESS;
}

/* A first look reads the whole slot; here it comes to nothing at once. */
static void look(yk_slot_t *slot)
{
    yk_board_source_t source = {slot, no_book, same_slot};
    yk_board_ref_t ref;
    int old;

    ck_assert_int_eq(yk_board_fresh(board_boards, &ref, &old,
                                    yk_board_id("db", "t", slot->key), &source,
                                    board_pool),
                     APR_ECONNRESET);
}

START_TEST(a_reading_asks_for_memory_back_when_the_hall_is_large)
{
    trims = 0;
    look(board_slot("small", 7, 100));
    ck_assert_int_eq(trims, 0);
    look(board_slot("large", 8, 400));
    ck_assert_int_eq(trims, 1);
}
END_TEST

/* ---- pages ---- */

static int made;

static apr_status_t page_make(void *baton, const char **json, apr_size_t *len,
                              apr_pool_t *p)
{
    made++;
    *json = apr_psprintf(p, "{\"made\":%d,\"text\":\"%s\"}", made,
                         (const char *)baton);
    *len = strlen(*json);
    return APR_SUCCESS;
}

static apr_status_t page_fail(void *baton, const char **json, apr_size_t *len,
                              apr_pool_t *p)
{
    return APR_ECONNRESET;
}

START_TEST(a_page_is_made_once_while_it_is_good)
{
    yk_page_t page;

    made = 0;
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(yk_page_get(board_boards, &page, 9, APR_USEC_PER_SEC,
                                     page_make, "x", board_pool),
                         APR_SUCCESS);
        ck_assert_int_eq(made, 1);
        ck_assert_str_eq(apr_pstrmemdup(board_pool, page.bytes, page.len),
                         "{\"made\":1,\"text\":\"x\"}");
    }
    apr_sleep(400000);
    yk_page_get(board_boards, &page, 9, 1000, page_make, "y", board_pool);
    ck_assert_int_eq(made, 2);
    /* one that has grown beyond its room finds another */
    apr_sleep(400000);
    yk_page_get(board_boards, &page, 9, 1000, page_make,
                memset(apr_pcalloc(board_pool, 9001), 'z', 9000), board_pool);
    yk_page_get(board_boards, &page, 9, APR_USEC_PER_SEC, page_make, "",
                board_pool);
    ck_assert_int_eq(made, 3);
    ck_assert_uint_gt(page.len, 9000);
}
END_TEST

START_TEST(a_page_that_cannot_be_made_anew_is_shown_as_it_was)
{
    yk_page_t page;

    ck_assert_int_eq(
        yk_page_get(board_boards, &page, 9, 1000, page_fail, NULL, board_pool),
        APR_ECONNRESET);
    made = 0;
    yk_page_get(board_boards, &page, 9, 1000, page_make, "x", board_pool);
    apr_sleep(400000);
    ck_assert_int_eq(
        yk_page_get(board_boards, &page, 9, 1000, page_fail, NULL, board_pool),
        APR_SUCCESS);
    ck_assert_int_eq(memcmp(page.bytes, "{\"made\":1", 9), 0);
}
END_TEST

Suite *board_life_suite(void)
{
    Suite *suite = suite_create("board_life");
    TCase *tc = tcase_create("life");

    tcase_add_checked_fixture(tc, board_setup, board_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_killed_writer_leaves_a_whole_board_or_none);
    tcase_add_test(tc, generations_never_go_back_over_lives);
    tcase_add_test(tc,
                   a_new_start_of_the_machine_forgets_boards_not_generations);
    tcase_add_test(tc, a_stopped_writer_holds_nobody_up_for_long);
    tcase_add_test(tc, readers_see_whole_documents_while_others_write);
    tcase_add_test(tc, boards_asked_for_just_now_do_not_give_way);
    tcase_add_test(tc, boards_least_lately_asked_for_give_way);
    tcase_add_test(tc, a_hall_larger_than_the_memory_has_no_room);
    tcase_add_test(tc, a_reading_asks_for_memory_back_when_the_hall_is_large);
    tcase_add_test(tc, a_page_is_made_once_while_it_is_good);
    tcase_add_test(tc, a_page_that_cannot_be_made_anew_is_shown_as_it_was);
    suite_add_tcase(suite, tc);
    return suite;
}
