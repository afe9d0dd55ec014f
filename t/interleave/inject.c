/* SPDX-License-Identifier: Apache-2.0 */
#include "inject.h"
#include "explore.h"
#include "judge.h"
#include <apr_strings.h>
#include <pthread.h>
#include <string.h>

/* A house with a section of each mode, quotas and limits; x is held, l is
 * locked, y is confirmed, z is past its deadline. */
static const char house[] =
    "hall A:8 B:2 C:12\n"
    "slot s B=pooled:20 C=assigned\n"
    "price s adult 1000 EUR quota=40\n"
    "price s child 500 EUR\n"
    "limit booker slot:s places 8\n"
    "limit order slot:s places 8\n"
    "before x booker=bob hold A-1:adult B*2:child C*2:adult\n"
    "before l hold A-2:adult B*1:adult then checkout\n"
    "before y hold A-3:adult C*1:child then confirm\n"
    "before z clock -3000s then hold A-4:adult B*1:adult C*1:child\n";

static const struct {
    const char *name, *act;
} operations[] = {
    {"hold", "session a booker=ann hold A-5:adult A-6:adult B*2:child "
             "C*3:adult key=0123456789abcdef012345"},
    {"hold and confirm", "session a hold A-7:child C*1:child confirm=1"},
    {"take over", "session a hold A-4:adult"},
    {"add", "session a add @x A-5:adult B*1:adult"},
    {"exchange", "session a exchange @x give=1,2*1 A-5:adult C*1:child"},
    {"exchange of a confirmed one",
     "session a exchange @y give=1 A-5:adult shop=1"},
    {"remove", "session a remove @x 1"},
    {"checkout", "session a checkout @x"},
    {"reopen", "session a reopen @l"},
    {"confirm", "session a confirm @x"},
    {"pay", "session a pay @l"},
    {"pay late", "session a pay @z"},
    {"release", "session a release @x"},
    {"cancel", "session a cancel @y"},
    /* from here on what is asked again when it did not work: first what says
     * so at once, then commands, which have a minute's patience */
    {"look", "session a look @x"},
    {"sweep", "session a sweep"},
    {"price with a quota", "session a price s student 300 EUR quota=3"},
    {"limit", "session a limit booker resource:r places 3"},
    {"close", "session a close s"},
};

#define OPERATIONS ((int)(sizeof(operations) / sizeof(operations[0])))
#define PACKETS_MOST 64

int inject_operations(void)
{
    return OPERATIONS;
}

const char *inject_name(int i)
{
    return operations[i].name;
}

/* What is put into a packet, and where. */
typedef struct fault_t {
    int packet; /* which one of the operation; -1 none */
    int statement;
    int always; /* at every packet of that kind */
    packet_e kind;
    int number;     /* 1205, 1213, 1020 */
    int while_sent; /* while the rows are sent */
    loss_e loss;
} fault_t;

typedef struct try_t {
    player_t *player;
    fault_t fault;
    int npackets, hits;
    const char *packets[PACKETS_MOST];
    apr_pool_t *p;
    int late_fd;
    const char *late_sql;
    pthread_t late;
    int late_started;
} try_t;

/* ---- putting errors in ---- */

static int statements(const char *sql)
{
    int n = 1;
    const char *at;
    for (at = strchr(sql, ';'); at; at = strchr(at + 1, ';')) {
        n += at[1 + strspn(at + 1, " \n")] != '\0';
    }
    return n;
}

/* Begin and end of statement i. */
static const char *statement(const char *sql, int i, size_t *len)
{
    while (i-- > 0) {
        sql = strchr(sql, ';') + 1;
    }
    sql += strspn(sql, " \n");
    *len = strcspn(sql, ";");
    return sql;
}

static int is_select(const char *sql, int i)
{
    size_t len;
    return strncmp(statement(sql, i, &len), "SELECT", 6) == 0;
}

static const char *error_text(const fault_t *fault, apr_pool_t *p)
{
    if (fault->while_sent) {
        return apr_psprintf(
            p,
            "SELECT yk_fail(n, %d) FROM (SELECT 1 AS n UNION ALL SELECT 2) "
            "AS two",
            fault->number);
    }
    if (fault->number == 1205) {
        return "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205";
    }
    return apr_psprintf(p,
                        "BEGIN NOT ATOMIC ROLLBACK; SIGNAL SQLSTATE '40001' "
                        "SET MYSQL_ERRNO = %d; END",
                        fault->number);
}

static const char *with_error(const char *sql, const fault_t *fault,
                              apr_pool_t *p)
{
    size_t len;
    const char *at = statement(sql, fault->statement, &len);
    return apr_pstrcat(p, apr_pstrndup(p, sql, (apr_size_t)(at - sql)),
                       error_text(fault, p), at + len, NULL);
}

static void *deliver_late(void *data)
{
    try_t *attempt = data;
    apr_sleep(30000);
    loss_deliver(attempt->late_fd, attempt->late_sql);
    return NULL;
}

static const char *with_loss(try_t *attempt, const char *sql, apr_pool_t *p)
{
    sql = loss_break(attempt->player, &attempt->late_fd, sql,
                     attempt->fault.loss, p);
    if (attempt->late_fd >= 0) {
        attempt->late_sql = apr_pstrdup(attempt->p, sql);
        attempt->late_started = 1;
        pthread_create(&attempt->late, NULL, deliver_late, attempt);
    }
    return sql;
}

static const char *inject(void *baton, const char *sql, apr_pool_t *p)
{
    try_t *attempt = baton;
    const fault_t *fault = &attempt->fault;
    int here = attempt->npackets++;
    int hit = fault->always ? packet_of(sql) == fault->kind &&
                                  statements(sql) > fault->statement
                            : here == fault->packet;
    if (here < PACKETS_MOST) {
        attempt->packets[here] = apr_pstrdup(attempt->p, sql);
    }
    if (!hit) {
        return sql;
    }
    attempt->hits++;
    return fault->loss ? with_loss(attempt, sql, p) : with_error(sql, fault, p);
}

/* ---- one try ---- */

typedef struct bench_t {
    world_t *world;
    script_t *script;
    script_t *hurried; /* the same with little patience: for "always" */
    cast_t *before;
    const char *word;      /* what is answered when nothing goes wrong */
    const char *outcome;   /* and what the book then says, in short */
    const char *untouched; /* the book before */
    int again;             /* a sweep, a command: asked again until done */
    int patient;
    int keyed; /* with an idempotency key */
    int tries;
    apr_pool_t *p, *ptry;
} bench_t;

/* What must be the same however often it was tried: no random numbers. */
static const char summary_sql[] =
    "SELECT (SELECT GROUP_CONCAT(state, ':', version, ':', attempt ORDER BY "
    "state, version, attempt) FROM yoyaku_order), "
    "(SELECT GROUP_CONCAT(live, ':', quantity, ':', price_no ORDER BY live, "
    "quantity, price_no) FROM yoyaku_booking), "
    "(SELECT GROUP_CONCAT(why ORDER BY why) FROM yoyaku_journal), "
    "(SELECT GROUP_CONCAT(kind, ':', no, ':', used, ':', max ORDER BY kind, "
    "owner, no) FROM yoyaku_lock_anchor WHERE kind >= 2), "
    "(SELECT GROUP_CONCAT(state, ':', version ORDER BY slot_id, place_no) "
    "FROM yoyaku_slot_place), (SELECT COUNT(*) FROM yoyaku_idempotency), "
    "(SELECT GROUP_CONCAT(in_force, ':', max ORDER BY max) FROM yoyaku_limit), "
    "(SELECT GROUP_CONCAT(state) FROM yoyaku_slot), "
    "(SELECT GROUP_CONCAT(counted, ':', quota ORDER BY price_no) FROM "
    "yoyaku_price)";

static try_t *try_once(bench_t *bench, const fault_t *fault)
{
    try_t *attempt;
    apr_pool_clear(bench->ptry);
    world_restore(bench->world);
    attempt = apr_pcalloc(bench->ptry, sizeof(*attempt));
    attempt->p = bench->ptry;
    attempt->fault = *fault;
    attempt->player = player_make(
        bench->world, fault->always ? bench->hurried : bench->script,
        cast_copy(bench->before, bench->ptry),
        ITEM(bench->script->sessions, 0, role_t *), bench->ptry);
    player_warm(attempt->player);
    player_watch(attempt->player, inject, attempt);
    player_perform(attempt->player);
    player_leave(attempt->player);
    if (attempt->late_started) {
        pthread_join(attempt->late, NULL);
    }
    bench->tries++;
    return attempt;
}

static const char *describe(const bench_t *bench, const try_t *attempt,
                            const char *wrong)
{
    const fault_t *fault = &attempt->fault;
    static const char *const losses[] = {"-", "before", "never", "done",
                                         "late"};
    const char *all = "";
    int i;
    for (i = 0; i < attempt->npackets && i < PACKETS_MOST; i++) {
        all = apr_psprintf(bench->p, "%s\n  %d. %.1200s", all, i,
                           attempt->packets[i]);
    }
    return apr_psprintf(
        bench->p,
        "%s\n%s: packet %d statement %d errno %d%s%s, line lost: %s; answered "
        "%s (%d)%s\n-- book:\n%s",
        wrong, bench->script->name, fault->packet, fault->statement,
        fault->number, fault->while_sent ? " while rows are sent" : "",
        fault->always ? ", every time" : "", losses[fault->loss],
        attempt->player->results[0].word, attempt->player->results[0].rv, all,
        judge_dump(bench->world, bench->p));
}

/* unresolved: commands do not look for their fate, they are asked again.
 * in_progress: a time-out while writing under a key can only mean a twin. */
static int is_refusal(const bench_t *bench, const try_t *attempt)
{
    const char *word = attempt->player->results[0].word;
    return strcmp(word, "busy") == 0 || strcmp(word, "away") == 0 ||
           (bench->patient && strcmp(word, "unresolved") == 0) ||
           (bench->keyed && attempt->fault.number == 1205 &&
            attempt->fault.kind == PACKET_WRITE &&
            strcmp(word, "in_progress") == 0);
}

/* A command that could not finish says so, and asked again it finishes. */
static const char *ask_again(bench_t *bench, const try_t *attempt)
{
    player_t *player = attempt->player;
    const char *now;
    player_watch(player, NULL, NULL);
    player_perform(player);
    player_leave(player);
    now = server_ask_all(bench->world->monitor, summary_sql, bench->ptry);
    return strcmp(now, bench->outcome) == 0
               ? NULL
               : describe(bench, attempt,
                          apr_psprintf(bench->ptry,
                                       "asked again, not done:\n"
                                       "%s%s",
                                       bench->outcome, now));
}

/* Is the book as it was, or done once, and is the answer the one for it? */
static const char *examine(bench_t *bench, const try_t *attempt, int may_fail)
{
    const char *word = attempt->player->results[0].word;
    const char *wrong;
    apr_pool_t *p = bench->ptry;
    if (attempt->player->open_lines) {
        return describe(bench, attempt, "a line was left in a transaction");
    }
    wrong = judge_final(bench->world, attempt->player->cast, bench->script, p);
    if (wrong) {
        return describe(bench, attempt, wrong);
    }
    if (strcmp(word, bench->word) == 0) {
        wrong = server_ask_all(bench->world->monitor, summary_sql, p);
        return strcmp(wrong, bench->outcome) == 0
                   ? NULL
                   : describe(bench, attempt,
                              apr_psprintf(p, "not done once:\n%s%s",
                                           bench->outcome, wrong));
    }
    if ((!may_fail && !bench->again) || !is_refusal(bench, attempt)) {
        return describe(bench, attempt, "not the answer without a fault");
    }
    if (bench->again) {
        return ask_again(bench, attempt);
    }
    wrong = judge_dump(bench->world, p);
    return strcmp(wrong, bench->untouched) == 0
               ? NULL
               : describe(bench, attempt, "refused, but not untouched");
}

static void prepare(bench_t *bench, world_t *world, int i, try_t **dry,
                    apr_pool_t *p)
{
    fault_t none = {.packet = -1};
    const char *text =
        apr_pstrcat(p, house, "terms wait=2s\n", operations[i].act, "\n", NULL);
    memset(bench, 0, sizeof(*bench));
    bench->world = world;
    bench->p = p;
    bench->again = i >= OPERATIONS - 5;
    bench->patient = i >= OPERATIONS - 3;
    bench->keyed = strstr(operations[i].act, "key=") != NULL;
    apr_pool_create(&bench->ptry, p);
    bench->script = script_parse(operations[i].name, text, p);
    bench->hurried = script_parse(operations[i].name,
                                  apr_pstrcat(p, house, "terms wait=50ms\n",
                                              operations[i].act, "\n", NULL),
                                  p);
    server_do(world->monitor,
              "CREATE FUNCTION IF NOT EXISTS yk_fail(n INT, e INT) RETURNS "
              "INT NO SQL BEGIN IF n = 2 THEN SIGNAL SQLSTATE 'HY000' SET "
              "MYSQL_ERRNO = e; END IF; RETURN n; END");
    bench->before = explore_begin(world, bench->script, p);
    bench->untouched = judge_dump(world, p);
    *dry = try_once(bench, &none);
    bench->word = apr_pstrdup(p, (*dry)->player->results[0].word);
    bench->outcome = server_ask_all(world->monitor, summary_sql, p);
    /* the dry run's packets outlive its pool */
    *dry = apr_pmemdup(p, *dry, sizeof(**dry));
    for (i = 0; i < (*dry)->npackets && i < PACKETS_MOST; i++) {
        (*dry)->packets[i] = apr_pstrdup(p, (*dry)->packets[i]);
    }
}

static const char *errors_in_packet(bench_t *bench, const try_t *dry, int k)
{
    static const int numbers[] = {1205, 1213, 1020};
    const char *sql = dry->packets[k], *wrong = NULL;
    int n = statements(sql), j, e, sent;
    for (j = 0; j < n && !wrong; j++) {
        for (e = 0; e < 3 && !wrong; e++) {
            for (sent = 0; sent <= is_select(sql, j) && !wrong; sent++) {
                fault_t fault = {.packet = k,
                                 .statement = j,
                                 .number = numbers[e],
                                 .while_sent = sent};
                wrong = examine(bench, try_once(bench, &fault), 0);
            }
        }
        if (!wrong && !bench->patient && (j == 0 || j == n / 2 || j == n - 1)) {
            fault_t fault = {.always = 1,
                             .kind = packet_of(sql),
                             .packet = k,
                             .statement = j,
                             .number = j == 0 ? 1205 : 1213};
            wrong = examine(bench, try_once(bench, &fault), 1);
        }
    }
    return wrong;
}

static const char *check_dry(bench_t *bench, const try_t *dry)
{
    if (strcmp(bench->word, "ok") != 0 && strcmp(bench->word, "held") != 0) {
        return describe(bench, dry, "it does not even work without a fault");
    }
    if (dry->npackets > PACKETS_MOST) {
        return describe(bench, dry, "too many packets");
    }
    return examine(bench, dry, 0);
}

const char *inject_errors(world_t *world, int i, int *tries, apr_pool_t *p)
{
    bench_t bench;
    try_t *dry;
    const char *wrong;
    int k;
    prepare(&bench, world, i, &dry, p);
    wrong = check_dry(&bench, dry);
    for (k = 0; k < dry->npackets && !wrong; k++) {
        if (packet_of(dry->packets[k]) != PACKET_ROLL) {
            wrong = errors_in_packet(&bench, dry, k);
        }
    }
    *tries = bench.tries;
    return wrong;
}

const char *inject_losses(world_t *world, int i, int *tries, apr_pool_t *p)
{
    bench_t bench;
    try_t *dry;
    const char *wrong;
    loss_e how;
    int k;
    prepare(&bench, world, i, &dry, p);
    wrong = check_dry(&bench, dry);
    for (k = 0; k < dry->npackets && !wrong; k++) {
        for (how = LOSS_BEFORE; how <= LOSS_LATE && !wrong; how++) {
            fault_t fault = {.packet = k, .loss = how};
            wrong = examine(&bench, try_once(&bench, &fault), 0);
        }
    }
    *tries = bench.tries;
    return wrong;
}
