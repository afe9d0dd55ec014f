/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_optional.h>
#include <apr_strings.h>
#include <mod_watchdog.h>
#include <yoyaku/state.h>
#include "desk.h"

/*
 * The sweep settles due orders. It tidies only: a place past its deadline is
 * free to the next booker without it. One process of this host runs it, a
 * thread beside the requests; two hosts that do it at once do no harm.
 */

#define WATCHDOG "_yoyaku_"
#define BATCH 64   /**< what yk_desk_sweep() does at most */
#define BATCHES 32 /**< a turn; the rest waits for the next */
#define ONCE_US (60 * APR_USEC_PER_SEC)
#define QUIET_US (3 * APR_USEC_PER_SEC) /**< without a database, at first */
#define QUIET_MAX_US (30 * APR_USEC_PER_SEC)

/* of the one thread that runs in this process */
static apr_time_t once_next;
static apr_time_t quiet_until;
static apr_interval_time_t quiet_for = QUIET_US;

static apr_status_t database_sweep(const yk_http_database_t *database,
                                   apr_pool_t *p)
{
    server_rec *s = database->s;
    yk_store_t *store = NULL;
    yk_http_dbd_t *dbd = NULL;
    yk_desk_t *desk = NULL;
    yk_terms_t terms;
    apr_status_t rv;

    yk_http_desk_config_terms(&terms,
                              yk_http_dir(s->lookup_defaults, YK_HTTP_DESK));
    terms.who = "sweep";
    rv = yk_http_desk_dbd_attach(&store, &dbd, s, p);
    if (rv == APR_SUCCESS) {
        rv = yk_http_desk_probe_check(store, s, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    desk = yk_desk_make(store, database->catalogue, &terms, p);
    for (int i = 0; i < BATCHES; i++) {
        uint32_t settled = 0;

        rv = yk_desk_sweep(desk, &settled, p);
        if (rv != APR_SUCCESS || settled < BATCH) {
            break;
        }
    }
    if (rv == APR_SUCCESS && yk_state_now() >= once_next) {
        yk_store_once_sweep(store);
    }
    yk_store_rest(store);
    return rv;
}

/** Without a database each turn is lines in mod_dbd's log: fewer and fewer. A
 *  hold settles what it needs by itself meanwhile. */
static void quiet_note(int is_away)
{
    if (!is_away) {
        quiet_for = QUIET_US;
        return;
    }
    quiet_until = yk_state_now() + quiet_for;
    if (quiet_for < QUIET_MAX_US) {
        quiet_for *= 2;
    }
}

static apr_status_t turn(int state, void *data, apr_pool_t *p)
{
    const apr_array_header_t *databases = yk_http_desk_scan_databases();

    if (state != AP_WATCHDOG_STATE_RUNNING || yk_state_now() < quiet_until) {
        return APR_SUCCESS;
    }
    for (int i = 0; i < databases->nelts; i++) {
        const yk_http_database_t *database =
            &APR_ARRAY_IDX(databases, i, yk_http_database_t);
        apr_pool_t *ptemp = NULL;

        if (database->catalogue == NULL) {
            continue;
        }
        apr_pool_create(&ptemp, p);
        quiet_note(database_sweep(database, ptemp) == APR_ECONNRESET);
        apr_pool_destroy(ptemp);
    }
    if (yk_state_now() >= once_next) {
        once_next = yk_state_now() + ONCE_US;
    }
    return APR_SUCCESS;
}

void yk_http_desk_sweep_register(server_rec *s, apr_pool_t *pconf)
{
    APR_OPTIONAL_FN_TYPE(ap_watchdog_get_instance) *get =
        APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_get_instance);
    APR_OPTIONAL_FN_TYPE(ap_watchdog_register_callback) *registration =
        APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_register_callback);
    ap_watchdog_t *watchdog = NULL;
    apr_status_t rv;

    if (yk_http_desk_scan_databases()->nelts == 0) {
        return;
    }
    if (get == NULL || registration == NULL) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s,
                     "YK0420: sweep: mod_watchdog is not loaded; orders past "
                     "their end are settled only when their places are asked "
                     "for");
        return;
    }
    rv = get(&watchdog, WATCHDOG, 0, 1, pconf);
    if (rv == APR_SUCCESS) {
        rv = registration(watchdog, yk_http_desk_config_sweep_interval(s), s,
                          turn);
    }
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, rv, s,
                     "YK0421: sweep: mod_watchdog does not run it; orders "
                     "past their end are settled only when their places are "
                     "asked for");
    }
}
