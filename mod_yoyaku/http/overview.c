/* SPDX-License-Identifier: Apache-2.0 */
#include "overview.h"

#include <ap_mpm.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <mod_status.h>
#include <scoreboard.h>
#include <stdlib.h>
#include <string.h>
#include <util_script.h>
#include <yoyaku/rule.h>
#include <yoyaku/template.h>
#include <yoyaku/text.h>
#include "board.h"
#include "desk.h"
#include "lane.h"
#include "measure.h"
#include "refusal.h"
#include "room.h"
#include "throttle.h"

#define PATHS 40  /* of the table of paths are shown */
#define ROWS 1500 /* at most, of a history */

/* ---- the tree ---- */

static json_t *server_tree(request_rec *r)
{
    json_t *object = json_object();
    uint32_t busy, most;

    yk_http_measure_busy(&busy, &most);
    json_object_set_new(object, "name", json_string(ap_get_server_name(r)));
    json_object_set_new(object, "mpm", json_string(ap_show_mpm()));
    json_object_set_new(object, "now",
                        json_string(yk_time_write(apr_time_now(), r->pool)));
    json_object_set_new(
        object, "started",
        json_string(
            yk_time_write(ap_scoreboard_image->global->restart_time, r->pool)));
    json_object_set_new(object, "workers", json_integer(most));
    json_object_set_new(object, "busy", json_integer(busy));
    return object;
}

/* ?history=24h&step=60&until=2026-11-30T18:00Z */
typedef struct period_t {
    uint32_t minutes, step; /* minutes 0: none was asked for */
    apr_time_t until;
} period_t;

static apr_status_t span_parse(int64_t *us, const char *text)
{
    const int64_t most = apr_time_from_sec(YK_STATS_MINUTES * INT64_C(60));
    apr_status_t rv = yk_http_measure_days(us, text);

    if (rv != APR_SUCCESS) {
        rv = yk_rule_time_parse(us, text);
    }
    if (rv == APR_SUCCESS && *us > most) {
        *us = most;
    }
    return rv == APR_SUCCESS && *us > 0 ? APR_SUCCESS : APR_EINVAL;
}

/** @return NULL, or a sentence: what can be asked for instead; then the period
 *  is none */
static const char *period_read(period_t *period, request_rec *r)
{
    apr_table_t *args;
    const char *text;
    apr_int64_t step;
    uint32_t minutes;
    int64_t us;
    char *end;

    *period = (period_t){0, 1, apr_time_now()};
    ap_args_to_table(r, &args);
    text = apr_table_get(args, "history");
    if (text == NULL) {
        return NULL;
    }
    if (span_parse(&us, text) != APR_SUCCESS) {
        return "history is how far to look back: 30min, 24h or any time up to "
               "24h, or days, 1d to 28d.\n";
    }
    minutes =
        us < apr_time_from_sec(60) ? 1 : (uint32_t)(us / apr_time_from_sec(60));
    text = apr_table_get(args, "step");
    if (text != NULL) {
        step = apr_strtoi64(text, &end, 10);
        if (*end != '\0' || step < 1) {
            return "step is how many minutes a row has: 1, 15, 1440.\n";
        }
        period->step = step < minutes ? (uint32_t)step : minutes;
    }
    text = apr_table_get(args, "until");
    if (text != NULL && yk_time_parse(&period->until, text) != APR_SUCCESS) {
        return "until is a time with its zone: 2026-11-30T18:00Z or "
               "2026-11-30T18:00:00%2B01:00.\n";
    }
    period->minutes = minutes;
    return NULL;
}

static void history_add(json_t *tree, const period_t *period, apr_pool_t *p)
{
    uint32_t step = period->step;

    if (yk_http_throttle_shared() == NULL || period->minutes == 0) {
        return;
    }
    while (period->minutes / step > ROWS) {
        step *= 2;
    }
    json_object_set_new(tree, "history",
                        yk_stats_document_history(
                            yk_http_measure_stats(), yk_http_throttle_shared(),
                            period->minutes, step, period->until, p));
}

static void desk_trees(json_t *tree)
{
    yk_boards_t *boards = yk_http_board_boards();

    if (yk_http_lane_shared() != NULL) {
        json_object_set_new(tree, "lanes",
                            yk_stats_document_lanes(yk_http_lane_shared()));
    }
    if (boards != NULL) {
        json_object_set_new(tree, "boards", yk_stats_document_boards(boards));
        json_object_set_new(
            tree, "cache",
            yk_stats_document_cache(yk_boards_cache_shared(boards)));
    }
}

/* Each of YK_LOCKS that this configuration uses. */
static json_t *locks_tree(void)
{
    const yk_lock_t *locks[YK_LOCK_COUNT] = {NULL};
    const yk_throttle_t *throttle = yk_http_throttle_shared();
    yk_lock_t lanes, boards, board;

    if (yk_http_lane_shared() != NULL) {
        yk_stats_lane_lock(&lanes, yk_http_lane_shared());
        locks[YK_LOCK_LANE] = &lanes;
    }
    if (yk_http_board_boards() != NULL) {
        yk_boards_locks(yk_http_board_boards(), &boards, &board);
        locks[YK_LOCK_BOARDS] = &boards;
        locks[YK_LOCK_BOARD] = &board;
    }
    if (throttle != NULL) {
        locks[YK_LOCK_THROTTLE] = &yk_throttle_table(throttle)->lock;
        locks[YK_LOCK_THROTTLE_BEFORE] = yk_throttle_lock_before(throttle);
    }
    if (yk_http_room_shared() != NULL) {
        locks[YK_LOCK_ROOM] = yk_rooms_lock(yk_http_room_shared());
    }
    if (yk_http_measure_stats() != NULL) {
        locks[YK_LOCK_PATHS] = yk_stats_lock(yk_http_measure_stats());
    }
    return yk_stats_document_locks(locks);
}

static json_t *tree_of(request_rec *r, const period_t *period)
{
    yk_throttle_t *throttle = yk_http_throttle_shared();
    yk_stats_t *stats = yk_http_measure_stats();
    json_t *tree = json_object();

    json_object_set_new(tree, "server", server_tree(r));
    if (throttle != NULL) {
        json_object_set_new(tree, "throttle",
                            yk_stats_document_rules(throttle));
        json_object_set_new(
            tree, "memory",
            yk_stats_document_workers(yk_throttle_workers(throttle), r->pool));
    }
    json_object_set_new(tree, "rooms",
                        yk_http_room_shared() != NULL
                            ? yk_rooms_document(yk_http_room_shared(), r->pool)
                            : json_array());
    if (stats != NULL) {
        json_object_set_new(tree, "totals", yk_stats_document_totals(stats));
        json_object_set_new(tree, "paths",
                            yk_stats_document_paths(stats, PATHS, r->pool));
        history_add(tree, period, r->pool);
    }
    desk_trees(tree);
    json_object_set_new(tree, "locks", locks_tree());
    return tree;
}

/* ---- the ways it is written ---- */

static int has_word(const request_rec *r, const char *word)
{
    apr_size_t n = strlen(word);

    for (const char *at = r->args; at != NULL; at = strchr(at, '&')) {
        at += *at == '&';
        if (strncmp(at, word, n) == 0 &&
            (at[n] == '\0' || at[n] == '&' || at[n] == '=')) {
            return 1;
        }
    }
    return 0;
}

static int send_json(request_rec *r, int status, json_t *tree)
{
    char *text = json_dumps(tree, JSON_INDENT(1));
    int rv = yk_http_refusal_bytes(r, status, "application/json", text,
                                   strlen(text));

    free(text);
    return rv;
}

static int send_status(request_rec *r, json_t *tree)
{
    const char *text;
    apr_size_t len;

    if (has_word(r, "json")) {
        return send_json(r, HTTP_OK, tree);
    }
    if (has_word(r, "auto")) {
        text = yk_stats_lines(&len, tree, "Yoyaku", r->pool);
        return yk_http_refusal_bytes(r, HTTP_OK, "text/plain; charset=utf-8",
                                     text, len);
    }
    text = yk_template_fill(&len, yk_page_find(&len, "status.html"), tree,
                            r->pool);
    return yk_http_refusal_bytes(r, HTTP_OK, "text/html; charset=utf-8", text,
                                 len);
}

static int send_metrics(request_rec *r, json_t *tree)
{
    apr_size_t len;
    const char *text = yk_stats_metrics(&len, tree, r->pool);

    return yk_http_refusal_bytes(
        r, HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text, len);
}

/* A child of the configuration before ends too, but its server does not: the
 * parent counts a new generation before it tells the children. */
static int is_draining(void)
{
    int state = AP_MPMQ_RUNNING, generation = 0;

    ap_mpm_query(AP_MPMQ_MPM_STATE, &state);
    ap_mpm_query(AP_MPMQ_GENERATION, &generation);
    return state == AP_MPMQ_STOPPING &&
           generation == ap_scoreboard_image->global->running_generation;
}

/* A server that is leaving says 503, so that a balancer sends nobody more. */
static int send_health(request_rec *r)
{
    json_t *tree = json_object(), *why = json_array();
    int draining = is_draining(), rv;

    if (yk_http_throttle_shared() == NULL || yk_http_measure_stats() == NULL) {
        json_array_append_new(why, json_string("no shared state"));
    }
    if (yk_http_desk_probe_is_unfit()) {
        json_array_append_new(why, json_string("the database is not fit"));
    }
    json_object_set_new(tree, "state",
                        json_string(draining                   ? "draining"
                                    : json_array_size(why) > 0 ? "degraded"
                                                               : "ready"));
    json_object_set_new(tree, "why", why);
    rv = send_json(r, draining ? HTTP_SERVICE_UNAVAILABLE : HTTP_OK, tree);
    json_decref(tree);
    return rv;
}

static int handler(request_rec *r)
{
    const char *wrong;
    period_t period;
    json_t *tree;
    int is_status, rv;

    if (r->handler == NULL || strncmp(r->handler, "yoyaku-", 7) != 0) {
        return DECLINED;
    }
    if (strcmp(r->handler, "yoyaku-health") == 0) {
        return r->method_number == M_GET ? send_health(r)
                                         : HTTP_METHOD_NOT_ALLOWED;
    }
    if (strcmp(r->handler, "yoyaku-status") != 0 &&
        strcmp(r->handler, "yoyaku-metrics") != 0) {
        return DECLINED;
    }
    if (r->method_number != M_GET) {
        return HTTP_METHOD_NOT_ALLOWED;
    }
    is_status = strcmp(r->handler, "yoyaku-status") == 0;
    wrong = period_read(&period, r);
    if (is_status && wrong != NULL) {
        return yk_http_refusal_bytes(r, HTTP_BAD_REQUEST,
                                     "text/plain; charset=utf-8", wrong,
                                     strlen(wrong));
    }
    tree = tree_of(r, &period);
    rv = is_status ? send_status(r, tree) : send_metrics(r, tree);
    json_decref(tree);
    return rv;
}

/* In mod_status's own page. */
static int status_hook(request_rec *r, int flags)
{
    period_t period;
    const char *text;
    json_t *tree;
    apr_size_t len;

    period_read(&period, r);
    tree = tree_of(r, &period);
    if (flags & AP_STATUS_SHORT) {
        json_object_del(tree, "paths");
        text = yk_stats_lines(&len, tree, "Yoyaku", r->pool);
    }
    else {
        text = yk_template_fill(&len, yk_page_find(&len, "status_part.html"),
                                tree, r->pool);
    }
    ap_rwrite(text, (int)len, r);
    json_decref(tree);
    return OK;
}

static void hooks(apr_pool_t *p)
{
    APR_OPTIONAL_HOOK(ap, status_hook, status_hook, NULL, NULL,
                      APR_HOOK_MIDDLE);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

const yk_http_part_t yk_http_overview = {NULL, NULL, NULL, NULL, hooks};
