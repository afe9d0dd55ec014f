/* SPDX-License-Identifier: Apache-2.0 */
#include "room.h"
#include <apr_lib.h>
#include <apr_strings.h>
#include <http_ssl.h>
#include <mod_watchdog.h>
#include <string.h>
#include <util_filter.h>
#include "call.h"
#include "desk.h"
#include "refusal.h"
#include "throttle.h"

#define WATCHDOG "_yoyaku_room_"
#define TICK apr_time_from_msec(250)
#define STAY_MOST 3600 /* seconds */

/** What the room said of one chain of internal redirects. */
typedef struct visit_t {
    int is_done;   /* it was asked */
    uint64_t pass; /* 0: none */
    int is_filtered;
} visit_t;

static yk_rooms_t *shared; /* of this generation; mapped from pconf */
static ap_filter_rec_t *overhear_filter;

yk_rooms_t *yk_http_room_shared(void)
{
    return shared;
}

static visit_t *visit_of(request_rec *r, int make)
{
    visit_t *found = yk_http_kept(r, YK_HTTP_ROOM);

    if (found == NULL && make) {
        found = apr_pcalloc(r->pool, sizeof(*found));
        yk_http_keep(r, YK_HTTP_ROOM, found);
    }
    return found;
}

uint64_t yk_http_room_pass(request_rec *r)
{
    const visit_t *visit = visit_of(r, 0);

    return visit != NULL ? visit->pass : 0;
}

void yk_http_room_held(uint64_t pass, uint64_t order, apr_interval_time_t time)
{
    if (shared != NULL && pass != 0) {
        yk_rooms_held(shared, pass, order, time > 0 ? time : 0);
    }
}

void yk_http_room_released(uint64_t pass, uint64_t order)
{
    if (shared != NULL && pass != 0) {
        yk_rooms_released(shared, pass, order);
    }
}

void yk_http_room_confirmed(uint64_t pass, uint64_t order)
{
    if (shared != NULL && pass != 0) {
        yk_rooms_bought(shared, pass, order);
    }
}

/* ---- cookies ---- */

static const char *cookie_name(const yk_http_room_t *room, const char *kind,
                               apr_pool_t *p)
{
    return apr_pstrcat(p, "yoyaku_", kind, "_", room->name, NULL);
}

/* No Expires: how long a number or a pass holds is the server's to say, and
 * the client's clock does not matter. */
static void cookie_send(request_rec *r, const char *name, const char *value)
{
    int is_tls = ap_ssl_conn_is_ssl(
        r->connection->master != NULL ? r->connection->master : r->connection);

    apr_table_addn(r->err_headers_out, "Set-Cookie",
                   apr_pstrcat(r->pool, name, "=", value,
                               "; Path=/; HttpOnly; SameSite=Lax",
                               *value == '\0' ? "; Max-Age=0" : "",
                               is_tls ? "; Secure" : "", NULL));
}

/* One of our cookies; the last that verifies when there are several. */
static int cookie_find(request_rec *r, yk_http_room_t *room, uint32_t row,
                       uint64_t *number, apr_time_t *issued, char kind,
                       const char *name)
{
    const yk_http_room_server_t *server = yk_http_room_keys();
    const char *header = apr_table_get(r->headers_in, "Cookie");
    apr_size_t n = strlen(name);
    char *pair, *last = NULL;
    int found = 0, forged = 0;

    *number = 0;
    if (header == NULL) {
        return 0;
    }
    for (pair = apr_strtok(apr_pstrdup(r->pool, header), "; ", &last);
         pair != NULL; pair = apr_strtok(NULL, "; ", &last)) {
        if (strncmp(pair, name, n) != 0 || pair[n] != '=') {
            continue;
        }
        if (yk_room_cookie_read(number, issued, pair + n + 1, kind, room->name,
                                server->keys, server->nkeys) == APR_SUCCESS) {
            found = 1;
            break;
        }
        forged = 1;
    }
    if (!found) {
        *number = 0;
        if (forged) {
            yk_rooms_forged(shared, row);
        }
    }
    return found;
}

/* ---- who gets a number ---- */

/* Pictures, styles and scripts of a page wait for the page. */
static int is_navigation(request_rec *r)
{
    const char *accept = apr_table_get(r->headers_in, "Accept");
    const char *dest = apr_table_get(r->headers_in, "Sec-Fetch-Dest");

    if (dest != NULL && strcmp(dest, "document") != 0) {
        return 0;
    }
    return accept == NULL || *accept == '\0' || strcmp(accept, "*/*") == 0 ||
           (strstr(accept, "text/html") != NULL && yk_http_refusal_is_page(r));
}

static int may_issue(request_rec *r)
{
    return (r->method_number != M_GET && r->method_number != M_OPTIONS) ||
           yk_http_accept_prefers_json(r) || is_navigation(r);
}

static uint32_t address_hash(const request_rec *r)
{
    uint32_t hash = 2166136261U;

    for (const char *c = r->useragent_ip; c != NULL && *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    }
    return hash;
}

/* ---- asking the room ---- */

static int row_of(yk_http_room_t *room, uint32_t *row)
{
    *row = atomic_load(&room->row);
    if (*row == YK_ROOM_NONE &&
        yk_rooms_room(shared, row, room->name, &room->terms, &room->seed) ==
            APR_SUCCESS) {
        atomic_store(&room->row, *row);
    }
    return *row != YK_ROOM_NONE;
}

static int back(request_rec *r)
{
    apr_table_setn(r->err_headers_out, "Location",
                   ap_construct_url(r->pool, r->unparsed_uri, r));
    apr_table_setn(r->err_headers_out, "Cache-Control", "no-store");
    apr_table_setn(r->notes, "yoyaku-outcome", "queue");
    return HTTP_MOVED_TEMPORARILY;
}

/* @return DECLINED: inside */
static int answered(request_rec *r, yk_http_room_t *room, const char *page,
                    visit_t *visit, const yk_room_answer_t *answer)
{
    const yk_http_room_server_t *server = yk_http_room_keys();

    if (answer->is_new) {
        cookie_send(r, cookie_name(room, "number", r->pool),
                    yk_room_cookie_write('N', room->name, answer->number,
                                         (apr_time_t)answer->number,
                                         &server->keys[0], r->pool));
    }
    switch (answer->what) {
    case YK_ROOM_ENTER:
        cookie_send(r, cookie_name(room, "pass", r->pool),
                    yk_room_cookie_write('P', room->name, answer->number,
                                         answer->issued, &server->keys[0],
                                         r->pool));
        cookie_send(r, cookie_name(room, "number", r->pool), "");
        visit->pass = answer->number;
        return DECLINED;
    case YK_ROOM_PASS:
        visit->pass = answer->number;
        return DECLINED;
    case YK_ROOM_BACK:
        return back(r);
    default:
        return yk_http_room_page(r, room, page, answer);
    }
}

/* The lock is held by somebody who is stopped: whoever shows a signed pass of
 * this visit goes on, others are told to come again. */
static int without_lock(request_rec *r, yk_http_room_t *room, visit_t *visit,
                        const yk_room_ask_t *ask)
{
    apr_time_t age = apr_time_now() - ask->pass_issued;

    if (ask->pass != 0 && age >= 0 && age < room->terms.visit_us) {
        visit->pass = ask->pass;
        return DECLINED;
    }
    return yk_http_refusal_send(r, YK_ANSWER_QUEUE, yk_http_refusal_retry(5),
                                NULL, "busy.html");
}

static int admit(request_rec *r, const yk_http_room_dir_t *dir, visit_t *visit)
{
    yk_http_room_t *room = dir->room;
    yk_room_ask_t ask = {0};
    yk_room_answer_t answer;
    apr_time_t issued;
    uint32_t row;

    if (!row_of(room, &row)) {
        return without_lock(r, room, visit, &ask);
    }
    cookie_find(r, room, row, &ask.pass, &ask.pass_issued, 'P',
                cookie_name(room, "pass", r->pool));
    cookie_find(r, room, row, &ask.number, &issued, 'N',
                cookie_name(room, "number", r->pool));
    ask.is_reading = r->method_number == M_GET; /* HEAD too */
    if (ask.is_reading && apr_table_get(r->headers_in, "Yoyaku-Room") != NULL &&
        ap_cstr_casecmp(apr_table_get(r->headers_in, "Yoyaku-Room"), "ask") ==
            0) {
        if (yk_rooms_ask(shared, &answer, row,
                         ask.number != 0 ? ask.number : ask.pass) !=
            APR_SUCCESS) {
            return without_lock(r, room, visit, &(yk_room_ask_t){0});
        }
        visit->is_done = 0;
        return yk_http_room_position(r, &answer);
    }
    ask.address = address_hash(r);
    ask.may_issue = may_issue(r);
    ask.may_return = ask.is_reading && !r->header_only;
    if (yk_rooms_arrive(shared, &answer, row, &ask) != APR_SUCCESS) {
        return without_lock(r, room, visit, &ask);
    }
    return answered(r, room, dir->page, visit, &answer);
}

static int handler(request_rec *r)
{
    const yk_http_room_dir_t *dir;
    visit_t *visit;
    int rv;

    if (shared == NULL || r->main != NULL) {
        return DECLINED;
    }
    rv = yk_http_room_document(r);
    if (rv != DECLINED) {
        return rv;
    }
    dir = yk_http_dir(r->per_dir_config, YK_HTTP_ROOM);
    if (dir->room == NULL || dir->is_off || yk_http_throttle_is_exempt(r)) {
        return DECLINED;
    }
    visit = visit_of(r, 1);
    if (visit->is_done) {
        return DECLINED;
    }
    visit->is_done = 1;
    rv = admit(r, dir, visit);
    if (rv == DECLINED && visit->pass != 0 && !visit->is_filtered) {
        visit->is_filtered = 1;
        ap_add_output_filter_handle(overhear_filter, visit, r, r->connection);
    }
    return rv;
}

/* ---- what a response says of the pass ---- */

static const char *said(request_rec *r, const char *name)
{
    const char *value = apr_table_get(r->headers_out, name);

    if (value == NULL) {
        value = apr_table_get(r->err_headers_out, name);
    }
    apr_table_unset(r->headers_out, name);
    apr_table_unset(r->err_headers_out, name);
    return value;
}

static apr_status_t overhear(ap_filter_t *f, apr_bucket_brigade *bb)
{
    visit_t *visit = f->ctx;
    const char *leave = said(f->r, "Yoyaku-Leave");
    const char *stay = said(f->r, "Yoyaku-Stay");

    if (leave != NULL && strcmp(leave, "1") == 0) {
        yk_rooms_leave(shared, visit->pass);
    }
    else if (stay != NULL && apr_isdigit(*stay)) {
        apr_int64_t seconds = apr_atoi64(stay);

        yk_rooms_stay(
            shared, visit->pass,
            apr_time_from_sec(seconds < STAY_MOST ? seconds : STAY_MOST));
    }
    ap_remove_output_filter(f);
    return ap_pass_brigade(f->next, bb);
}

/* ---- life ---- */

static int pre_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    shared = NULL;
    yk_http_room_config_begin(pconf);
    return OK;
}

/* Rooms move when somebody asks; this is for those nobody asks. */
static apr_status_t tick(int state, void *data, apr_pool_t *p)
{
    apr_pool_t *ptemp;

    if (state != AP_WATCHDOG_STATE_RUNNING || shared == NULL) {
        return APR_SUCCESS;
    }
    yk_rooms_move(shared);
    apr_pool_create(&ptemp, p);
    yk_http_room_snapshots(ptemp);
    apr_pool_destroy(ptemp);
    return APR_SUCCESS;
}

static void tick_register(server_rec *s, apr_pool_t *pconf)
{
    APR_OPTIONAL_FN_TYPE(ap_watchdog_get_instance) *get =
        APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_get_instance);
    APR_OPTIONAL_FN_TYPE(ap_watchdog_register_callback) *registration =
        APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_register_callback);
    ap_watchdog_t *watchdog = NULL;

    if (get == NULL || registration == NULL ||
        get(&watchdog, WATCHDOG, 0, 1, pconf) != APR_SUCCESS ||
        registration(watchdog, TICK, s, tick) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s,
                     "YK0534: room: mod_watchdog does not tick; rooms move "
                     "only when somebody asks");
    }
}

static int check_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                        server_rec *s)
{
    return yk_http_room_config_check(s, ptemp);
}

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                       server_rec *s)
{
    const char *folder;
    apr_status_t rv;

    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG ||
        yk_http_room_all()->nelts == 0) {
        return OK;
    }
    folder = yk_http_desk_config_state_dir(s, ptemp);
    rv = yk_rooms_create(&shared, folder, pconf);
    if (rv != APR_SUCCESS) {
        shared = NULL;
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, s,
                     "YK0535: room: no shared state in %s; everybody is let in",
                     folder);
        return OK;
    }
    tick_register(s, pconf);
    return OK;
}

static void child_init(apr_pool_t *pchild, server_rec *s)
{
    uint32_t row;

    for (int i = 0; shared != NULL && i < yk_http_room_all()->nelts; i++) {
        if (!row_of(APR_ARRAY_IDX(yk_http_room_all(), i, yk_http_room_t *),
                    &row)) {
            break;
        }
    }
}

static void hooks(apr_pool_t *p)
{
    overhear_filter = ap_register_output_filter("YOYAKU_ROOM", overhear, NULL,
                                                AP_FTYPE_CONTENT_SET);
    ap_hook_pre_config(pre_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
    /* registered before the throttle's part: asked before it */
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_REALLY_FIRST);
}

const yk_http_part_t yk_http_room = {yk_http_room_dir_create,
                                     yk_http_room_dir_merge,
                                     yk_http_room_server_create, NULL, hooks};
