/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "throttle.h"

#include <ap_mpm.h>
#include <apr_portable.h>
#include <apr_strings.h>
#include <http_connection.h>
#include <poll.h>
#include <string.h>
#include <util_filter.h>
#include <yoyaku/log.h>
#include <yoyaku/order.h>
#include "desk.h"
#include "measure.h"
#include "refusal.h"

#define NAP apr_time_from_msec(250)

/** What one chain of internal redirects was asked and holds. */
typedef struct claim_t {
    apr_time_t arrived; /* steady clock */
    int container_asked, server_asked;
    uint32_t container, server; /* holders, or YK_HOLDER_NONE */
    const char *names;          /* of the rules it came under */
    yk_http_visit_t visits[2];  /* under them */
    uint32_t nvisits;
    apr_time_t waited;
    int is_filtered; /* the filter that gives back is in place */
} claim_t;

static yk_throttle_t *shared; /* of this generation; mapped from pconf */
static ap_filter_rec_t *release_filter;

yk_throttle_t *yk_http_throttle_shared(void)
{
    return shared;
}

int yk_http_throttle_is_exempt(const request_rec *r)
{
    static const char *const handlers[] = {"yoyaku-status", "yoyaku-metrics",
                                           "yoyaku-health", "server-status",
                                           "server-info"};

    if (r->main != NULL ||
        (r->prev != NULL && ap_is_HTTP_ERROR(r->prev->status))) {
        return 1;
    }
    for (int i = 0; r->handler != NULL && i < 5; i++) {
        if (strcmp(r->handler, handlers[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A client that closed its sending half only counts as gone as well: nobody
 * would wait for an answer so. */
static int is_gone(const request_rec *r)
{
    conn_rec *c =
        r->connection->master != NULL ? r->connection->master : r->connection;
    apr_socket_t *socket = ap_get_conn_socket(c);
    struct pollfd fd = {-1, POLLRDHUP, 0};

    if (r->connection->aborted || c->aborted) {
        return 1;
    }
    if (socket == NULL || apr_os_sock_get(&fd.fd, socket) != APR_SUCCESS) {
        return 0;
    }
    return poll(&fd, 1, 0) > 0 &&
           (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* ---- a request's claim ---- */

static claim_t *claim_find(const request_rec *r)
{
    return yk_http_kept(r, YK_HTTP_THROTTLE);
}

static claim_t *claim_make(request_rec *r)
{
    claim_t *claim = claim_find(r);

    if (claim == NULL) {
        claim = apr_pcalloc(r->pool, sizeof(*claim));
        claim->arrived = yk_state_now();
        claim->container = claim->server = YK_HOLDER_NONE;
        /* no cleanup: it could run in a signal handler, and places are given
         * back by the filter, the log hook, or by whoever finds us dead */
        yk_http_keep(r, YK_HTTP_THROTTLE, claim);
    }
    return claim;
}

static void give_back(uint32_t *holder)
{
    if (*holder != YK_HOLDER_NONE) {
        uint32_t h = *holder;

        *holder = YK_HOLDER_NONE;
        yk_throttle_leave(shared, h);
    }
}

static void give_all_back(claim_t *claim)
{
    give_back(&claim->server);
    give_back(&claim->container);
}

static apr_status_t release(ap_filter_t *f, apr_bucket_brigade *bb)
{
    claim_t *claim = f->ctx;
    int ends = 0;
    apr_status_t rv;

    for (apr_bucket *b = APR_BRIGADE_LAST(bb);
         b != APR_BRIGADE_SENTINEL(bb) && APR_BUCKET_IS_METADATA(b) && !ends;
         b = APR_BUCKET_PREV(b)) {
        ends = APR_BUCKET_IS_EOS(b);
    }
    rv = ap_pass_brigade(f->next, bb);
    if (ends) {
        give_all_back(claim);
    }
    return rv;
}

static int log_transaction(request_rec *r)
{
    claim_t *claim = shared != NULL ? claim_find(r) : NULL;

    if (claim != NULL) {
        give_all_back(claim);
    }
    return DECLINED;
}

uint32_t yk_http_throttle_visits(const request_rec *r,
                                 const yk_http_visit_t **visits)
{
    const claim_t *claim = shared != NULL ? claim_find(r) : NULL;

    *visits = claim != NULL ? claim->visits : NULL;
    return claim != NULL ? claim->nvisits : 0;
}

/* ---- asking ---- */

static apr_status_t row_of(yk_http_rule_t *rule, uint32_t *row)
{
    apr_status_t rv = APR_SUCCESS;

    *row = atomic_load(&rule->row);
    if (*row == YK_RULE_NONE) {
        rv = yk_throttle_rule(shared, row, rule->name, &rule->terms);
        if (rv == APR_SUCCESS) {
            atomic_store(&rule->row, *row);
        }
    }
    return rv;
}

static const unsigned char *user_of(request_rec *r, const yk_http_rule_t *rule)
{
    const char *error = NULL, *by;
    unsigned char *hash;

    by = ap_expr_str_exec(r, rule->by, &error);
    if (error != NULL || by == NULL || *by == '\0') {
        return NULL;
    }
    hash = apr_palloc(r->pool, 16);
    yk_booker_hash(hash, by);
    return hash;
}

static int is_bypassed(request_rec *r, const yk_http_throttle_dir_t *dir)
{
    const char *error = NULL;

    return dir->bypass != NULL && ap_expr_exec(r, dir->bypass, &error) > 0;
}

static void notes_set(request_rec *r, const claim_t *claim)
{
    apr_table_setn(r->notes, "yoyaku-rule", claim->names);
    apr_table_setn(
        r->notes, "yoyaku-queue-ms",
        claim->waited < 1000
            ? "0"
            : apr_psprintf(r->pool, "%" APR_TIME_T_FMT, claim->waited / 1000));
}

static int refuse(request_rec *r, const yk_http_rule_t *rule, yk_refused_e why)
{
    json_t *values;

    ap_log_rerror(APLOG_MARK, APLOG_DEBUG, 0, r,
                  "YK0513: throttle: %s refused it: %s", rule->name,
                  yk_refused_name(why));
    apr_table_setn(r->notes, "yoyaku-refused", yk_refused_name(why));
    if (why == YK_REFUSED_GONE) {
        r->connection->aborted = 1;
        r->status = HTTP_SERVICE_UNAVAILABLE;
        return DONE;
    }
    values = json_object();
    json_object_set_new(values, "rule", json_string(rule->name));
    return yk_http_refusal_send(r, YK_ANSWER_THROTTLED,
                                yk_http_refusal_retry(5), values, "busy.html");
}

/* Queue until it runs or is refused. */
static void queue(request_rec *r, yk_turn_t *turn)
{
    while (turn->answer == YK_QUEUE_WAIT) {
        yk_throttle_wait(shared, turn, NAP);
        if (turn->answer == YK_QUEUE_WAIT && is_gone(r)) {
            yk_throttle_gone(shared, turn->holder);
            turn->answer = YK_QUEUE_REFUSED;
            turn->why = YK_REFUSED_GONE;
        }
    }
}

typedef struct question_t {
    yk_http_rule_t *rule;
    uint32_t *holder; /* where the place is kept */
    uint32_t *other;  /* the place under the other rule */
    int yields;       /* give the other back rather than wait with it */
} question_t;

static void said_dry(request_rec *r, const yk_http_rule_t *rule, int dry)
{
    if (dry != 0) {
        ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, r,
                      "YK0514: throttle: %s (dry-run) would have %s it",
                      rule->name, dry == 1 ? "queued" : "refused");
    }
}

/* For the minute's record: whoever waits long is written down at once, the
 * rest when the request is logged. */
static void peaked(uint32_t row)
{
    if (yk_http_measure_stats() != NULL) {
        yk_stats_rule_peak(yk_http_measure_stats(), row,
                           &yk_throttle_table(shared)->rule[row],
                           apr_time_now());
    }
}

/* What becomes of it under this rule, for when it is logged. */
static void visited(claim_t *claim, uint32_t row, const yk_turn_t *turn,
                    apr_time_t waited)
{
    const yk_rule_t *r = &yk_throttle_table(shared)->rule[row];
    yk_http_visit_t *visit = NULL;

    for (uint32_t i = 0; i < claim->nvisits; i++) {
        if (claim->visits[i].row == row) {
            visit = &claim->visits[i]; /* asked again, after a wait elsewhere */
        }
    }
    if (visit == NULL) {
        if (claim->nvisits == 2) {
            return;
        }
        visit = &claim->visits[claim->nvisits++];
        visit->row = row;
    }
    visit->met.running = r->running;
    visit->met.queued = r->waiting;
    visit->met.refused = turn->answer == YK_QUEUE_REFUSED;
    visit->met.waited_us += (uint64_t)waited;
}

/* Ask one rule. @return OK: it runs under it; else it was refused (why) */
static int ask(request_rec *r, claim_t *claim, yk_refused_e *why,
               const question_t *q, int bypass)
{
    yk_arrival_t who = {0};
    yk_turn_t turn = {0};
    apr_time_t began = yk_state_now(), waited;

    who.name = q->rule->name;
    who.arrived_us = claim->arrived;
    who.bypass = bypass;
    who.second = *q->other != YK_HOLDER_NONE;
    who.at_once = who.second && q->yields;
    if (row_of(q->rule, &who.rule) != APR_SUCCESS) {
        *why = YK_REFUSED_LOCK;
        return HTTP_SERVICE_UNAVAILABLE;
    }
    /* what is in force, which the operator may have set */
    if (yk_throttle_table(shared)->rule[who.rule].terms.per_user != 0) {
        who.user = user_of(r, q->rule);
    }
    yk_throttle_arrive(shared, &turn, &who);
    if (turn.answer == YK_QUEUE_WAIT && who.at_once) {
        give_back(q->other);
        who.at_once = who.second = 0;
        yk_throttle_arrive(shared, &turn, &who);
    }
    said_dry(r, q->rule, turn.dry);
    if (turn.answer == YK_QUEUE_WAIT) {
        peaked(who.rule); /* with this one in it */
        queue(r, &turn);
    }
    waited = yk_state_now() - began;
    visited(claim, who.rule, &turn, waited);
    claim->waited += waited;
    if (turn.answer == YK_QUEUE_REFUSED) {
        *why = turn.why;
        return HTTP_SERVICE_UNAVAILABLE;
    }
    *q->holder = turn.holder;
    return OK;
}

static void named(request_rec *r, claim_t *claim, const yk_http_rule_t *rule)
{
    claim->names = claim->names == NULL ? rule->name
                                        : apr_pstrcat(r->pool, claim->names,
                                                      ",", rule->name, NULL);
}

/* Ask what is still to be asked. @return DECLINED: it may run */
static int ask_all(request_rec *r, claim_t *claim, yk_http_rule_t *container,
                   yk_http_rule_t *server, int bypass)
{
    question_t first = {container, &claim->container, &claim->server, 1};
    question_t second = {server, &claim->server, &claim->container, 0};
    yk_refused_e why;

    if (container != NULL && !claim->container_asked) {
        int held_server = claim->server != YK_HOLDER_NONE;

        claim->container_asked = 1;
        named(r, claim, container);
        if (ask(r, claim, &why, &first, bypass) != OK) {
            give_all_back(claim);
            notes_set(r, claim);
            return refuse(r, container, why);
        }
        /* it had to be given back for the wait */
        if (held_server && claim->server == YK_HOLDER_NONE) {
            claim->server_asked = 0;
        }
    }
    if (server != NULL && server != container && !claim->server_asked) {
        claim->server_asked = 1;
        named(r, claim, server);
        if (ask(r, claim, &why, &second, bypass) != OK) {
            give_all_back(claim);
            notes_set(r, claim);
            return refuse(r, server, why);
        }
    }
    notes_set(r, claim);
    return DECLINED;
}

static int handler(request_rec *r)
{
    const yk_http_throttle_dir_t *dir;
    const yk_http_throttle_server_t *server;
    yk_http_rule_t *of_server;
    claim_t *claim;
    int rv;

    if (shared == NULL) {
        return DECLINED;
    }
    dir = yk_http_dir(r->per_dir_config, YK_HTTP_THROTTLE);
    server = yk_http_server(r->server, YK_HTTP_THROTTLE);
    of_server = dir->is_off ? NULL : server->rule;
    if ((dir->rule == NULL && of_server == NULL) ||
        yk_http_throttle_is_exempt(r)) {
        return DECLINED;
    }
    claim = claim_make(r);
    rv = ask_all(r, claim, dir->rule, of_server, is_bypassed(r, dir));
    if (!claim->is_filtered && (claim->container != YK_HOLDER_NONE ||
                                claim->server != YK_HOLDER_NONE)) {
        claim->is_filtered = 1;
        ap_add_output_filter_handle(release_filter, claim, r, r->connection);
    }
    return rv;
}

/* ---- life ---- */

static int pre_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    shared = NULL;
    yk_http_throttle_config_begin(pconf);
    return OK;
}

static int check_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                        server_rec *s)
{
    return yk_http_throttle_config_check(s, ptemp);
}

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                       server_rec *s)
{
    uint32_t workers, reserve, wait;
    const char *folder;
    apr_status_t rv;

    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) {
        return OK;
    }
    folder = yk_http_desk_config_state_dir(s, ptemp);
    yk_http_throttle_numbers(s, &workers, &reserve, &wait);
    rv = yk_throttle_create(&shared, folder, workers, reserve, wait, pconf);
    if (rv != APR_SUCCESS) {
        /* the server goes on without: a throttle must not be what breaks it */
        shared = NULL;
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, s,
                     rv == APR_EBUSY
                         ? "YK0515: throttle: %s is used by another server "
                           "that is running; nothing is throttled. Give each "
                           "its own YoyakuStateDir"
                         : "YK0516: throttle: no shared state in %s; nothing "
                           "is throttled",
                     folder);
    }
    return OK;
}

static void child_init(apr_pool_t *pchild, server_rec *s)
{
    const apr_array_header_t *rules = yk_http_throttle_rules();
    uint32_t row;

    if (shared == NULL) {
        return;
    }
    yk_throttle_join(shared);
    /* A changed limit holds from the first child of the new generation on. Who
     * cannot get the lock asks again with his first request. */
    for (int i = 0; i < rules->nelts; i++) {
        if (row_of(APR_ARRAY_IDX(rules, i, yk_http_rule_t *), &row) !=
            APR_SUCCESS) {
            break;
        }
    }
}

static void child_status(server_rec *s, pid_t pid, ap_generation_t generation,
                         int slot, mpm_child_status status)
{
    if (shared != NULL && status == MPM_CHILD_EXITED) {
        yk_throttle_bury(shared, (uint32_t)pid);
    }
}

static void hooks(apr_pool_t *p)
{
    release_filter = ap_register_output_filter("YOYAKU_THROTTLE", release, NULL,
                                               AP_FTYPE_PROTOCOL);
    ap_hook_pre_config(pre_config, NULL, NULL, APR_HOOK_MIDDLE);
    /* after the MPM knows how many workers there will be */
    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_LAST);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_child_status(child_status, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_REALLY_FIRST);
    /* before mod_log_config, which may write to a pipe that is full */
    ap_hook_log_transaction(log_transaction, NULL, NULL, APR_HOOK_REALLY_FIRST);
}

const yk_http_part_t yk_http_throttle = {
    yk_http_throttle_dir_create, yk_http_throttle_dir_merge,
    yk_http_throttle_server_create, yk_http_throttle_server_merge, hooks};
