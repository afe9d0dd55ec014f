/* SPDX-License-Identifier: Apache-2.0 */
#include "throttle.h"
#include "../../../mod_yoyaku/throttle/before.h"

#include <apr_strings.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "yoyaku/throttle.h"

/*
 * The same on shared memory, with real processes that are killed and stopped.
 */

static apr_pool_t *p;
static char folder[64];
static yk_throttle_t *throttle;
static yk_rule_terms_t terms;

static void setup(void)
{
    apr_status_t rv;

    apr_pool_create(&p, NULL);
    strcpy(folder, "/tmp/yk-state-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    yk_rule_terms_default(&terms);
    terms.limit = 1;
    rv = yk_throttle_create(&throttle, folder, 100, 10, 25, p);
    ck_assert_int_eq(rv, APR_SUCCESS);
}

static void teardown(void)
{
    char command[100];

    apr_pool_destroy(p);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Without Check's assertions: children of ours call it too, and what they would
 * write into Check's file meets what the test writes. */
static void come(yk_turn_t *turn)
{
    yk_arrival_t who = {0};

    who.name = "shop";
    who.arrived_us = yk_state_now();
    if (yk_throttle_rule(throttle, &who.rule, who.name, &terms) !=
        APR_SUCCESS) {
        abort();
    }
    yk_throttle_arrive(throttle, turn, &who);
}

/* A child that comes and stays; says by a byte that it is there. */
static pid_t child_stays(void)
{
    int fds[2];
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        yk_turn_t turn;

        yk_throttle_join(throttle);
        come(&turn);
        (void)!write(fds[1], turn.answer == YK_QUEUE_RUN ? "r" : "w", 1);
        while (turn.answer == YK_QUEUE_WAIT) {
            yk_throttle_wait(throttle, &turn, 250000);
        }
        (void)!write(fds[1], "r", 1);
        pause();
    }
    ck_assert_int_eq((int)read(fds[0], &byte, 1), 1);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

static void end(pid_t pid, int signal)
{
    kill(pid, signal);
    waitpid(pid, NULL, 0);
}

START_TEST(a_killed_worker_gives_its_place_to_one_that_waits)
{
    pid_t running = child_stays();
    apr_time_t began;
    yk_turn_t turn;

    yk_throttle_join(throttle);
    come(&turn);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    end(running, SIGKILL);
    began = yk_state_now();
    while (turn.answer == YK_QUEUE_WAIT &&
           yk_state_now() - began < APR_USEC_PER_SEC) {
        yk_throttle_wait(throttle, &turn, 250000);
    }
    ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
}
END_TEST

START_TEST(a_killed_waiter_is_passed_over_and_the_place_goes_on)
{
    yk_turn_t first, second;
    pid_t waiting;

    yk_throttle_join(throttle);
    come(&first);
    ck_assert_int_eq(first.answer, YK_QUEUE_RUN);
    waiting = child_stays();
    come(&second);
    end(waiting, SIGKILL);
    yk_throttle_leave(throttle, first.holder);
    yk_throttle_wait(throttle, &second, 0);
    ck_assert_int_eq(second.answer, YK_QUEUE_RUN);
}
END_TEST

START_TEST(an_owner_of_the_lock_that_dies_leaves_right_counts)
{
    yk_throttle_table_t *t = yk_throttle_table(throttle);
    yk_turn_t turn;
    int died;
    pid_t owner;

    yk_throttle_join(throttle);
    come(&turn);
    owner = fork();
    if (owner == 0) {
        yk_lock_take(&t->lock, &died, YK_LOCK_WRITE, 0);
        t->rule[0].running = 99;
        t->busy_workers = 99;
        _exit(0);
    }
    waitpid(owner, NULL, 0);
    yk_throttle_leave(throttle, turn.holder);
    ck_assert_uint_eq(t->rule[0].running, 0);
    ck_assert_uint_eq(t->busy_workers, 0);
    ck_assert_uint_eq(t->recounts, 1);
    ck_assert_uint_eq(t->lock.owners_died, 1);
}
END_TEST

START_TEST(behind_a_stopped_owner_newcomers_are_refused_in_time)
{
    yk_throttle_table_t *t = yk_throttle_table(throttle);
    yk_turn_t turn, other;
    yk_arrival_t who = {0};
    int fds[2], died;
    apr_time_t began;
    char byte;
    pid_t owner;

    yk_throttle_join(throttle);
    come(&turn);
    ck_assert_int_eq(pipe(fds), 0);
    owner = fork();
    if (owner == 0) {
        yk_lock_take(&t->lock, &died, YK_LOCK_WRITE, 0);
        (void)!write(fds[1], "x", 1);
        raise(SIGSTOP);
        yk_lock_give(&t->lock);
        pause();
    }
    ck_assert_int_eq((int)read(fds[0], &byte, 1), 1);
    who.name = "shop";
    began = yk_state_now();
    yk_throttle_arrive(throttle, &other, &who);
    ck_assert_int_eq(other.answer, YK_QUEUE_REFUSED);
    ck_assert_int_eq(other.why, YK_REFUSED_LOCK);
    ck_assert_int_lt(yk_state_now() - began, 2 * APR_USEC_PER_SEC);
    /* the one that runs leaves without the lock, and nobody is lost */
    yk_throttle_leave(throttle, turn.holder);
    kill(owner, SIGCONT);
    do {
        yk_throttle_arrive(throttle, &other, &who);
    } while (other.answer == YK_QUEUE_REFUSED &&
             yk_state_now() - began < 5 * APR_USEC_PER_SEC);
    ck_assert_int_eq(other.answer, YK_QUEUE_RUN);
    ck_assert_uint_eq(t->rule[0].running, 1);
    end(owner, SIGKILL);
}
END_TEST

START_TEST(the_next_generation_finds_the_same_holders)
{
    yk_throttle_t *next;
    apr_pool_t *later;
    yk_turn_t turn;
    yk_arrival_t who = {0};

    yk_throttle_join(throttle);
    come(&turn);
    apr_pool_create(&later, NULL);
    ck_assert_int_eq(yk_throttle_create(&next, folder, 100, 10, 25, later),
                     APR_SUCCESS);
    yk_throttle_join(next);
    who.name = "shop";
    ck_assert_int_eq(yk_throttle_rule(next, &who.rule, "shop", &terms),
                     APR_SUCCESS);
    yk_throttle_arrive(next, &turn, &who);
    ck_assert_int_eq(turn.answer, YK_QUEUE_WAIT);
    ck_assert_uint_gt(yk_throttle_generation(next),
                      yk_throttle_generation(throttle));
    apr_pool_destroy(later);
}
END_TEST

/* A server that was stopped or killed as a whole had nobody left to bury its
 * workers. */
START_TEST(the_next_start_keeps_the_rows_of_the_living_alone)
{
    yk_workers_t *workers = yk_throttle_workers(throttle);
    pid_t lives = child_stays(), dies = child_stays();
    uint64_t living = yk_worker_identity((uint32_t)lives);
    yk_throttle_t *next;

    end(dies, SIGKILL);
    ck_assert_uint_ne(atomic_load(&workers->worker[1].identity), 0);
    ck_assert_int_eq(yk_throttle_create(&next, folder, 100, 10, 25, p),
                     APR_SUCCESS);
    ck_assert_uint_eq(atomic_load(&workers->worker[0].identity), living);
    ck_assert_uint_eq(atomic_load(&workers->worker[1].identity), 0);
    end(lives, SIGKILL);
}
END_TEST

START_TEST(a_file_of_another_size_is_replaced_and_not_trusted)
{
    const char *path =
        apr_psprintf(p, "%s/throttle-%u.state", folder, YK_THROTTLE_LAYOUT);
    apr_pool_t *later;
    yk_throttle_t *next;
    yk_turn_t turn;

    yk_throttle_join(throttle);
    come(&turn);
    ck_assert_int_eq(truncate(path, 4096), 0);
    apr_pool_create(&later, NULL);
    ck_assert_int_eq(yk_throttle_create(&next, folder, 100, 10, 25, later),
                     APR_SUCCESS);
    ck_assert_uint_eq(yk_throttle_table(next)->rule[0].running, 0);
    ck_assert_uint_eq(yk_throttle_table(next)->head.size,
                      sizeof(yk_throttle_table_t));
    apr_pool_destroy(later);
    ck_assert_int_eq(truncate(path, sizeof(yk_throttle_table_t)), 0);
}
END_TEST

START_TEST(a_file_that_others_may_write_is_refused)
{
    const char *path =
        apr_psprintf(p, "%s/throttle-%u.state", folder, YK_THROTTLE_LAYOUT);
    const char *problem;
    yk_throttle_t *next;

    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_int_eq(yk_throttle_create(&next, folder, 100, 10, 25, p),
                     APR_EACCES);
    ck_assert_int_eq(chmod(folder, 0777), 0);
    ck_assert_int_eq(yk_state_folder(&problem, folder, p), APR_EACCES);
}
END_TEST

START_TEST(a_parent_that_lives_keeps_others_off)
{
    yk_throttle_t *next;
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        _exit(yk_throttle_create(&next, folder, 100, 10, 25, p) == APR_EBUSY
                  ? 0
                  : 1);
    }
    waitpid(pid, &status, 0);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

/* Killed again and again at whatever point; never more than the limit. */
START_TEST(killed_anywhere_nobody_runs_twice_and_nobody_waits_for_ever)
{
    yk_throttle_table_t *t = yk_throttle_table(throttle);
    apr_time_t began;
    yk_turn_t turn;

    for (int round = 0; round < 60; round++) {
        pid_t pids[4];

        for (int i = 0; i < 4; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                yk_throttle_join(throttle);
                for (;;) {
                    come(&turn);
                    while (turn.answer == YK_QUEUE_WAIT) {
                        yk_throttle_wait(throttle, &turn, 1000);
                    }
                    if (turn.answer == YK_QUEUE_RUN) {
                        yk_throttle_leave(throttle, turn.holder);
                    }
                }
            }
        }
        usleep(2000 + (unsigned)rand() % 5000);
        ck_assert_uint_le(t->rule[0].running, 1);
        for (int i = 0; i < 4; i++) {
            end(pids[i], SIGKILL);
        }
    }
    yk_throttle_join(throttle);
    began = yk_state_now();
    come(&turn);
    /* So many died in a tenth of a second that they fill the queue: it is
     * right again when somebody looks after them. */
    while (turn.answer == YK_QUEUE_REFUSED &&
           yk_state_now() - began < APR_USEC_PER_SEC) {
        come(&turn);
    }
    while (turn.answer == YK_QUEUE_WAIT &&
           yk_state_now() - began < APR_USEC_PER_SEC) {
        yk_throttle_wait(throttle, &turn, 250000);
    }
    ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
    yk_throttle_leave(throttle, turn.holder);
    ck_assert_uint_eq(t->rule[0].running, 0);
    ck_assert_uint_eq(t->rule[0].waiting, 0);
    ck_assert_uint_eq(t->busy_workers, 0);
    ck_assert_uint_eq(t->waiting, 0);
}
END_TEST

/* ---- another layout's file ---- */

#define OLD_RULE 3
#define OLD_RUN 5

/* As an old generation left it: so many run under "shop". */
static yk_throttle_table_t *old_file(void)
{
    yk_state_kind_t kind = yk_throttle_kind;
    yk_throttle_table_t *old;
    yk_state_t *state;
    uint32_t row;

    kind.layout = YK_THROTTLE_LAYOUT + 1;
    ck_assert_int_eq(yk_state_create(&state, &kind, folder, p), APR_SUCCESS);
    old = yk_state_memory(state);
    row = yk_workers_join(yk_throttle_workers(throttle), 1, kind.layout);
    ck_assert_uint_ne(row, YK_WORKER_NONE);
    strcpy(old->rule[OLD_RULE].name, "shop");
    for (int i = 0; i < OLD_RUN; i++) {
        old->holder[i].rule = OLD_RULE;
        old->holder[i].worker = row;
        old->holder[i].identity = yk_worker_identity((uint32_t)getpid());
        atomic_store(&old->holder[i].state, YK_HOLDER_RUN);
    }
    return old;
}

/* What says where its parts lie is right at one moment and not at the next. */
static pid_t child_writes(yk_throttle_table_t *old)
{
    static volatile yk_throttle_table_t *t;
    uint32_t rules_at = old->rules_at, holders_at = old->holders_at,
             lock_at = old->lock_at;
    pid_t pid = fork();

    t = old;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
    }
    while (pid == 0) {
        t->rules_at = t->holders_at = t->lock_at = UINT32_C(0xfffffff8);
        t->rules_at = rules_at;
        t->holders_at = holders_at;
        t->lock_at = lock_at;
    }
    return pid;
}

START_TEST(an_old_child_that_writes_anything_leads_nobody_astray)
{
    yk_throttle_table_t *old = old_file();
    yk_throttle_before_t *before =
        yk_throttle_before_find(folder, yk_throttle_workers(throttle), p);
    pid_t pid = child_writes(old);

    ck_assert_ptr_nonnull(before);
    for (int i = 0; i < 5000; i++) {
        uint32_t running = 0, waiting = 0;

        ck_assert_int_eq(yk_throttle_before_lock(before, APR_USEC_PER_SEC),
                         APR_SUCCESS);
        yk_throttle_before_count(before, &running, &waiting, "shop");
        ck_assert_int_eq(
            yk_throttle_before_unlock(before, yk_throttle_table(throttle)), 1);
        ck_assert_uint_eq(running, OLD_RUN);
        ck_assert_uint_eq(waiting, 0);
    }
    end(pid, SIGKILL);
}
END_TEST

Suite *shared_suite(void)
{
    Suite *suite = suite_create("shared");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 60);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, a_killed_worker_gives_its_place_to_one_that_waits);
    tcase_add_test(all, a_killed_waiter_is_passed_over_and_the_place_goes_on);
    tcase_add_test(all, an_owner_of_the_lock_that_dies_leaves_right_counts);
    tcase_add_test(all, behind_a_stopped_owner_newcomers_are_refused_in_time);
    tcase_add_test(all, the_next_generation_finds_the_same_holders);
    tcase_add_test(all, the_next_start_keeps_the_rows_of_the_living_alone);
    tcase_add_test(all, a_file_of_another_size_is_replaced_and_not_trusted);
    tcase_add_test(all, a_file_that_others_may_write_is_refused);
    tcase_add_test(all, a_parent_that_lives_keeps_others_off);
    tcase_add_test(all,
                   killed_anywhere_nobody_runs_twice_and_nobody_waits_for_ever);
    tcase_add_test(all, an_old_child_that_writes_anything_leads_nobody_astray);
    suite_add_tcase(suite, all);
    return suite;
}
