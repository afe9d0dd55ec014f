/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../mod_yoyaku/core/lane_queue.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core.h"

/*
 * A crowd at one lane, and who leads takes a batch: how many batches are begun
 * between somebody's arrival and his own, that one counted. Whoever is served
 * comes back, at once or after a while.
 */

#define CROWD 160
#define LANE 3
#define BATCHES 400
/* All of the crowd stand before him: so many batches, one place of each being
 * the leader's own. */
#define FAIR ((CROWD + YK_LANE_BATCH - 2) / (YK_LANE_BATCH - 1))

static yk_lanes_t *lanes;
static yk_lane_host_t host;
static uint32_t begun;        /* batches */
static uint32_t came[CROWD];  /* when so many were begun */
static uint32_t longest[2];   /* of who is patient, of who is urgent */
static int is_out[CROWD];     /* served, and not back yet */
static int comes_back[CROWD]; /* at once, whoever else is there */

static void setup(void)
{
    lanes = mmap(NULL, sizeof(*lanes), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(lanes != MAP_FAILED);
    yk_lanes_kind.fresh(lanes);
    memset(&host, 0, sizeof(host));
    host.lanes = lanes;
    host.workers = calloc(1, sizeof(*host.workers));
    host.identity = yk_worker_identity((uint32_t)getpid());
    begun = longest[0] = longest[1] = 0;
    memset(comes_back, 0, sizeof(comes_back));
    srand(1);
}

static void teardown(void)
{
    munmap(lanes, sizeof(*lanes));
    free(host.workers);
}

static yk_lane_word_e state_of(uint32_t number)
{
    return yk_lane_word_state(atomic_load(&lanes->record[number].word));
}

static void arrive(uint32_t number)
{
    came[number] = begun;
    is_out[number] = 0;
    yk_lane_append(&host, LANE, number);
}

/* Everybody takes the record of his number and stands in the queue. */
static void crowd_arrives(uint32_t urgent)
{
    for (uint32_t i = 0; i < CROWD; i++) {
        host.worker = i;
        ck_assert_uint_eq(yk_lane_record_take(&host), i);
        lanes->record[i].urgent = i < urgent;
        lanes->record[i].has_line = rand() % 10 == 0;
        arrive(i);
    }
    ck_assert_int_eq(yk_lane_lead(&host, LANE, 0), 1);
}

/* @return who leads */
static uint32_t batch(uint32_t leads)
{
    uint32_t numbers[YK_LANE_BATCH], words[YK_LANE_BATCH], last = 0;
    uint32_t n = yk_lane_gather(&host, LANE, leads, numbers, words);

    begun++;
    ck_assert_uint_le(n, YK_LANE_BATCH);
    for (uint32_t i = 0; i < n; i++) {
        const yk_lane_record_t *record = &lanes->record[numbers[i]];
        uint32_t waited = begun - came[numbers[i]];

        ck_assert_int_eq(state_of(numbers[i]), YK_LANE_TAKEN);
        if (waited > longest[record->urgent]) {
            longest[record->urgent] = waited;
        }
        if (record->urgent == 0) {
            ck_assert_uint_gt(record->arrival, last);
            last = (uint32_t)record->arrival;
        }
    }
    yk_lane_hand_on(&host, LANE);
    for (uint32_t i = 0; i < n; i++) {
        yk_lane_word_turn(&lanes->record[numbers[i]], words[i],
                          YK_LANE_WRITING);
        is_out[numbers[i]] = 1;
    }
    return lanes->lane[LANE].leads;
}

static void some_come_back(void)
{
    uint32_t first = (uint32_t)rand() % CROWD;

    for (uint32_t i = 0; i < CROWD; i++) {
        uint32_t number = (first + i * 37) % CROWD;

        if (is_out[number] && (comes_back[number] || rand() % 2)) {
            arrive(number);
        }
    }
}

static void day(void)
{
    uint32_t leads = 0;

    for (uint32_t i = 0; i < BATCHES; i++) {
        leads = batch(leads);
        some_come_back();
        if (leads == YK_LANE_NONE) {
            leads = lanes->lane[LANE].head;
            ck_assert_int_eq(yk_lane_lead(&host, LANE, leads), 1);
        }
    }
}

START_TEST(nobody_waits_longer_than_the_crowd_before_him)
{
    crowd_arrives(0);
    day();
    ck_assert_uint_le(longest[0], FAIR);
}
END_TEST

START_TEST(urgent_wishes_go_first_and_yet_keep_nobody_out)
{
    uint32_t urgent = CROWD - 40;

    crowd_arrives(urgent);
    for (uint32_t i = 0; i < urgent; i++) {
        comes_back[i] = 1; /* a batch full of them is always there */
    }
    day();
    /* forty others, a quarter of a batch theirs */
    ck_assert_uint_le(longest[0], 40 / (YK_LANE_BATCH / 4) + 1);
    ck_assert_uint_le(longest[1],
                      CROWD / (YK_LANE_BATCH - 1 - YK_LANE_BATCH / 4) + 1);
}
END_TEST

START_TEST(who_was_put_off_is_first_in_the_next_batch)
{
    uint32_t numbers[YK_LANE_BATCH], words[YK_LANE_BATCH], next;

    crowd_arrives(0);
    ck_assert_uint_eq(yk_lane_gather(&host, LANE, 0, numbers, words),
                      YK_LANE_BATCH);
    yk_lane_put_off(&host, LANE, numbers[7], words[7]);
    ck_assert_uint_eq(lanes->record[numbers[7]].was_next, 1);
    next = numbers[7];
    yk_lane_hand_on(&host, LANE);
    yk_lane_gather(&host, LANE, lanes->lane[LANE].leads, numbers, words);
    ck_assert_uint_eq(numbers[0], next);
}
END_TEST

/* By preference one who keeps a connection leads, and takes those before him
 * with him. */
START_TEST(who_has_a_connection_leads)
{
    uint32_t numbers[YK_LANE_BATCH], words[YK_LANE_BATCH];

    crowd_arrives(0);
    for (uint32_t i = 0; i < CROWD; i++) {
        lanes->record[i].has_line = i == 150;
    }
    yk_lane_hand_on(&host, LANE);
    ck_assert_uint_eq(lanes->lane[LANE].leads, 150);
    ck_assert_int_eq(state_of(150), YK_LANE_LEAD);
    ck_assert_uint_eq(yk_lane_gather(&host, LANE, 150, numbers, words),
                      YK_LANE_BATCH);
    ck_assert_uint_eq(numbers[0], 0);
    ck_assert_uint_eq(numbers[YK_LANE_BATCH - 1], 150);
}
END_TEST

/* A process of before may have had the number and the start of one that lives
 * now. */
START_TEST(a_machine_started_anew_has_given_out_no_permit)
{
    for (uint32_t i = 0; i < YK_LANE_PERMITS; i++) {
        atomic_store(&lanes->line_owner[i], host.identity);
    }
    crowd_arrives(0);
    yk_lanes_kind.renew(lanes);
    for (uint32_t i = 0; i < YK_LANE_PERMITS; i++) {
        ck_assert_uint_eq(atomic_load(&lanes->line_owner[i]), 0);
    }
    ck_assert_uint_eq(lanes->lane[LANE].head, YK_LANE_NONE);
    ck_assert_int_eq(state_of(0), YK_LANE_FREE);
}
END_TEST

/* A wish for another database is left for a leader of its own. */
START_TEST(only_wishes_for_ones_own_database_are_taken)
{
    uint32_t numbers[YK_LANE_BATCH], words[YK_LANE_BATCH];

    crowd_arrives(0);
    for (uint32_t i = 0; i < CROWD; i++) {
        lanes->record[i].realm = i % 2;
    }
    ck_assert_uint_eq(yk_lane_gather(&host, LANE, 0, numbers, words),
                      YK_LANE_BATCH);
    for (uint32_t i = 0; i < YK_LANE_BATCH; i++) {
        ck_assert_uint_eq(lanes->record[numbers[i]].realm, 0);
    }
    ck_assert_uint_eq(lanes->lane[LANE].length, CROWD - YK_LANE_BATCH);
}
END_TEST

/* All were killed while they waited, each record in a queue by then, and
 * nobody has a wish for those slots any more. */
START_TEST(the_records_of_the_dead_are_found_in_any_queue)
{
    uint64_t me = host.identity;
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    host.identity = yk_worker_identity((uint32_t)pid);
    for (uint32_t i = 0; i < YK_LANE_RECORDS; i++) {
        uint32_t number = yk_lane_record_take(&host);

        ck_assert_uint_ne(number, YK_LANE_NONE);
        yk_lane_append(&host, number % YK_LANES, number);
    }
    ck_assert_uint_eq(yk_lane_record_take(&host), YK_LANE_NONE);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    host.identity = me;
    for (uint32_t i = 0; i < YK_LANE_RECORDS; i++) {
        ck_assert_uint_ne(yk_lane_record_take(&host), YK_LANE_NONE);
    }
    ck_assert_uint_eq(lanes->lane[LANE].length, 0);
    ck_assert_uint_eq(lanes->lane[LANE].head, YK_LANE_NONE);
}
END_TEST

static uint32_t taken;

static void somebody_takes_one(void)
{
    if (state_of(0) == YK_LANE_FREE) {
        yk_lane_step = NULL;
        taken = yk_lane_record_take(&host);
    }
}

/* It is free the moment its word says so: somebody was waiting for one. */
START_TEST(a_record_of_the_dead_is_not_given_twice)
{
    uint64_t me = host.identity;
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    for (uint32_t i = 0; i < YK_LANE_RECORDS; i++) {
        host.identity = i == 0 ? yk_worker_identity((uint32_t)pid) : me;
        ck_assert_uint_eq(yk_lane_record_take(&host), i);
    }
    yk_lane_append(&host, LANE, 0);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    yk_lane_step = somebody_takes_one;
    yk_lane_hand_on(&host, LANE);
    ck_assert_uint_eq(taken, 0);
    ck_assert_uint_eq(atomic_load(&lanes->record[0].owner), me);
}
END_TEST

/* Whoever was to lead was stopped for long before he looked into the queue:
 * his wish is in another one's batch by now. */
START_TEST(whose_wish_another_has_taken_leads_nothing)
{
    uint32_t numbers[YK_LANE_BATCH], words[YK_LANE_BATCH];
    uint32_t late[YK_LANE_BATCH], late_words[YK_LANE_BATCH];

    crowd_arrives(0);
    ck_assert_uint_eq(yk_lane_gather(&host, LANE, 1, numbers, words),
                      YK_LANE_BATCH);
    ck_assert_uint_eq(numbers[0], 0);
    ck_assert_uint_eq(yk_lane_gather(&host, LANE, 0, late, late_words), 0);
    ck_assert_uint_eq(atomic_load(&lanes->record[0].word), words[0]);
    ck_assert_uint_ne(atomic_load(&lanes->record[0].owner), 0);
    ck_assert_uint_eq(lanes->lane[LANE].length, CROWD - YK_LANE_BATCH);
}
END_TEST

Suite *lane_queue_suite(void)
{
    Suite *suite = suite_create("lane_queue");
    TCase *tcase = tcase_create("queue");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_machine_started_anew_has_given_out_no_permit);
    tcase_add_test(tcase, nobody_waits_longer_than_the_crowd_before_him);
    tcase_add_test(tcase, urgent_wishes_go_first_and_yet_keep_nobody_out);
    tcase_add_test(tcase, who_was_put_off_is_first_in_the_next_batch);
    tcase_add_test(tcase, who_has_a_connection_leads);
    tcase_add_test(tcase, only_wishes_for_ones_own_database_are_taken);
    tcase_add_test(tcase, the_records_of_the_dead_are_found_in_any_queue);
    tcase_add_test(tcase, a_record_of_the_dead_is_not_given_twice);
    tcase_add_test(tcase, whose_wish_another_has_taken_leads_nothing);
    suite_add_tcase(suite, tcase);
    return suite;
}
