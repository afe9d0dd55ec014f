/* SPDX-License-Identifier: Apache-2.0 */
#include "throttle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "yoyaku/throttle.h"

/*
 * The semantics, row by row, on a table of one's own: no lock, no clock, no
 * worker but a list of the dead.
 */

static yk_queue_t q;
static yk_queue_acts_t acts;
static yk_turn_t turn;
static uint32_t rule;
static int dead[64];

static int lives(void *world, uint32_t worker, uint64_t identity, int closely)
{
    return !dead[worker];
}

static void setup(void)
{
    memset(dead, 0, sizeof(dead));
    memset(&acts, 0, sizeof(acts));
    q.table = calloc(1, sizeof(*q.table));
    q.is_alive = lives;
    q.others_wait = 0;
    q.now = 1000000;
    yk_queue_fresh(q.table);
    q.table->workers = 1000;
    q.table->wait = 500;
    rule = yk_queue_rule(&q, "shop");
}

static void teardown(void)
{
    free(q.table);
}

static void terms_are(uint32_t limit, uint32_t per_user, uint32_t user_wait,
                      uint32_t overflow, uint32_t resume, uint32_t busy)
{
    static uint64_t generation = 1;
    yk_rule_terms_t terms;

    yk_rule_terms_default(&terms);
    terms.limit = limit;
    terms.per_user = per_user;
    terms.user_wait = user_wait;
    terms.overflow = overflow;
    terms.resume = resume;
    terms.busy = busy;
    q.table->generation = ++generation;
    yk_queue_reconfigure(&q, &acts, rule, &terms, generation);
}

static const unsigned char *user(const char *name)
{
    static unsigned char bytes[16];

    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, name, strlen(name));
    return bytes;
}

static uint32_t come_by(const char *name, uint32_t worker)
{
    yk_arrival_t who = {0};

    who.rule = rule;
    who.worker = worker;
    who.identity = worker + 1;
    who.user = name != NULL ? user(name) : NULL;
    who.arrived_us = q.now;
    yk_queue_arrive(&q, &turn, &acts, &who);
    return turn.holder;
}

static uint32_t come(const char *name)
{
    return come_by(name, 0);
}

static yk_queue_e state(uint32_t holder)
{
    uint32_t s = atomic_load(&q.table->holder[holder].state);

    return s == YK_HOLDER_RUN ? YK_QUEUE_RUN : YK_QUEUE_WAIT;
}

#define P (q.table->rule[rule].running)
#define Q (q.table->rule[rule].waiting)

START_TEST(below_limit_a_request_runs_at_once)
{
    terms_are(2, 0, 0, 0, 0, 0);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    ck_assert_uint_eq(P, 2);
    ck_assert_uint_eq(Q, 1);
}
END_TEST

START_TEST(a_place_is_handed_to_the_one_that_waited_longest)
{
    uint32_t a, b, c;

    terms_are(1, 0, 0, 0, 0, 0);
    a = come(NULL);
    b = come(NULL);
    c = come(NULL);
    acts.n = 0;
    yk_queue_leave(&q, &acts, a);
    ck_assert_int_eq(state(b), YK_QUEUE_RUN);
    ck_assert_int_eq(state(c), YK_QUEUE_WAIT);
    ck_assert_uint_eq(acts.n, 1);
    ck_assert_uint_eq(acts.holder[0], b);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
}
END_TEST

START_TEST(more_than_busy_are_refused)
{
    terms_are(1, 0, 0, 0, 0, 3);
    come(NULL);
    come(NULL);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
    ck_assert_int_eq(turn.why, YK_REFUSED_BUSY);
    ck_assert_uint_eq(q.table->rule[rule].refused[YK_REFUSED_BUSY], 1);
}
END_TEST

START_TEST(busy_not_said_is_limit_and_the_most_that_may_wait)
{
    q.table->wait = 2;
    terms_are(1, 0, 0, 0, 0, YK_RULE_BUSY_DEFAULT);
    come(NULL);
    come(NULL);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    come(NULL);
    ck_assert_int_eq(turn.why, YK_REFUSED_BUSY);
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
}
END_TEST

START_TEST(a_user_at_per_user_waits_and_blocks_nobody)
{
    uint32_t a, a2, b, a3;

    terms_are(3, 1, 6, 0, 0, 0);
    a = come("a");
    a2 = come("a");
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    b = come("b");
    ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    a3 = come("a");
    yk_queue_leave(&q, &acts, b);
    ck_assert_int_eq(state(a2), YK_QUEUE_WAIT);
    yk_queue_leave(&q, &acts, a);
    ck_assert_int_eq(state(a2), YK_QUEUE_RUN);
    ck_assert_int_eq(state(a3), YK_QUEUE_WAIT);
}
END_TEST

START_TEST(a_user_with_user_wait_waiting_is_refused)
{
    terms_are(1, 1, 2, 0, 0, 0);
    come("a");
    come("a");
    come("a");
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    come("a");
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
    ck_assert_int_eq(turn.why, YK_REFUSED_USER);
    come("b");
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
}
END_TEST

START_TEST(nobody_is_under_no_per_user)
{
    terms_are(3, 1, 1, 0, 0, 0);
    for (int i = 0; i < 3; i++) {
        come(NULL);
        ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    }
    come(NULL);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
}
END_TEST

START_TEST(between_overflow_and_resume_the_oldest_runs_past_limit)
{
    uint32_t second;

    terms_are(1, 0, 0, 2, 3, 5);
    come(NULL);
    second = come(NULL); /* P+Q = 2: queued */
    ck_assert_int_eq(state(second), YK_QUEUE_WAIT);
    come(NULL); /* 3: overflow, the oldest runs */
    ck_assert_int_eq(state(second), YK_QUEUE_RUN);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    ck_assert_uint_eq(P, 2);
    come(NULL); /* 4 > resume: queued again */
    ck_assert_uint_eq(P, 2);
    ck_assert_uint_eq(Q, 2);
    come(NULL); /* 5 */
    come(NULL); /* 6 > busy */
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
    ck_assert_uint_eq(P, 2);
}
END_TEST

START_TEST(without_resume_overflow_goes_on_up_to_busy)
{
    terms_are(1, 0, 0, 2, 0, 5);
    for (int i = 0; i < 5; i++) {
        come(NULL);
    }
    ck_assert_uint_eq(P, 4);
    ck_assert_uint_eq(Q, 1);
}
END_TEST

START_TEST(after_overflow_p_falls_to_limit_before_anybody_else_runs)
{
    uint32_t a, b;

    terms_are(1, 0, 0, 2, 3, 5);
    a = come(NULL);
    b = come(NULL);
    come(NULL);
    yk_queue_leave(&q, &acts, a);
    ck_assert_uint_eq(P, 1);
    ck_assert_uint_eq(Q, 1);
    yk_queue_leave(&q, &acts, b);
    ck_assert_uint_eq(P, 1);
    ck_assert_uint_eq(Q, 0);
}
END_TEST

START_TEST(who_waited_run_after_runs_past_limit_and_per_user)
{
    yk_rule_terms_t terms;
    uint32_t waiting;

    terms_are(1, 1, 0, 0, 0, 0);
    terms = q.table->rule[rule].terms;
    terms.run_after_us = 1000;
    yk_queue_set(&q, &acts, rule, &terms);
    come("a");
    waiting = come("a");
    q.now += 999;
    yk_queue_tick(&q, &turn, &acts, waiting);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    q.now += 1;
    ck_assert_int_eq(yk_queue_due(&q, waiting), q.now);
    yk_queue_tick(&q, &turn, &acts, waiting);
    ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    ck_assert_uint_eq(P, 2);
    ck_assert_uint_eq(q.table->rule[rule].ran_after, 1);
}
END_TEST

START_TEST(who_waited_refuse_after_is_refused)
{
    uint32_t waiting;

    terms_are(1, 0, 0, 0, 0, 0);
    come(NULL);
    waiting = come(NULL);
    q.now += 30 * APR_USEC_PER_SEC;
    yk_queue_tick(&q, &turn, &acts, waiting);
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
    ck_assert_int_eq(turn.why, YK_REFUSED_TIME);
    ck_assert_uint_eq(Q, 0);
}
END_TEST

START_TEST(waiting_counts_from_the_first_arrival_of_the_request)
{
    yk_arrival_t who = {0};

    terms_are(1, 0, 0, 0, 0, 0);
    come(NULL);
    who.rule = rule;
    who.arrived_us = q.now - 29 * APR_USEC_PER_SEC;
    yk_queue_arrive(&q, &turn, &acts, &who);
    q.now += APR_USEC_PER_SEC;
    yk_queue_tick(&q, &turn, &acts, turn.holder);
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
}
END_TEST

START_TEST(a_bypassed_request_passes_limit_per_user_busy_and_reserve_and_counts)
{
    yk_arrival_t who = {0};

    terms_are(1, 1, 0, 0, 0, 1);
    q.table->workers = 2;
    q.table->reserve = 1;
    come("a");
    who.rule = rule;
    who.user = user("a");
    who.bypass = 1;
    yk_queue_arrive(&q, &turn, &acts, &who);
    ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    ck_assert_uint_eq(P, 2);
    ck_assert_uint_eq(q.table->busy_workers, 2);
}
END_TEST

START_TEST(the_reserve_is_left_free)
{
    terms_are(10, 0, 0, 0, 0, 0);
    q.table->workers = 4;
    q.table->reserve = 1;
    for (int i = 0; i < 3; i++) {
        come(NULL);
        ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    }
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
    ck_assert_int_eq(turn.why, YK_REFUSED_RESERVE);
}
END_TEST

START_TEST(a_request_under_two_rules_is_one_worker)
{
    yk_arrival_t who = {0};
    uint32_t first;

    terms_are(10, 0, 0, 0, 0, 0);
    first = come(NULL);
    who.rule = yk_queue_rule(&q, "server");
    who.second = 1;
    yk_queue_arrive(&q, &turn, &acts, &who);
    ck_assert_uint_eq(q.table->busy_workers, 1);
    yk_queue_leave(&q, &acts, turn.holder);
    ck_assert_uint_eq(q.table->busy_workers, 1);
    yk_queue_leave(&q, &acts, first);
    ck_assert_uint_eq(q.table->busy_workers, 0);
}
END_TEST

START_TEST(all_rules_together_let_only_so_many_wait)
{
    q.table->wait = 1;
    terms_are(1, 0, 0, 0, 0, 10);
    come(NULL);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
    ck_assert_int_eq(turn.why, YK_REFUSED_WAIT);
    ck_assert_uint_eq(Q, 1);
}
END_TEST

START_TEST(a_lowered_limit_lets_p_fall_until_it_is_met)
{
    uint32_t a, b;

    terms_are(2, 0, 0, 0, 0, 0);
    a = come(NULL);
    b = come(NULL);
    come(NULL);
    terms_are(1, 0, 0, 0, 0, 0);
    ck_assert_uint_eq(P, 2);
    yk_queue_leave(&q, &acts, a);
    ck_assert_uint_eq(P, 1);
    ck_assert_uint_eq(Q, 1);
    yk_queue_leave(&q, &acts, b);
    ck_assert_uint_eq(Q, 0);
}
END_TEST

START_TEST(after_a_raised_limit_the_oldest_run_at_once)
{
    terms_are(1, 0, 0, 0, 0, 0);
    for (int i = 0; i < 4; i++) {
        come(NULL);
    }
    terms_are(3, 0, 0, 0, 0, 0);
    ck_assert_uint_eq(P, 3);
    ck_assert_uint_eq(Q, 1);
}
END_TEST

START_TEST(what_the_operator_set_stays_until_the_configured_value_changes)
{
    yk_rule_terms_t terms;

    terms_are(4, 0, 6, 0, 0, 0);
    terms = q.table->rule[rule].terms;
    terms.limit = 9;
    yk_queue_set(&q, &acts, rule, &terms);
    ck_assert_uint_eq(q.table->rule[rule].is_set, 1);
    terms_are(4, 0, 7, 0, 0, 0); /* another value changes */
    ck_assert_uint_eq(q.table->rule[rule].terms.limit, 9);
    ck_assert_uint_eq(q.table->rule[rule].terms.user_wait, 7);
    terms_are(5, 0, 7, 0, 0, 0);
    ck_assert_uint_eq(q.table->rule[rule].terms.limit, 5);
    ck_assert_uint_eq(q.table->rule[rule].is_set, 0);
    yk_queue_set(&q, &acts, rule, &terms);
    yk_queue_reset(&q, &acts, rule);
    ck_assert_uint_eq(q.table->rule[rule].terms.limit, 5);
}
END_TEST

START_TEST(an_older_configuration_says_nothing)
{
    yk_rule_terms_t terms = {0};

    terms_are(4, 0, 0, 0, 0, 0);
    terms.limit = 1;
    yk_queue_reconfigure(&q, &acts, rule, &terms, 1);
    ck_assert_uint_eq(q.table->rule[rule].terms.limit, 4);
}
END_TEST

START_TEST(a_dead_worker_gives_back_what_it_ran_and_waited_for)
{
    uint32_t waiting;

    terms_are(1, 0, 0, 0, 0, 0);
    come_by(NULL, 1);
    come_by(NULL, 2);
    waiting = come_by(NULL, 3);
    dead[1] = dead[2] = 1;
    ck_assert_uint_eq(yk_queue_reclaim(&q, &acts), 2);
    ck_assert_int_eq(state(waiting), YK_QUEUE_RUN);
    ck_assert_uint_eq(P, 1);
    ck_assert_uint_eq(Q, 0);
}
END_TEST

START_TEST(a_hand_over_to_a_dead_worker_goes_to_the_next)
{
    uint32_t a, c;

    terms_are(1, 0, 0, 0, 0, 0);
    a = come_by(NULL, 1);
    come_by(NULL, 2);
    c = come_by(NULL, 3);
    dead[2] = 1;
    yk_queue_leave(&q, &acts, a);
    ck_assert_int_eq(state(c), YK_QUEUE_RUN);
    ck_assert_uint_eq(q.table->rule[rule].to_dead, 1);
    ck_assert_uint_eq(P, 1);
}
END_TEST

START_TEST(a_live_holder_is_never_reclaimed)
{
    terms_are(1, 0, 0, 0, 0, 0);
    come_by(NULL, 1);
    come_by(NULL, 2);
    ck_assert_uint_eq(yk_queue_reclaim(&q, &acts), 0);
    ck_assert_uint_eq(P, 1);
    ck_assert_uint_eq(Q, 1);
}
END_TEST

START_TEST(the_operator_lets_all_run)
{
    terms_are(1, 0, 0, 0, 0, 0);
    for (int i = 0; i < 5; i++) {
        come(NULL);
    }
    ck_assert_uint_eq(yk_queue_release(&q, &acts, rule), 4);
    ck_assert_uint_eq(P, 5);
    ck_assert_uint_eq(Q, 0);
}
END_TEST

START_TEST(the_operator_refuses_all_that_wait)
{
    uint32_t waiting;

    terms_are(1, 0, 0, 0, 0, 0);
    come(NULL);
    waiting = come(NULL);
    ck_assert_uint_eq(yk_queue_refuse(&q, &acts, rule), 1);
    ck_assert_uint_eq(Q, 0);
    yk_queue_tick(&q, &turn, &acts, waiting);
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
    ck_assert_int_eq(turn.why, YK_REFUSED_OPERATOR);
}
END_TEST

START_TEST(dry_run_counts_what_it_would_have_done_and_lets_all_run)
{
    yk_rule_terms_t terms;

    terms_are(1, 0, 0, 0, 0, 2);
    terms = q.table->rule[rule].terms;
    terms.dry_run = 1;
    yk_queue_set(&q, &acts, rule, &terms);
    for (int i = 0; i < 3; i++) {
        come(NULL);
        ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
        ck_assert_int_eq(turn.dry, i);
    }
    ck_assert_uint_eq(P, 3);
    ck_assert_uint_eq(q.table->rule[rule].dry_queued, 1);
    ck_assert_uint_eq(q.table->rule[rule].dry_refused, 1);
}
END_TEST

START_TEST(asking_for_a_place_at_once_leaves_no_trace_when_there_is_none)
{
    yk_arrival_t who = {0};

    terms_are(1, 0, 0, 0, 0, 0);
    come(NULL);
    who.rule = rule;
    who.at_once = 1;
    yk_queue_arrive(&q, &turn, &acts, &who);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    ck_assert_uint_eq(turn.holder, YK_HOLDER_NONE);
    ck_assert_uint_eq(q.table->rule[rule].arrivals, 1);
    ck_assert_uint_eq(Q, 0);
}
END_TEST

START_TEST(order_is_kept_when_tickets_wrap_around)
{
    uint32_t a, b, c;

    q.table->next_ticket = UINT64_MAX - 1;
    terms_are(1, 0, 0, 0, 0, 0);
    a = come(NULL);
    b = come(NULL);
    c = come(NULL);
    yk_queue_recount(&q);
    yk_queue_leave(&q, &acts, a);
    ck_assert_int_eq(state(b), YK_QUEUE_RUN);
    ck_assert_int_eq(state(c), YK_QUEUE_WAIT);
}
END_TEST

START_TEST(a_recount_finds_what_was_half_written)
{
    uint32_t b;

    terms_are(2, 1, 6, 0, 0, 0);
    come("a");
    b = come("a");
    /* a worker died here, with everything derived spoilt */
    q.table->rule[rule].running = 77;
    q.table->rule[rule].waiting = 3;
    q.table->rule[rule].head = 4000;
    q.table->busy_workers = 0;
    q.table->free = 2;
    memset(q.table->chain, 7, sizeof(q.table->chain));
    yk_queue_recount(&q);
    ck_assert_uint_eq(P, 1);
    ck_assert_uint_eq(Q, 1);
    ck_assert_uint_eq(q.table->rule[rule].head, b);
    ck_assert_uint_eq(q.table->busy_workers, 2);
    come("a");
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    come("b");
    ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
}
END_TEST

START_TEST(who_runs_in_another_file_counts_and_who_waits_there_goes_first)
{
    uint32_t a;

    terms_are(2, 0, 0, 0, 0, 0);
    q.table->rule[rule].elsewhere = 1;
    a = come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    q.others_wait = 1;
    yk_queue_leave(&q, &acts, a);
    ck_assert_uint_eq(P, 0);
    ck_assert_uint_eq(Q, 1);
}
END_TEST

START_TEST(a_full_table_of_holders_refuses)
{
    terms_are(0, 0, 0, 0, 0, 0);
    q.table->workers = 0;
    for (int i = 0; i < YK_HOLDERS_MAX; i++) {
        come(NULL);
        ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    }
    come(NULL);
    ck_assert_int_eq(turn.answer, YK_QUEUE_REFUSED);
    ck_assert_int_eq(turn.why, YK_REFUSED_FULL);
}
END_TEST

START_TEST(rows_of_rules_no_longer_configured_are_used_again)
{
    char name[20];
    uint32_t n = 0;

    terms_are(1, 0, 0, 0, 0, 0);
    come(NULL);
    q.table->generation = UINT64_MAX;
    for (int i = 0; i < 2 * YK_RULES_MAX; i++) {
        snprintf(name, sizeof(name), "rule%d", i);
        n = yk_queue_rule(&q, name);
        ck_assert_uint_ne(n, YK_RULE_NONE);
        ck_assert_uint_ne(n, rule); /* it still has a holder */
    }
    ck_assert_str_eq(q.table->rule[n].name, name);
}
END_TEST

Suite *queue_suite(void)
{
    const TTest *const rows[] = {
        below_limit_a_request_runs_at_once,
        a_place_is_handed_to_the_one_that_waited_longest,
        more_than_busy_are_refused,
        busy_not_said_is_limit_and_the_most_that_may_wait,
        a_user_at_per_user_waits_and_blocks_nobody,
        a_user_with_user_wait_waiting_is_refused,
        nobody_is_under_no_per_user,
        between_overflow_and_resume_the_oldest_runs_past_limit,
        without_resume_overflow_goes_on_up_to_busy,
        after_overflow_p_falls_to_limit_before_anybody_else_runs,
        who_waited_run_after_runs_past_limit_and_per_user,
        who_waited_refuse_after_is_refused,
        waiting_counts_from_the_first_arrival_of_the_request,
        a_bypassed_request_passes_limit_per_user_busy_and_reserve_and_counts,
        the_reserve_is_left_free,
        a_request_under_two_rules_is_one_worker,
        all_rules_together_let_only_so_many_wait,
        a_lowered_limit_lets_p_fall_until_it_is_met,
        after_a_raised_limit_the_oldest_run_at_once,
        what_the_operator_set_stays_until_the_configured_value_changes,
        an_older_configuration_says_nothing,
        a_dead_worker_gives_back_what_it_ran_and_waited_for,
        a_hand_over_to_a_dead_worker_goes_to_the_next,
        a_live_holder_is_never_reclaimed,
        the_operator_lets_all_run,
        the_operator_refuses_all_that_wait,
        dry_run_counts_what_it_would_have_done_and_lets_all_run,
        asking_for_a_place_at_once_leaves_no_trace_when_there_is_none,
        order_is_kept_when_tickets_wrap_around,
        a_recount_finds_what_was_half_written,
        who_runs_in_another_file_counts_and_who_waits_there_goes_first,
        a_full_table_of_holders_refuses,
        rows_of_rules_no_longer_configured_are_used_again,
    };
    Suite *suite = suite_create("queue");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, teardown);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tcase_add_test(all, rows[i]);
    }
    suite_add_tcase(suite, all);
    return suite;
}
