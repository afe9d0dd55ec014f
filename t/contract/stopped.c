/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../mod_yoyaku/core/lane_queue.h"
#include "../../mod_yoyaku/core/lane_run.h"
#include "contract.h"
#include "yoyaku/catalogue.h"

/*
 * A leader that is stopped in the middle, and goes on when those it led have
 * long given up: nobody else may notice. Three processes: the test itself
 * pretends to lead until all stand in the queue, then hands on to the leader,
 * who stops where a word says so. Each has the record of its row's number.
 *
 * And a keeper, who is stopped while the lane's lock is his: whoever waits
 * gets his answer all the same, and in time.
 */

#define LEADER 1
#define OWNER 2
#define HELD 0 /* how a process ends: what it was told */
#define TAKEN 1
#define UNRESOLVED 2
#define UNRESOLVED_WITH_TOKEN 3
#define UNRESOLVED_WITH_NUMBER 4
#define BUSY 5
#define ELSE 6
/* A waiter that is still there after so long waits for ever. */
#define PATIENCE 20

static yk_lanes_t *lanes;
static yk_workers_t *workers;
static yk_lane_host_t host;
static const char *plans;
static yk_lane_word_e stop_in;
static int stop_when_noted; /* and not before its order has a number */
static int stops_early;     /* before it has taken anybody's wish */
static uint32_t lane;

static void *shared(apr_size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert(memory != MAP_FAILED);
    return memory;
}

/* The first time the owner's record is in that state, and the lane's lock in
 * nobody's hands: who leads is counted behind it. */
static void stop_once(void)
{
    if (atomic_load(&lanes->counts.leaders) > 0 &&
        yk_lane_word_state(atomic_load(&lanes->record[OWNER].word)) ==
            stop_in &&
        (!stop_when_noted || lanes->record[OWNER].order_id != 0)) {
        yk_lane_step = NULL;
        raise(SIGSTOP);
    }
}

/* Before it looks into the queue for its first batch. */
static void stop_before_it_leads(void)
{
    if (yk_lane_word_state(atomic_load(&lanes->record[host.worker].word)) ==
        YK_LANE_LEAD) {
        yk_lane_step = NULL;
        raise(SIGSTOP);
    }
}

static yk_wish_t *wish_for(const char *place, apr_pool_t *p)
{
    yk_wish_line_t *line = apr_pcalloc(p, sizeof(*line));
    yk_wish_t *wish = apr_pcalloc(p, sizeof(*wish));

    line->slot = "lane";
    line->place = place;
    line->nparts = 1;
    line->parts[0].quantity = 1;
    line->field = "places[0]";
    wish->nlines = 1;
    wish->lines = line;
    return wish;
}

/* One process, one hold through the lane; with `has` it adds to an order that
 * holds this place already. */
static pid_t hold(uint32_t row, const char *has, const char *place, int seconds)
{
    yk_terms_t terms = {.tenant_id = 1,
                        .booker = "",
                        .who = "worker",
                        .hold_ttl = apr_time_from_sec(600),
                        .hold_max_lifetime = apr_time_from_sec(1800),
                        .wait = apr_time_from_sec(seconds),
                        .hold_places = 8};
    yk_claim_t claim = {0};
    yk_catalogue_t *catalogue;
    yk_reply_t reply = {0};
    yk_store_t *store;
    yk_desk_t *desk;
    yk_hash_t token;
    apr_pool_t *p;
    apr_status_t rv;
    pid_t pid = fork();

    if (pid != 0) {
        return pid;
    }
    apr_pool_create(&p, NULL);
    host.identity = yk_worker_identity((uint32_t)getpid());
    host.worker = row;
    if (yk_catalogue_create(&catalogue, plans, p) != APR_SUCCESS ||
        yk_store_open(&store, server_params("contract", p), p) != APR_SUCCESS) {
        _exit(ELSE);
    }
    desk = yk_desk_make(store, catalogue, &terms, p);
    if (has != NULL) {
        rv = yk_desk_hold(desk, &reply, wish_for(has, p), NULL, NULL, p);
        if (rv != APR_SUCCESS || reply.answer != YK_ANSWER_HELD ||
            yk_token_hash(&token, reply.token) != APR_SUCCESS) {
            _exit(ELSE);
        }
        claim.token = &token;
        memset(&reply, 0, sizeof(reply));
    }
    if (row == LEADER) {
        yk_lane_step = stops_early ? stop_before_it_leads : stop_once;
    }
    yk_desk_lane(desk, &host);
    rv = yk_desk_hold(desk, &reply, wish_for(place, p),
                      has != NULL ? &claim : NULL, NULL, p);
    if (rv == APR_INCOMPLETE) {
        _exit(reply.token == NULL   ? UNRESOLVED
              : reply.order == NULL ? UNRESOLVED_WITH_TOKEN
                                    : UNRESOLVED_WITH_NUMBER);
    }
    _exit(rv == APR_TIMEUP                  ? BUSY
          : rv != APR_SUCCESS               ? ELSE
          : reply.answer == YK_ANSWER_HELD  ? HELD
          : reply.answer == YK_ANSWER_TAKEN ? TAKEN
                                            : ELSE);
}

static int ends(pid_t pid)
{
    apr_time_t end = apr_time_now() + apr_time_from_sec(PATIENCE);
    int status = 0;
    pid_t ended = waitpid(pid, &status, WNOHANG);

    while (ended == 0 && apr_time_now() < end) {
        apr_sleep(apr_time_from_msec(2));
        ended = waitpid(pid, &status, WNOHANG);
    }
    ck_assert_msg(ended == pid, "it waits for ever");
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void wait_until_it_waits(uint32_t number)
{
    apr_time_t end = apr_time_now() + apr_time_from_sec(20);

    while (yk_lane_word_state(atomic_load(&lanes->record[number].word)) !=
           YK_LANE_WAITING) {
        ck_assert_int_lt(apr_time_now(), end);
        apr_sleep(apr_time_from_msec(2));
    }
}

/* The lane is led by us, so that all who come wait. */
static void pretend_to_lead(void)
{
    yk_terms_t terms = {.tenant_id = 1, .booker = "", .who = "test"};
    yk_ask_t ask = {.kind = YK_ASK_HOLD, .wish = wish_for("1-1-1", pool)};
    yk_reply_t reply;
    yk_deed_t deed;
    uint32_t number;

    yk_deed_make(&deed, yk_desk_make(NULL, NULL, &terms, pool), &ask, &reply,
                 pool);
    lane = yk_lane_of(&host, &deed);
    number = yk_lane_record_take(&host);
    ck_assert_uint_eq(number, 0);
    ck_ok(yk_lane_lock(&host, lane, YK_LANE_LOCK_WAIT));
    lanes->record[number].lane = lane;
    yk_lane_word_turn(&lanes->record[number],
                      atomic_load(&lanes->record[number].word), YK_LANE_TAKEN);
    ck_assert_int_eq(yk_lane_lead(&host, lane, number), 1);
    yk_lane_unlock(&host, lane);
}

static void stage_make(void)
{
    yk_store_t *store;

    pool_make();
    store = book_make();
    book_hall(store, "hall", 1, 40);
    book_slot(store, "lane", "hall", YK_MODE_PLACED);
    plans = server_beside("plans-stopped", pool);
    apr_dir_make(plans, APR_OS_DEFAULT, pool);
    lanes = shared(sizeof(*lanes));
    workers = shared(sizeof(*workers));
    yk_lanes_kind.fresh(lanes);
    memset(&host, 0, sizeof(host));
    host.lanes = lanes;
    host.workers = workers;
    host.identity = yk_worker_identity((uint32_t)getpid());
    host.realm = 1;
    host.width = 1;
    yk_store_rest(store);
    pretend_to_lead();
}

static void stage_end(void)
{
    munmap(lanes, sizeof(*lanes));
    munmap(workers, sizeof(*workers));
    pool_end();
}

/* @return the leader, stopped while the owner's wish is in this state */
static pid_t leader_stopped(pid_t *owner, yk_lane_word_e state, const char *has)
{
    pid_t leader;
    int status;

    stop_in = state;
    leader = hold(LEADER, NULL, "1-1-1", 10);
    wait_until_it_waits(LEADER);
    *owner = hold(OWNER, has, "1-1-2", 2);
    wait_until_it_waits(OWNER);
    ck_ok(yk_lane_lock(&host, lane, YK_LANE_LOCK_WAIT));
    yk_lane_hand_on(&host, lane);
    yk_lane_unlock(&host, lane);
    ck_assert_int_eq(waitpid(leader, &status, WUNTRACED), leader);
    ck_assert(WIFSTOPPED(status));
    return leader;
}

/* @return a process that stopped while it had the lane's lock; before that it
 *          lets somebody who waits lead, if asked to */
static pid_t keeper_stopped(int hands_on)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (yk_lane_lock(&host, lane, YK_LANE_LOCK_WAIT) != APR_SUCCESS) {
            _exit(ELSE);
        }
        if (hands_on) {
            yk_lane_hand_on(&host, lane);
        }
        raise(SIGSTOP);
        yk_lane_unlock(&host, lane);
        _exit(HELD);
    }
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    return pid;
}

static long long held(const char *place)
{
    return server_number(
        book_line(),
        apr_pstrcat(pool,
                    "SELECT COUNT(*) FROM yoyaku_slot_place s, yoyaku_place p"
                    " WHERE p.place_no=s.place_no AND s.state=1 AND p.guid='",
                    place, "'", NULL));
}

START_TEST(a_wish_that_came_into_the_record_later_is_not_carried_out)
{
    pid_t owner, leader, later;

    stage_make();
    leader = leader_stopped(&owner, YK_LANE_TAKEN, NULL);
    /* its order, if the leader begins one yet, is found by the token */
    ck_assert_int_eq(ends(owner), UNRESOLVED_WITH_TOKEN);
    /* and another database's: the leader has no business with it, though it
     * has the same lane */
    host.realm += YK_LANES;
    later = hold(OWNER, NULL, "1-1-3", 10);
    wait_until_it_waits(OWNER);
    kill(leader, SIGCONT);
    ck_assert_int_eq(ends(leader), HELD);
    ck_assert_int_eq(ends(later), HELD);
    ck_assert_int_eq(held("1-1-1"), 1);
    ck_assert_int_eq(held("1-1-2"), 0);
    ck_assert_int_eq(held("1-1-3"), 1);
    stage_end();
}
END_TEST

START_TEST(an_order_about_to_be_begun_is_named)
{
    pid_t owner, leader;

    stage_make();
    stop_when_noted = 1;
    leader = leader_stopped(&owner, YK_LANE_TAKEN, NULL);
    stop_when_noted = 0;
    ck_assert_int_eq(ends(owner), UNRESOLVED_WITH_NUMBER);
    kill(leader, SIGCONT);
    ck_assert_int_eq(ends(leader), HELD);
    ck_assert_int_eq(held("1-1-2"), 1);
    stage_end();
}
END_TEST

START_TEST(a_record_being_answered_is_nobodys_until_the_leader_is_done)
{
    yk_lane_host_t other;
    pid_t owner, leader;
    uint32_t number;

    stage_make();
    leader = leader_stopped(&owner, YK_LANE_ANSWERING, "1-1-4");
    /* it adds: the token it has is the one that is good */
    ck_assert_int_eq(ends(owner), UNRESOLVED);
    other = host;
    other.worker = OWNER;
    number = yk_lane_record_take(&other);
    ck_assert_uint_ne(number, OWNER);
    yk_lane_record_give(&other, number);
    kill(leader, SIGCONT);
    ck_assert_int_eq(ends(leader), HELD);
    ck_assert_int_eq(held("1-1-2"), 1);
    ck_assert_uint_eq(yk_lane_record_take(&other), OWNER);
    stage_end();
}
END_TEST

START_TEST(a_stopped_leader_does_not_close_the_lane)
{
    pid_t owner, leader, later;

    stage_make();
    leader = leader_stopped(&owner, YK_LANE_TAKEN, NULL);
    later = hold(3, NULL, "1-1-3", 10);
    ck_assert_int_eq(ends(later), HELD);
    ck_assert_int_eq(ends(owner), UNRESOLVED_WITH_TOKEN);
    kill(leader, SIGCONT);
    ck_assert_int_eq(ends(leader), HELD);
    ck_assert_int_eq(held("1-1-1"), 1);
    ck_assert_int_eq(held("1-1-3"), 1);
    stage_end();
}
END_TEST

/* Another one takes over, and the first one's wish with the rest. */
START_TEST(a_leader_stopped_before_its_batch_gets_its_own_answer)
{
    pid_t leader, owner;
    int status;

    stage_make();
    stops_early = 1;
    leader = hold(LEADER, NULL, "1-1-1", 20);
    wait_until_it_waits(LEADER);
    ck_ok(yk_lane_lock(&host, lane, YK_LANE_LOCK_WAIT));
    yk_lane_hand_on(&host, lane);
    yk_lane_unlock(&host, lane);
    ck_assert_int_eq(waitpid(leader, &status, WUNTRACED), leader);
    ck_assert(WIFSTOPPED(status));
    stops_early = 0;
    owner = hold(OWNER, NULL, "1-1-2", 20);
    ck_assert_int_eq(ends(owner), HELD);
    kill(leader, SIGCONT);
    ck_assert_int_eq(ends(leader), HELD);
    ck_assert_int_eq(held("1-1-1"), 1);
    ck_assert_int_eq(held("1-1-2"), 1);
    stage_end();
}
END_TEST

/* Of the owner whose time was over: nothing was written, and his record is
 * free again when somebody has gone through the queue. */
static void nothing_is_left(void)
{
    yk_lane_host_t other = host;
    pid_t later;

    lanes->lane[lane].led_since_us = 0; /* we have pretended for long enough */
    later = hold(3, NULL, "1-1-3", 10);
    ck_assert_int_eq(ends(later), HELD);
    ck_assert_int_eq(held("1-1-2"), 0);
    ck_assert_uint_eq(lanes->lane[lane].length, 0);
    other.worker = OWNER;
    ck_assert_uint_eq(yk_lane_record_take(&other), OWNER);
}

START_TEST(nobody_waits_for_one_who_was_stopped_with_the_lock)
{
    pid_t owner, keeper;

    stage_make();
    owner = hold(OWNER, NULL, "1-1-2", 1);
    wait_until_it_waits(OWNER);
    keeper = keeper_stopped(0);
    ck_assert_int_eq(ends(owner), BUSY);
    ck_assert_int_eq(yk_lane_word_state(lanes->record[OWNER].word),
                     YK_LANE_GONE);
    kill(keeper, SIGCONT);
    ck_assert_int_eq(ends(keeper), HELD);
    nothing_is_left();
    stage_end();
}
END_TEST

/* The same with an owner who lives on, and serves his next client. */
START_TEST(a_record_given_up_in_the_queue_is_freed_while_its_owner_lives)
{
    pid_t keeper;

    stage_make();
    host.worker = OWNER;
    ck_assert_uint_eq(yk_lane_record_take(&host), OWNER);
    ck_ok(yk_lane_lock(&host, lane, YK_LANE_LOCK_WAIT));
    yk_lane_append(&host, lane, OWNER);
    yk_lane_unlock(&host, lane);
    keeper = keeper_stopped(0);
    ck_assert_int_eq(yk_lane_give_up(&host, lane, OWNER), 1);
    ck_assert_uint_ne(yk_lane_record_take(&host), OWNER);
    kill(keeper, SIGCONT);
    ck_assert_int_eq(ends(keeper), HELD);
    nothing_is_left();
    stage_end();
}
END_TEST

START_TEST(who_dies_with_the_lock_leaves_no_record_behind)
{
    pid_t owner, keeper;

    stage_make();
    owner = hold(OWNER, NULL, "1-1-2", 1);
    wait_until_it_waits(OWNER);
    keeper = keeper_stopped(0);
    ck_assert_int_eq(ends(owner), BUSY);
    kill(keeper, SIGKILL);
    ck_assert_int_eq(waitpid(keeper, NULL, 0), keeper);
    nothing_is_left();
    stage_end();
}
END_TEST

START_TEST(who_is_to_lead_and_cannot_have_the_lock_gives_up_in_time)
{
    pid_t owner, keeper;

    stage_make();
    owner = hold(OWNER, NULL, "1-1-2", 1);
    wait_until_it_waits(OWNER);
    keeper = keeper_stopped(1);
    ck_assert_int_eq(ends(owner), BUSY);
    kill(keeper, SIGCONT);
    ck_assert_int_eq(ends(keeper), HELD);
    nothing_is_left();
    stage_end();
}
END_TEST

START_TEST(who_cannot_stand_in_the_lane_goes_by_himself)
{
    pid_t owner, keeper;

    stage_make();
    keeper = keeper_stopped(0);
    owner = hold(OWNER, NULL, "1-1-2", 10);
    ck_assert_int_eq(ends(owner), HELD);
    ck_assert_uint_eq(lanes->counts.direct, 1);
    kill(keeper, SIGCONT);
    ck_assert_int_eq(ends(keeper), HELD);
    ck_assert_int_eq(held("1-1-2"), 1);
    stage_end();
}
END_TEST

START_TEST(a_leader_who_cannot_hand_on_answers_all_the_same)
{
    pid_t owner, leader, keeper;

    stage_make();
    leader = leader_stopped(&owner, YK_LANE_TAKEN, NULL);
    keeper = keeper_stopped(0);
    kill(leader, SIGCONT);
    ck_assert_int_eq(ends(leader), HELD);
    ck_assert_int_eq(ends(owner), HELD);
    kill(keeper, SIGCONT);
    ck_assert_int_eq(ends(keeper), HELD);
    ck_assert_int_eq(held("1-1-1"), 1);
    ck_assert_int_eq(held("1-1-2"), 1);
    stage_end();
}
END_TEST

TCase *stopped_case(void)
{
    TCase *tcase = tcase_create("stopped");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase,
                   a_wish_that_came_into_the_record_later_is_not_carried_out);
    tcase_add_test(tcase, an_order_about_to_be_begun_is_named);
    tcase_add_test(tcase,
                   a_record_being_answered_is_nobodys_until_the_leader_is_done);
    tcase_add_test(tcase, a_stopped_leader_does_not_close_the_lane);
    tcase_add_test(tcase,
                   a_leader_stopped_before_its_batch_gets_its_own_answer);
    tcase_add_test(tcase, nobody_waits_for_one_who_was_stopped_with_the_lock);
    tcase_add_test(
        tcase, a_record_given_up_in_the_queue_is_freed_while_its_owner_lives);
    tcase_add_test(tcase, who_dies_with_the_lock_leaves_no_record_behind);
    tcase_add_test(tcase,
                   who_is_to_lead_and_cannot_have_the_lock_gives_up_in_time);
    tcase_add_test(tcase, who_cannot_stand_in_the_lane_goes_by_himself);
    tcase_add_test(tcase, a_leader_who_cannot_hand_on_answers_all_the_same);
    return tcase;
}
