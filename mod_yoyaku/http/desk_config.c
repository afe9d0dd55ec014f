/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <stddef.h>
#include <string.h>
#include "desk.h"

#define TENANT "default"
#define STATE_DIR "yoyaku"
#define SWEEP_INTERVAL apr_time_from_sec(1)
#define HOLD_PLACES 8
#define HOLD_PLACES_MAX 1000

/** A directive whose argument is a duration. */
typedef struct duration_t {
    const char *name;
    apr_size_t offset; /**< in yk_http_desk_dir_t */
    apr_interval_time_t min, max, fallback;
    const char *range, *example;
} duration_t;

#define SECONDS(n) APR_USEC_PER_SEC *(n)
#define DURATION(name, member, min, max, fallback, range, example)             \
    {                                                                          \
        name, offsetof(yk_http_desk_dir_t, member), min, max, fallback, range, \
            example                                                            \
    }

static const duration_t durations[] = {
    DURATION("YoyakuHoldTTL", hold_ttl, SECONDS(10), SECONDS(7200),
             SECONDS(600), "10s and 2h", "10min"),
    DURATION("YoyakuHoldMaxLifetime", hold_max_lifetime, SECONDS(10),
             SECONDS(86400), SECONDS(1800), "10s and 24h", "30min"),
    DURATION("YoyakuCheckoutTTL", checkout_ttl, SECONDS(10), SECONDS(86400),
             SECONDS(2100), "10s and 24h", "35min"),
    DURATION("YoyakuHoldWait", hold_wait, SECONDS(1) / 10, SECONDS(60),
             SECONDS(10), "100ms and 60s", "10s"),
};
#define DURATIONS (sizeof(durations) / sizeof(durations[0]))

static apr_interval_time_t *duration_in(yk_http_desk_dir_t *conf,
                                        const duration_t *d)
{
    return (apr_interval_time_t *)(void *)((char *)conf + d->offset);
}

void *yk_http_desk_config_dir_create(apr_pool_t *p)
{
    yk_http_desk_dir_t *conf = apr_pcalloc(p, sizeof(*conf));

    conf->booker_required = -1;
    conf->confirm = -1;
    conf->hold_places = -1;
    for (apr_size_t i = 0; i < DURATIONS; i++) {
        *duration_in(conf, &durations[i]) = -1;
    }
    return conf;
}

void *yk_http_desk_config_dir_merge(apr_pool_t *p, void *base, void *add)
{
    yk_http_desk_dir_t *outer = base;
    yk_http_desk_dir_t *inner = add;
    yk_http_desk_dir_t *conf = apr_pmemdup(p, outer, sizeof(*conf));

    if (inner->tenant != NULL) {
        conf->tenant = inner->tenant;
    }
    if (inner->has_booker) {
        conf->has_booker = 1;
        conf->booker = inner->booker;
    }
    if (inner->booker_required != -1) {
        conf->booker_required = inner->booker_required;
    }
    if (inner->confirm != -1) {
        conf->confirm = inner->confirm;
    }
    if (inner->hold_places != -1) {
        conf->hold_places = inner->hold_places;
    }
    if (inner->origins != NULL) {
        conf->origins = inner->origins;
    }
    if (inner->checkout_url != NULL) {
        conf->checkout_url = inner->checkout_url;
    }
    for (apr_size_t i = 0; i < DURATIONS; i++) {
        if (*duration_in(inner, &durations[i]) != -1) {
            *duration_in(conf, &durations[i]) =
                *duration_in(inner, &durations[i]);
        }
    }
    return conf;
}

void *yk_http_desk_config_server_create(apr_pool_t *p, server_rec *s)
{
    yk_http_desk_server_t *conf = apr_pcalloc(p, sizeof(*conf));

    conf->sweep_interval = -1;
    return conf;
}

void *yk_http_desk_config_server_merge(apr_pool_t *p, void *base, void *add)
{
    /* both members are the main server's alone */
    return base;
}

static apr_interval_time_t duration_of(const yk_http_desk_dir_t *conf,
                                       const char *name)
{
    for (apr_size_t i = 0; i < DURATIONS; i++) {
        if (strcmp(durations[i].name, name) == 0) {
            apr_interval_time_t said =
                *duration_in((yk_http_desk_dir_t *)conf, &durations[i]);

            return said != -1 ? said : durations[i].fallback;
        }
    }
    return 0;
}

void yk_http_desk_config_terms(yk_terms_t *terms,
                               const yk_http_desk_dir_t *conf)
{
    memset(terms, 0, sizeof(*terms));
    terms->booker = "";
    terms->booker_required = conf->booker_required == 1;
    terms->confirm =
        conf->confirm != -1 ? (yk_confirm_e)conf->confirm : YK_CONFIRM_FREE;
    terms->hold_ttl = duration_of(conf, "YoyakuHoldTTL");
    terms->hold_max_lifetime = duration_of(conf, "YoyakuHoldMaxLifetime");
    terms->checkout_ttl = duration_of(conf, "YoyakuCheckoutTTL");
    terms->wait = duration_of(conf, "YoyakuHoldWait");
    terms->hold_places =
        conf->hold_places != -1 ? (uint32_t)conf->hold_places : HOLD_PLACES;
}

const char *yk_http_desk_config_tenant(const yk_http_desk_dir_t *conf)
{
    return conf->tenant != NULL ? conf->tenant : TENANT;
}

apr_interval_time_t yk_http_desk_config_sweep_interval(server_rec *s)
{
    const yk_http_desk_server_t *conf = yk_http_server(s, YK_HTTP_DESK);

    return conf->sweep_interval != -1 ? conf->sweep_interval : SWEEP_INTERVAL;
}

const char *yk_http_desk_config_state_dir(server_rec *s, apr_pool_t *p)
{
    const yk_http_desk_server_t *conf = yk_http_server(s, YK_HTTP_DESK);

    return ap_runtime_dir_relative(p, conf->state_dir != NULL ? conf->state_dir
                                                              : STATE_DIR);
}

/* ---- directives ---- */

const char *yk_http_desk_set_tenant(cmd_parms *cmd, void *dummy,
                                    const char *arg)
{
    yk_http_desk_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_DESK);

    if (!yk_text_is_key(arg)) {
        return apr_psprintf(cmd->pool,
                            "YoyakuTenant: '%s' is not a name of 1 to %d "
                            "letters, digits, '.', '_' and '-'; for example: "
                            "YoyakuTenant theatre",
                            arg, YK_TEXT_KEY);
    }
    conf->tenant = arg;
    return NULL;
}

const char *yk_http_desk_set_booker(cmd_parms *cmd, void *dummy,
                                    const char *arg)
{
    yk_http_desk_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_DESK);
    const char *error = NULL;

    conf->has_booker = 1;
    conf->booker = NULL;
    if (ap_cstr_casecmp(arg, "none") == 0) {
        return NULL;
    }
    conf->booker =
        ap_expr_parse_cmd(cmd, arg, AP_EXPR_FLAG_STRING_RESULT, &error, NULL);
    if (error != NULL) {
        return apr_psprintf(cmd->pool,
                            "YoyakuBooker: '%s' is neither none nor an "
                            "expression with a text for a result (%s); for "
                            "example: YoyakuBooker %%{REMOTE_USER}",
                            arg, error);
    }
    return NULL;
}

const char *yk_http_desk_set_booker_required(cmd_parms *cmd, void *dummy,
                                             int on)
{
    yk_http_desk_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_DESK);

    conf->booker_required = on != 0;
    return NULL;
}

const char *yk_http_desk_set_confirm(cmd_parms *cmd, void *dummy,
                                     const char *arg)
{
    static const char *const words[] = {"free", "booker", "shop"};
    yk_http_desk_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_DESK);

    for (int i = 0; i < 3; i++) {
        if (ap_cstr_casecmp(arg, words[i]) == 0) {
            conf->confirm = YK_CONFIRM_FREE + i;
            return NULL;
        }
    }
    return apr_psprintf(cmd->pool,
                        "YoyakuConfirm: '%s' is none of free, booker and "
                        "shop; for example: YoyakuConfirm free",
                        arg);
}

/** @return NULL, or what is wrong */
static const char *duration_parse(apr_interval_time_t *value, cmd_parms *cmd,
                                  const char *arg, const duration_t *d)
{
    apr_interval_time_t t = -1;

    /* httpd reads "-1" and "1e9" as something; digits first, please */
    if (!apr_isdigit(*arg) ||
        ap_timeout_parameter_parse(arg, &t, "s") != APR_SUCCESS || t < d->min ||
        t > d->max) {
        return apr_psprintf(cmd->pool,
                            "%s: '%s' is not a duration between %s; for "
                            "example: %s %s",
                            d->name, arg, d->range, d->name, d->example);
    }
    *value = t;
    return NULL;
}

const char *yk_http_desk_set_duration(cmd_parms *cmd, void *dummy,
                                      const char *arg)
{
    yk_http_desk_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_DESK);

    for (apr_size_t i = 0; i < DURATIONS; i++) {
        if (ap_cstr_casecmp(durations[i].name, cmd->cmd->name) == 0) {
            return duration_parse(duration_in(conf, &durations[i]), cmd, arg,
                                  &durations[i]);
        }
    }
    return apr_pstrcat(cmd->pool, cmd->cmd->name, " has no range", NULL);
}

const char *yk_http_desk_set_hold_places(cmd_parms *cmd, void *dummy,
                                         const char *arg)
{
    yk_http_desk_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_DESK);
    char *end = NULL;
    apr_int64_t n = apr_strtoi64(arg, &end, 10);

    if (!apr_isdigit(*arg) || *end != '\0' || n < 1 || n > HOLD_PLACES_MAX) {
        return apr_psprintf(cmd->pool,
                            "YoyakuHoldPlaces: '%s' is not a number from 1 "
                            "to %d; for example: YoyakuHoldPlaces 8",
                            arg, HOLD_PLACES_MAX);
    }
    conf->hold_places = n;
    return NULL;
}

/** @return 1 for scheme://host[:port] in small letters and nothing behind */
static int is_origin(const char *arg)
{
    const char *host = NULL;

    if (strncmp(arg, "https://", 8) == 0) {
        host = arg + 8;
    }
    else if (strncmp(arg, "http://", 7) == 0) {
        host = arg + 7;
    }
    if (host == NULL || *host == '\0') {
        return 0;
    }
    for (; *host != '\0'; host++) {
        if (!apr_isdigit(*host) && !apr_islower(*host) &&
            strchr(".-_:[]", *host) == NULL) {
            return 0;
        }
    }
    return 1;
}

const char *yk_http_desk_set_allow_origin(cmd_parms *cmd, void *dummy,
                                          const char *arg)
{
    yk_http_desk_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_DESK);

    if (conf->origins == NULL) {
        conf->origins = apr_array_make(cmd->pool, 2, sizeof(const char *));
    }
    if (ap_cstr_casecmp(arg, "none") == 0) {
        apr_array_clear(conf->origins);
        return NULL;
    }
    if (!is_origin(arg)) {
        return apr_psprintf(cmd->pool,
                            "YoyakuAllowOrigin: '%s' is neither none nor an "
                            "origin, scheme://host[:port] in small letters "
                            "without a path; for example: YoyakuAllowOrigin "
                            "https://tickets.example.org",
                            arg);
    }
    APR_ARRAY_PUSH(conf->origins, const char *) = arg;
    return NULL;
}

const char *yk_http_desk_set_checkout_url(cmd_parms *cmd, void *dummy,
                                          const char *arg)
{
    yk_http_desk_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_DESK);

    if (ap_cstr_casecmp(arg, "none") == 0) {
        conf->checkout_url = "";
        return NULL;
    }
    if ((arg[0] != '/' || arg[1] == '/') && strncmp(arg, "https://", 8) != 0 &&
        strncmp(arg, "http://", 7) != 0) {
        return apr_psprintf(cmd->pool,
                            "YoyakuCheckoutURL: '%s' is neither none nor a "
                            "path that begins with / nor a URL of http or "
                            "https; for example: YoyakuCheckoutURL "
                            "https://shop.example.org/pay",
                            arg);
    }
    for (const char *c = arg; *c != '\0'; c++) {
        if (*c <= ' ' || *c == '"' || *c == '<' || *c == '>' || *c == '#' ||
            *c == 0x7f) {
            return apr_psprintf(cmd->pool,
                                "YoyakuCheckoutURL: '%s' has a character "
                                "that must be percent-encoded, or a "
                                "fragment; for example: YoyakuCheckoutURL "
                                "https://shop.example.org/pay",
                                arg);
        }
    }
    conf->checkout_url = arg;
    return NULL;
}

const char *yk_http_desk_set_sweep_interval(cmd_parms *cmd, void *dummy,
                                            const char *arg)
{
    static const duration_t d = {"YoyakuSweepInterval",
                                 0,
                                 SECONDS(1) / 10,
                                 SECONDS(60),
                                 SWEEP_INTERVAL,
                                 "100ms and 1min",
                                 "1s"};
    yk_http_desk_server_t *conf = yk_http_server(cmd->server, YK_HTTP_DESK);
    const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    if (error != NULL) {
        return error;
    }
    return duration_parse(&conf->sweep_interval, cmd, arg, &d);
}

const char *yk_http_desk_set_state_dir(cmd_parms *cmd, void *dummy,
                                       const char *arg)
{
    yk_http_desk_server_t *conf = yk_http_server(cmd->server, YK_HTTP_DESK);
    const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    if (error != NULL) {
        return error;
    }
    if (*arg == '\0' || ap_runtime_dir_relative(cmd->pool, arg) == NULL) {
        return apr_psprintf(cmd->pool,
                            "YoyakuStateDir: '%s' is not a path; for "
                            "example: YoyakuStateDir yoyaku",
                            arg);
    }
    conf->state_dir = arg;
    return NULL;
}
