/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../mod_yoyaku/core/lane_queue.h"
#include "contract.h"
#include "model.h"
#include "yoyaku/catalogue.h"
#include "yoyaku/desk.h"
#include "yoyaku/lane.h"

/*
 * Workers of a lane as real processes on a real database: what they were told
 * is written down in memory that all share, and compared with the book.
 */

#define PLACES 200
#define WORKERS 8

typedef struct told_t {
    _Atomic uint32_t held[PLACES]; /* how often somebody was told "held" */
    _Atomic uint32_t refused;
    _Atomic uint32_t faults;  /* any status but success */
    _Atomic uint32_t unknown; /* asked, and killed before the answer */
    _Atomic uint32_t ready;   /* have begun with the others */
    _Atomic uint32_t handed; /* 1: a leader stops before its COMMIT; 2: go on */
} told_t;

static yk_lanes_t *lanes;
static yk_workers_t *workers;
static told_t *told;
static model_history_t *histories;
static const char *plans;

static void *shared(apr_size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert(memory != MAP_FAILED);
    return memory;
}

static void stage_make(void)
{
    yk_store_t *store;
    const char *say = NULL;
    static const char *const keys[] = {"lane", "beside"};
    yk_setup_slot_t slot = {.title = "A lane", .hall = "hall"};

    pool_make();
    store = book_make();
    book_hall(store, "hall", 1, PLACES);
    slot.starts = apr_time_now() + apr_time_from_sec(86400);
    for (int i = 0; i < 2; i++) {
        slot.key = keys[i];
        ck_ok(yk_setup_slot(store, &say, 1, &slot, pool));
        ck_ok(yk_setup_slot_state(store, &say, 1, keys[i], YK_SLOT_OPEN, pool));
    }
    plans = server_beside("plans", pool);
    apr_dir_make(plans, APR_OS_DEFAULT, pool);
    lanes = shared(sizeof(*lanes));
    workers = shared(sizeof(*workers));
    told = shared(sizeof(*told));
    histories = shared(MODEL_WORKERS * sizeof(*histories));
    yk_lanes_kind.fresh(lanes);
    if (yk_workers_kind.fresh != NULL) {
        yk_workers_kind.fresh(workers);
    }
}

static void stage_end(void)
{
    munmap(lanes, sizeof(*lanes));
    munmap(workers, sizeof(*workers));
    munmap(told, sizeof(*told));
    munmap(histories, MODEL_WORKERS * sizeof(*histories));
    pool_end();
}

/* ---- a worker ---- */

static apr_status_t hold_in(yk_desk_t *desk, yk_reply_t *reply,
                            const char *slot, uint32_t no, apr_pool_t *p)
{
    yk_wish_line_t line = {
        .slot = slot,
        .place = apr_psprintf(p, "1-%u-%u", no / 40 + 1, no % 40 + 1),
        .nparts = 1,
        .parts = {{NULL, 1}},
        .field = "places[0]"};
    yk_wish_t wish = {.nlines = 1, .lines = &line};

    return yk_desk_hold(desk, reply, &wish, NULL, NULL, p);
}

static apr_status_t hold_one(yk_desk_t *desk, yk_reply_t *reply, uint32_t no,
                             apr_pool_t *p)
{
    return hold_in(desk, reply, "lane", no, p);
}

/* Try places in an order of one's own until the time is over, the even ones of
 * one slot and the odd ones of another that shares its lane. */
static void worker(uint32_t number, apr_time_t until)
{
    yk_terms_t terms = {.tenant_id = 1,
                        .booker = "",
                        .who = "worker",
                        .confirm = YK_CONFIRM_BOOKER,
                        .hold_ttl = apr_time_from_sec(600),
                        .hold_max_lifetime = apr_time_from_sec(1800),
                        .checkout_ttl = apr_time_from_sec(600),
                        .wait = apr_time_from_sec(10),
                        .hold_places = 8};
    yk_lane_host_t host = {.lanes = lanes,
                           .width = 1,
                           .workers = workers,
                           .identity = yk_worker_identity(getpid()),
                           .realm = 1};
    yk_catalogue_t *catalogue;
    yk_store_t *store;
    apr_pool_t *p;

    apr_pool_create(&p, NULL);
    host.worker = yk_workers_join(workers, 1, 1);
    if (yk_catalogue_create(&catalogue, plans, p) != APR_SUCCESS ||
        yk_store_open(&store, server_params("contract", p), p) != APR_SUCCESS) {
        told->faults++;
        _exit(1);
    }
    for (uint32_t i = 0; apr_time_now() < until; i++) {
        uint32_t no = (i * 7 + number * 31) % PLACES;
        apr_pool_t *own;
        yk_desk_t *desk;
        yk_reply_t reply;
        apr_status_t rv;

        apr_pool_create(&own, p);
        desk = yk_desk_make(store, catalogue, &terms, own);
        yk_desk_lane(desk, &host);
        told->unknown++;
        rv = hold_in(desk, &reply, no % 2 == 0 ? "lane" : "beside", no, own);
        if (rv == APR_SUCCESS && reply.answer == YK_ANSWER_HELD) {
            told->held[no]++;
        }
        else if (rv == APR_SUCCESS && reply.answer == YK_ANSWER_TAKEN) {
            told->refused++;
        }
        else {
            fprintf(stderr, "worker %u: status %d, answer %s\n", number, rv,
                    yk_answer_reason(reply.answer));
            told->faults++;
        }
        told->unknown--;
        yk_store_rest(store);
        apr_pool_destroy(own);
    }
    _exit(0);
}

static pid_t hire(uint32_t number, apr_time_t until)
{
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        worker(number, until);
    }
    return pid;
}

/* ---- the book ---- */

static void compare_with_book(int killed)
{
    MYSQL *line = book_line();
    long long held = server_number(
        line, "SELECT COUNT(*) FROM yoyaku_slot_place WHERE state=1");
    long long orders = server_number(line, "SELECT COUNT(*) FROM yoyaku_order");
    long long lines =
        server_number(line, "SELECT COUNT(*) FROM yoyaku_booking WHERE live=1");
    uint32_t once = 0;

    for (uint32_t i = 0; i < PLACES; i++) {
        ck_assert_uint_le(told->held[i], 1);
        once += told->held[i];
    }
    ck_assert_int_eq(held, PLACES);
    ck_assert_int_eq(orders, PLACES);
    ck_assert_int_eq(lines, PLACES);
    /* Whoever was killed may have held a place and not told us. */
    ck_assert_uint_le(once, PLACES);
    ck_assert_uint_ge(once + (uint32_t)killed, PLACES);
    ck_assert_uint_eq(told->faults, 0);
}

START_TEST(holds_through_a_lane_sell_every_place_once)
{
    apr_time_t until = apr_time_now() + apr_time_from_sec(3);
    pid_t pids[WORKERS];
    int status;

    stage_make();
    for (uint32_t i = 0; i < WORKERS; i++) {
        pids[i] = hire(i, until);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    compare_with_book(0);
    ck_assert_uint_gt(lanes->counts.batches, 0);
    ck_assert_uint_gt(lanes->counts.wishes, lanes->counts.batches);
    stage_end();
}
END_TEST

START_TEST(workers_killed_at_any_moment_lose_and_double_nothing)
{
    apr_time_t until = apr_time_now() + apr_time_from_sec(8);
    pid_t pids[WORKERS];
    int killed = 0;

    stage_make();
    for (uint32_t i = 0; i < WORKERS; i++) {
        pids[i] = hire(i, until);
    }
    while (apr_time_now() < until - apr_time_from_sec(3)) {
        uint32_t i = (uint32_t)rand() % WORKERS;

        apr_sleep(apr_time_from_msec(20));
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        yk_workers_bury(workers, (uint32_t)pids[i]);
        killed++;
        pids[i] = hire(i + (uint32_t)killed, until);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        int status;

        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    compare_with_book(killed);
    stage_end();
}
END_TEST

/* ---- a crash at every step, against a sequential model ----
 *
 * Four workers with wishes of chance for few places, so that they meet; worker
 * 0 dies at its n-th step inside a lane. What everybody was told, and the book
 * in the end, must be what one clerk could have told who serves one after the
 * other (model.h).
 */

static uint32_t die_at;
static uint32_t seed; /* of what they wish for */
static uint32_t steps_gone;

static void die_in_time(void)
{
    if (++steps_gone == die_at) {
        kill(getpid(), SIGKILL);
    }
}

/* Done by one clerk; any answer but the model's ends the process with 2. */
static void expect(apr_status_t rv, const yk_reply_t *reply, yk_answer_e one,
                   yk_answer_e other)
{
    if (rv != APR_SUCCESS || (reply->answer != one && reply->answer != other)) {
        fprintf(stderr, "clerk: status %d, answer %s\n", rv,
                yk_answer_reason(reply->answer));
        _exit(2);
    }
}

/* What a worker has in hand. */
typedef struct hand_t {
    yk_desk_t *desk;
    apr_pool_t *p;
    uint32_t norders;
    uint32_t orders[MODEL_DEEDS]; /* held: the deed that began it */
    uint32_t places[MODEL_DEEDS]; /* of that deed's order */
    yk_hash_t tokens[MODEL_DEEDS];
} hand_t;

/* One or two places, none of `but`. */
static uint32_t some_places(uint32_t but)
{
    uint32_t places = 0;

    for (int i = rand() % 2; i < 2 || places == 0; i++) {
        places |= 1U << rand() % MODEL_PLACES & ~but;
    }
    return places;
}

static yk_wish_t *wish_of(uint32_t places, apr_pool_t *p)
{
    yk_wish_t *wish = apr_pcalloc(p, sizeof(*wish));

    wish->lines = apr_pcalloc(p, MODEL_PLACES * sizeof(*wish->lines));
    for (uint32_t i = 0; i < MODEL_PLACES; i++) {
        yk_wish_line_t *line = &wish->lines[wish->nlines];

        if (places >> i & 1) {
            line->slot = "lane";
            line->place = apr_psprintf(p, "1-1-%u", i + 1);
            line->nparts = 1;
            line->parts[0].quantity = 1;
            line->field = "places";
            wish->nlines++;
        }
    }
    return wish;
}

/* Choose what to ask for, and about which order of one's own. */
static void choose(hand_t *hand, model_deed_t *deed, uint32_t *at)
{
    int dice = rand() % 10;

    deed->what = hand->norders == 0 || dice < 5 ? MODEL_HOLD
                 : dice < 7                     ? MODEL_ADD
                 : dice < 9                     ? MODEL_RELEASE
                                                : MODEL_CONFIRM;
    if (deed->what == MODEL_HOLD) {
        deed->places = some_places(0);
        return;
    }
    *at = (uint32_t)rand() % hand->norders;
    deed->order = hand->orders[*at];
    if (deed->what == MODEL_ADD) {
        deed->places = some_places(hand->places[deed->order]);
    }
}

static apr_status_t ask(hand_t *hand, yk_reply_t *reply,
                        const model_deed_t *deed)
{
    yk_claim_t claim = {.token = &hand->tokens[deed->order]};

    switch (deed->what) {
    case MODEL_HOLD:
        return yk_desk_hold(hand->desk, reply, wish_of(deed->places, hand->p),
                            NULL, NULL, hand->p);
    case MODEL_ADD:
        return yk_desk_hold(hand->desk, reply, wish_of(deed->places, hand->p),
                            &claim, NULL, hand->p);
    case MODEL_RELEASE:
        return yk_desk_release(hand->desk, reply, NULL, &claim, NULL, hand->p);
    default:
        return yk_desk_confirm(hand->desk, reply, NULL, &claim, NULL, hand->p);
    }
}

/* Any answer but the model's ends the process. */
static int was_taken(const model_deed_t *deed, apr_status_t rv,
                     const yk_reply_t *reply)
{
    yk_answer_e done = deed->what <= MODEL_ADD ? YK_ANSWER_HELD : YK_ANSWER_OK;

    if (rv != APR_SUCCESS ||
        (reply->answer != done &&
         (deed->what > MODEL_ADD || reply->answer != YK_ANSWER_TAKEN))) {
        fprintf(stderr, "clerk: deed %d, status %d, answer %s\n", deed->what,
                rv, yk_answer_reason(reply->answer));
        _exit(2);
    }
    return reply->answer == done;
}

/* Work of a worker: one deed. */
static void one_deed(yk_desk_t *desk, uint32_t number, apr_pool_t *p)
{
    static hand_t in_hand, *hand = &in_hand;
    uint32_t index = histories[number].n, at = 0;
    model_deed_t *deed = &histories[number].deeds[index];
    yk_reply_t reply = {0};

    if (index == 0) {
        srand((seed * 400 + die_at) * MODEL_WORKERS + number);
        told->ready++;
    }
    while (told->ready < MODEL_WORKERS) { /* so that they meet */
        apr_sleep(100);
    }
    if (number == 0) {
        yk_lane_step = die_in_time;
    }
    hand->desk = desk;
    hand->p = p;
    choose(hand, deed, &at);
    deed->from = apr_time_now();
    histories[number].n++;
    deed->taken = was_taken(deed, ask(hand, &reply, deed), &reply);
    if (deed->what == MODEL_HOLD && deed->taken) {
        deed->order_id = reply.order->order_id;
        yk_token_hash(&hand->tokens[index], reply.token);
        hand->orders[hand->norders++] = index;
        hand->places[index] = deed->places;
    }
    else if (deed->what == MODEL_ADD && deed->taken) {
        hand->places[deed->order] |= deed->places;
    }
    else if (deed->what > MODEL_ADD) {
        hand->orders[at] = hand->orders[--hand->norders];
    }
    deed->to = apr_time_now();
}

/* A process with a desk of its own; `work` is what it does there. */
static pid_t employ(void (*work)(yk_desk_t *desk, uint32_t number,
                                 apr_pool_t *p),
                    uint32_t number, uint32_t rounds)
{
    yk_terms_t terms = {.tenant_id = 1,
                        .booker = "",
                        .who = "clerk",
                        .confirm = YK_CONFIRM_BOOKER,
                        .hold_ttl = apr_time_from_sec(600),
                        .hold_max_lifetime = apr_time_from_sec(1800),
                        .checkout_ttl = apr_time_from_sec(600),
                        .wait = apr_time_from_sec(10),
                        .hold_places = 8};
    yk_lane_host_t host = {
        .lanes = lanes, .workers = workers, .realm = 1, .width = 1};
    yk_catalogue_t *catalogue;
    yk_store_t *store;
    apr_pool_t *p;
    pid_t pid = fork();

    if (pid != 0) {
        return pid;
    }
    apr_pool_create(&p, NULL);
    host.identity = yk_worker_identity((uint32_t)getpid());
    host.worker = yk_workers_join(workers, 1, 1);
    if (yk_catalogue_create(&catalogue, plans, p) != APR_SUCCESS ||
        yk_store_open(&store, server_params("contract", p), p) != APR_SUCCESS) {
        _exit(3);
    }
    for (uint32_t round = 0; round < rounds; round++) {
        yk_desk_t *desk = yk_desk_make(store, catalogue, &terms, p);

        yk_desk_lane(desk, &host);
        work(desk, number, p);
        yk_store_rest(store);
    }
    _exit(0);
}

static long long of_place(MYSQL *line, const char *what, uint32_t no)
{
    return server_number(line, apr_psprintf(pool,
                                            "SELECT %s FROM yoyaku_slot_place "
                                            "JOIN yoyaku_slot USING (slot_id) "
                                            "WHERE slot_key='lane' AND "
                                            "place_no=%u",
                                            what, no));
}

static void read_book(model_book_t *book, MYSQL *line)
{
    for (uint32_t i = 0; i < MODEL_PLACES; i++) {
        book->order_id[i] = (uint64_t)of_place(line, "order_id", i);
        book->is_booked[i] = of_place(line, "yoyaku_slot_place.state", i) == 2;
    }
}

/* Every place's order has a live line for it, and the other way round. */
static void lines_agree(MYSQL *line)
{
    ck_assert_int_eq(
        server_number(line, "SELECT COUNT(*) FROM yoyaku_slot_place p WHERE "
                            "p.state>0 AND (SELECT COUNT(*) FROM "
                            "yoyaku_booking b WHERE b.order_id=p.order_id AND "
                            "b.place_no=p.place_no AND b.live=1)<>1"),
        0);
    ck_assert_int_eq(
        server_number(line, "SELECT COUNT(*) FROM yoyaku_booking b WHERE "
                            "b.live=1 AND (SELECT p.order_id FROM "
                            "yoyaku_slot_place p WHERE p.slot_id=b.slot_id AND "
                            "p.place_no=b.place_no)<>b.order_id"),
        0);
}

/* @return 1 when worker 0 outlived its deeds: there are no more steps */
static int crash_at(uint32_t step, MYSQL *line)
{
    pid_t pids[MODEL_WORKERS];
    model_book_t book;
    int status, outlived = 0;

    memset(histories, 0, MODEL_WORKERS * sizeof(*histories));
    server_run(line, "UPDATE yoyaku_slot_place SET order_id=0,state=0,"
                     "until_us=0");
    server_run(line, "DELETE FROM yoyaku_booking");
    server_run(line, "DELETE FROM yoyaku_order");
    die_at = step;
    told->ready = 0;
    for (uint32_t i = 0; i < MODEL_WORKERS; i++) {
        pids[i] = employ(one_deed, i, MODEL_DEEDS);
    }
    ck_assert_int_eq(waitpid(pids[0], &status, 0), pids[0]);
    yk_workers_bury(workers, (uint32_t)pids[0]);
    outlived = WIFEXITED(status);
    ck_assert(!outlived || WEXITSTATUS(status) == 0);
    for (uint32_t i = 1; i < MODEL_WORKERS; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(status == 0, "step %u, clerk %u: %d", step, i, status);
    }
    read_book(&book, line);
    ck_assert_msg(model_explains(histories, &book),
                  "step %u: no clerk could have told them that", step);
    lines_agree(line);
    return outlived;
}

/* The model itself: two workers, one place. */
START_TEST(no_clerk_sells_twice_nor_refuses_what_is_free)
{
    model_history_t two[MODEL_WORKERS] = {
        {1, {{.places = 1, .taken = 1, .order_id = 7, .from = 1, .to = 5}}},
        {1, {{.places = 1, .taken = 0, .from = 2, .to = 4}}}};
    model_book_t book = {.order_id = {7}};

    ck_assert(model_explains(two, &book));
    book.order_id[0] = 8; /* nobody's */
    ck_assert(!model_explains(two, &book));
    book.order_id[0] = 0; /* told, and lost */
    ck_assert(!model_explains(two, &book));
    book.order_id[0] = 7;
    book.is_booked[0] = 1;
    ck_assert(!model_explains(two, &book));
    book.is_booked[0] = 0;
    two[1].deeds[0].taken = 1; /* sold twice */
    two[1].deeds[0].order_id = 8;
    ck_assert(!model_explains(two, &book));
    two[1].deeds[0].order_id = 0;
    two[1].deeds[0].to = 0; /* he died over it: it may not have been done */
    ck_assert(model_explains(two, &book));
    two[1].deeds[0].taken = 0; /* refused before anybody had it */
    two[1].deeds[0].to = 4;
    two[0].deeds[0].from = 5;
    ck_assert(!model_explains(two, &book));
}
END_TEST

START_TEST(a_crash_at_any_step_of_a_lane_is_seen_by_nobody_else)
{
    uint32_t steps = 0;
    MYSQL *line;

    stage_make();
    line = book_line();
    for (seed = 0; seed < 3; seed++) {
        uint32_t step = 1;

        while (step < 400 && !crash_at(step, line)) {
            step++;
        }
        ck_assert_uint_lt(step, 400);
        steps += step;
    }
    ck_assert_uint_gt(lanes->counts.rescued, 0);
    ck_assert_uint_gt(steps, 90);
    stage_end();
}
END_TEST

/* ---- two batches at once ---- */

/* Until the test goes on, or has failed long ago. */
static void stop_at(uint32_t stage)
{
    told->handed = stage;
    for (int i = 0; i < 20000 && told->handed == stage; i++) {
        apr_sleep(apr_time_from_msec(1));
    }
}

static void stop_when_handed_on(void)
{
    if (lanes->counts.handed_on == 1 && told->handed == 0) {
        stop_at(1);
    }
}

static void first(yk_desk_t *desk, uint32_t number, apr_pool_t *p)
{
    yk_reply_t reply;

    yk_lane_step = stop_when_handed_on;
    expect(hold_one(desk, &reply, 0, p), &reply, YK_ANSWER_HELD,
           YK_ANSWER_HELD);
}

static void wants_the_same(yk_desk_t *desk, uint32_t number, apr_pool_t *p)
{
    yk_reply_t reply;

    expect(hold_one(desk, &reply, 0, p), &reply, YK_ANSWER_TAKEN,
           YK_ANSWER_TAKEN);
}

static void wants_another(yk_desk_t *desk, uint32_t number, apr_pool_t *p)
{
    yk_reply_t reply;

    expect(hold_one(desk, &reply, 1 + number, p), &reply, YK_ANSWER_HELD,
           YK_ANSWER_HELD);
}

START_TEST(the_next_batch_is_decided_while_one_is_committed)
{
    pid_t pids[3];
    int status;

    stage_make();
    pids[0] = employ(first, 0, 1);
    while (told->handed == 0) {
        apr_sleep(apr_time_from_msec(1));
    }
    ck_assert_int_eq(
        server_number(book_line(), "SELECT COUNT(*) FROM yoyaku_order"), 0);
    pids[1] = employ(wants_the_same, 1, 1);
    pids[2] = employ(wants_another, 2, 1);
    ck_assert_int_eq(waitpid(pids[2], &status, 0), pids[2]);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(waitpid(pids[1], &status, WNOHANG), 0);
    told->handed = 2;
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    stage_end();
}
END_TEST

/* ---- few wait: they go together with those who come meanwhile ---- */

static uint32_t waiting(void)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < YK_LANES; i++) {
        n += lanes->lane[i].length;
    }
    return n;
}

static int somebody_leads(void)
{
    for (uint32_t i = 0; i < YK_LANES; i++) {
        if (lanes->lane[i].leads != YK_LANE_NONE) {
            return 1;
        }
    }
    return 0;
}

/* 1: leads and has gathered nobody; 3: all is decided; 5: it is in the book. */
static void stop_thrice(void)
{
    static int steps_led;

    if (told->handed == 0 && somebody_leads()) {
        stop_at(1);
    }
    else if (lanes->counts.leaders == 1 && told->handed < 6) {
        steps_led++;
        if (steps_led == 2) {
            stop_at(3);
        }
        else if (steps_led == 4) {
            stop_at(5);
        }
    }
}

static void leads_a_crowd(yk_desk_t *desk, uint32_t number, apr_pool_t *p)
{
    yk_lane_step = stop_thrice;
    wants_another(desk, number, p);
}

/* Until that is so; five seconds are enough. */
static void until(uint32_t stage, uint32_t length)
{
    for (int i = 0; i < 5000 && (told->handed != stage || waiting() != length);
         i++) {
        apr_sleep(apr_time_from_msec(1));
    }
    ck_assert_uint_eq(told->handed, stage);
    ck_assert_uint_eq(waiting(), length);
}

START_TEST(few_who_wait_are_no_batch_before_the_commit)
{
    pid_t pids[6];
    int status;

    stage_make();
    pids[0] = employ(leads_a_crowd, 0, 1);
    until(1, 1);
    for (uint32_t i = 1; i < 5; i++) {
        pids[i] = employ(wants_another, i, 1);
    }
    until(1, 5);
    told->handed = 2;
    until(3, 0);
    pids[5] = employ(wants_another, 5, 1);
    until(3, 1);
    told->handed = 4;
    until(5, 1);
    ck_assert_uint_eq(lanes->counts.handed_on, 0);
    ck_assert_int_eq(
        server_number(book_line(), "SELECT COUNT(*) FROM yoyaku_order"), 5);
    told->handed = 6;
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(lanes->counts.batches, 2);
    stage_end();
}
END_TEST

TCase *lane_case(void)
{
    TCase *tcase = tcase_create("lane");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, holds_through_a_lane_sell_every_place_once);
    tcase_add_test(tcase, workers_killed_at_any_moment_lose_and_double_nothing);
    tcase_add_test(tcase, the_next_batch_is_decided_while_one_is_committed);
    tcase_add_test(tcase, few_who_wait_are_no_batch_before_the_commit);
    tcase_add_test(tcase, no_clerk_sells_twice_nor_refuses_what_is_free);
    tcase_add_test(tcase, a_crash_at_any_step_of_a_lane_is_seen_by_nobody_else);
    return tcase;
}
