/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include "call.h"

/** How a route is asked. */
typedef enum need_e {
    CHANGE = 1, /**< must come from this site; may have an Idempotency-Key */
    BODY = 2,   /**< must have one */
    HOLD = 4,   /**< takes places for a booker */
    ORDER = 8   /**< about the order in hand, or the one numbered */
} need_e;

typedef struct route_t {
    const char *path; /**< below the base; {..} stands for one segment */
    const char *method;
    int needs;
    int (*run)(yk_http_call_t *call);
} route_t;

static const route_t booker_routes[] = {
    {"", "GET", 0, yk_http_slots_index},
    {"slots", "GET", 0, yk_http_slots_list},
    {"slots/{slot}", "GET", 0, yk_http_slots_look},
    {"slots/{slot}/plan", "GET", 0, yk_http_board_plan},
    {"slots/{slot}/availability", "GET", 0, yk_http_board_availability},
    {"holds", "POST", CHANGE | BODY | HOLD, yk_http_hold_make},
    {"slots/{slot}/holds", "POST", CHANGE | BODY | HOLD, yk_http_hold_make},
    {"order", "GET", ORDER, yk_http_order_look},
    {"order", "PATCH", CHANGE | BODY | ORDER, yk_http_order_patch},
    {"order", "DELETE", CHANGE | ORDER, yk_http_order_release},
    {"order/checkout", "POST", CHANGE | ORDER, yk_http_order_checkout},
    {"order/reopen", "POST", CHANGE | ORDER, yk_http_order_reopen},
    {"order/exchange", "POST", CHANGE | BODY | ORDER, yk_http_order_exchange},
    {"order/confirm", "POST", CHANGE | ORDER, yk_http_order_confirm},
    {"order/lines/{line}", "DELETE", CHANGE | ORDER, yk_http_order_remove},
    {NULL, NULL, 0, NULL}};

static const route_t shop_routes[] = {
    {"orders", "GET", 0, yk_http_shop_search},
    {"orders/{number}", "GET", ORDER, yk_http_order_look},
    {"orders/{number}/confirm", "POST", CHANGE | BODY | ORDER,
     yk_http_shop_confirm},
    {"orders/{number}/cancel", "POST", CHANGE | ORDER, yk_http_shop_cancel},
    {"orders/{number}/release", "POST", CHANGE | ORDER, yk_http_shop_release},
    {"orders/{number}/exchange", "POST", CHANGE | BODY | ORDER,
     yk_http_order_exchange},
    {"holds", "POST", CHANGE | BODY | HOLD, yk_http_hold_make},
    {NULL, NULL, 0, NULL}};

const char *yk_http_route_url(const yk_http_call_t *call, const char *below)
{
    return apr_pstrcat(call->r->pool, call->base, below, NULL);
}

/* ---- path ---- */

/** Is this what stands for {slot}, {number} or {line}? */
static int segment_fits(yk_http_call_t *call, const char *name,
                        const char *value, apr_size_t len)
{
    if (strncmp(name, "{slot}", 6) == 0) {
        call->slot = apr_pstrmemdup(call->r->pool, value, len);
        return yk_text_is_key(call->slot);
    }
    value = apr_pstrmemdup(call->r->pool, value, len);
    if (strncmp(name, "{number}", 8) == 0) {
        return yk_number_parse(&call->order_id, value) == APR_SUCCESS;
    }
    /* a line: no sign, no nought in front, no more than an order can have */
    if (!apr_isdigit(*value) || *value == '0' || strlen(value) > 9 ||
        strspn(value, "0123456789") != strlen(value)) {
        return 0;
    }
    call->line = (uint32_t)strtoul(value, NULL, 10);
    return 1;
}

/**
 * @param call takes what stands in the segments that {..} leaves open; NULL:
 *        only whether the path has this pattern's form, whatever stands there
 * @return 0: it has not, or a segment is unfit
 */
static int path_fits(yk_http_call_t *call, const char *pattern,
                     const char *path)
{
    while (*pattern != '\0') {
        if (*pattern == '{') {
            apr_size_t len = strcspn(path, "/");

            if (len == 0 ||
                (call != NULL && !segment_fits(call, pattern, path, len))) {
                return 0;
            }
            pattern = strchr(pattern, '}') + 1;
            path += len;
        }
        else if (*pattern++ != *path++) {
            return 0;
        }
    }
    return *path == '\0';
}

static const route_t *routes_of(const yk_http_call_t *call)
{
    return call->shop ? shop_routes : booker_routes;
}

/** @return NULL: no route for path and method; *known: but for others */
static const route_t *route_find(yk_http_call_t *call, int *known,
                                 const char *path)
{
    *known = 0;
    for (const route_t *route = routes_of(call); route->path != NULL; route++) {
        if (!path_fits(NULL, route->path, path)) {
            continue;
        }
        /* routes that look alike leave the same segments open */
        if (!*known && !path_fits(call, route->path, path)) {
            return NULL;
        }
        *known = 1;
        if (strcmp(route->method, call->method) == 0) {
            return route;
        }
    }
    return NULL;
}

/** The methods of a path, for 405 and OPTIONS. */
static const char *allow_of(const yk_http_call_t *call, const char *path)
{
    const char *allow = "";

    for (const route_t *route = routes_of(call); route->path != NULL; route++) {
        if (path_fits(NULL, route->path, path)) {
            allow = apr_pstrcat(
                call->r->pool, allow, *allow ? ", " : "", route->method,
                strcmp(route->method, "GET") == 0 ? ", HEAD" : "", NULL);
        }
    }
    return apr_pstrcat(call->r->pool, allow, ", OPTIONS", NULL);
}

/** A page without script sends every change as a form; what it means stands
 *  in the query. Only for forms, which scripts of other sites cannot forge
 *  past the same-site check either. */
static const char *method_of(const request_rec *r)
{
    const char *type = apr_table_get(r->headers_in, "Content-Type");

    if (r->method_number == M_GET) {
        return "GET"; /* HEAD, too */
    }
    if (r->method_number == M_POST && r->args != NULL && type != NULL &&
        ap_cstr_casecmpn(type, "application/x-www-form-urlencoded", 33) == 0) {
        if (strcmp(r->args, "method=DELETE") == 0) {
            return "DELETE";
        }
        if (strcmp(r->args, "method=PATCH") == 0) {
            return "PATCH";
        }
    }
    return r->method;
}

/* ---- the way of a request ---- */

/** Everything that can be refused without the book. */
static apr_status_t checks(yk_http_call_t *call, const route_t *route)
{
    int is_shop_order = call->shop && (route->needs & ORDER) != 0;
    apr_status_t rv;

    if (route->needs == 0) {
        return APR_SUCCESS; /* a look: nobody asks who is looking */
    }
    rv = yk_http_call_booker(call, route->needs & HOLD);
    if (rv == APR_SUCCESS && (route->needs & CHANGE)) {
        rv = yk_http_entity_read(call, route->needs & BODY);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (is_shop_order) {
        yk_http_claim_number(call);
    }
    else if (route->needs & (ORDER | HOLD)) {
        yk_http_claim_read(call);
    }
    if ((route->needs & ORDER) || call->claim_is_bad) {
        rv = yk_http_claim_need(call);
    }
    if (rv == APR_SUCCESS && (route->needs & CHANGE)) {
        rv = yk_http_once_check(call, (route->needs & ORDER) && !is_shop_order);
    }
    return rv;
}

static apr_status_t accept_check(yk_http_call_t *call)
{
    /* A form is answered 303, which is no representation; and until there is
     * a page, whoever would rather have one gets JSON if he takes that. */
    if (call->accept == YK_HTTP_ACCEPT_JSON ||
        call->accept == YK_HTTP_ACCEPT_HTML_JSON ||
        strcmp(call->r->method, "POST") == 0) {
        return APR_SUCCESS;
    }
    return yk_http_call_fault(call, YK_ANSWER_NOT_ACCEPTABLE, "Accept",
                              "application/json",
                              "This is to be had as JSON only.");
}

/** There is no route for it: what then? */
static int lost(yk_http_call_t *call, int known, const char *path)
{
    const char *allow = known ? allow_of(call, path) : NULL;

    if (!known) {
        yk_http_call_fault(call, YK_ANSWER_UNKNOWN, NULL, NULL,
                           "There is nothing at this address.");
        return yk_http_reply_fault(call);
    }
    if (call->r->method_number == M_OPTIONS) {
        return yk_http_same_site_options(call, allow);
    }
    apr_table_setn(call->r->headers_out, "Allow", allow);
    yk_http_call_fault(call, YK_ANSWER_METHOD, NULL, allow, NULL);
    return yk_http_reply_fault(call);
}

static int run(yk_http_call_t *call, const char *path)
{
    int known = 0;
    const route_t *route = route_find(call, &known, path);
    int is_change =
        call->r->method_number != M_GET && call->r->method_number != M_OPTIONS;
    apr_status_t rv = yk_http_same_site_check(call, is_change);

    yk_http_same_site_headers(call);
    if (known && call->slot != NULL) {
        yk_http_reply_note(call, "yoyaku-slot", call->slot);
    }
    if (route == NULL) {
        return lost(call, known, path);
    }
    if (rv == APR_SUCCESS) {
        rv = accept_check(call);
    }
    if (rv == APR_SUCCESS) {
        rv = checks(call, route);
    }
    return rv == APR_SUCCESS ? route->run(call) : yk_http_reply_fault(call);
}

int yk_http_route(request_rec *r)
{
    yk_http_call_t *call = apr_pcalloc(r->pool, sizeof(*call));
    const char *base = yk_http_desk_scan_base(r);
    const char *path = r->uri + (base != NULL ? strlen(base) : 0);

    call->r = r;
    call->conf = yk_http_dir(r->per_dir_config, YK_HTTP_DESK);
    call->shop = strcmp(r->handler, "yoyaku-shop") == 0;
    call->base = base != NULL ? base : "";
    call->method = method_of(r);
    call->accept = yk_http_accept(r);
    yk_http_desk_config_terms(&call->terms, call->conf);
    call->terms.shop = call->shop;
    if (call->shop) {
        call->terms.who = r->user != NULL ? r->user : "shop";
    }
    return run(call, *path == '/' ? path + 1 : path);
}
