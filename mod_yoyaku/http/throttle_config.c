/* SPDX-License-Identifier: Apache-2.0 */
#include "throttle.h"

#include <ap_mpm.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>

#define BY_DEFAULT "%{REMOTE_USER}"
#define EXAMPLE "YoyakuThrottle search limit=8 per-user=1 busy=60"

static apr_array_header_t *rules; /* made anew with every configuration */

void yk_http_throttle_config_begin(apr_pool_t *pconf)
{
    rules = apr_array_make(pconf, 8, sizeof(yk_http_rule_t *));
}

const apr_array_header_t *yk_http_throttle_rules(void)
{
    return rules;
}

/* ---- make and merge ---- */

void *yk_http_throttle_dir_create(apr_pool_t *p)
{
    return apr_pcalloc(p, sizeof(yk_http_throttle_dir_t));
}

void *yk_http_throttle_dir_merge(apr_pool_t *p, void *base, void *add)
{
    yk_http_throttle_dir_t *merged = apr_pmemdup(p, base, sizeof(*merged));
    const yk_http_throttle_dir_t *inner = add;

    if (inner->is_off || inner->rule != NULL) {
        merged->is_off = inner->is_off;
        merged->rule = inner->rule;
    }
    if (inner->is_bypass_said) {
        merged->is_bypass_said = 1;
        merged->bypass = inner->bypass;
    }
    return merged;
}

void *yk_http_throttle_server_create(apr_pool_t *p, server_rec *s)
{
    yk_http_throttle_server_t *made = apr_pcalloc(p, sizeof(*made));

    made->reserve = made->wait = -1;
    return made;
}

void *yk_http_throttle_server_merge(apr_pool_t *p, void *base, void *add)
{
    yk_http_throttle_server_t *merged = apr_pmemdup(p, base, sizeof(*merged));
    const yk_http_throttle_server_t *host = add;

    if (host->is_said) {
        merged->is_said = 1;
        merged->rule = host->rule;
    }
    return merged;
}

/* ---- YoyakuThrottle ---- */

static yk_http_rule_t *rule_named(cmd_parms *cmd, const char *name)
{
    yk_http_rule_t *made;

    for (int i = 0; i < rules->nelts; i++) {
        yk_http_rule_t *rule = APR_ARRAY_IDX(rules, i, yk_http_rule_t *);

        if (strcmp(rule->name, name) == 0) {
            return rule;
        }
    }
    made = apr_pcalloc(cmd->pool, sizeof(*made));
    made->name = name;
    made->where = apr_psprintf(cmd->pool, "%s:%d", cmd->directive->filename,
                               cmd->directive->line_num);
    made->index = rules->nelts;
    atomic_init(&made->row, YK_RULE_NONE);
    APR_ARRAY_PUSH(rules, yk_http_rule_t *) = made;
    return made;
}

static const char *terms_parse(yk_rule_terms_t *terms, const char **by,
                               int argc, char *const argv[], apr_pool_t *p)
{
    const char *problem = NULL;

    yk_rule_terms_default(terms);
    *by = BY_DEFAULT;
    for (int i = 0; i < argc; i++) {
        apr_status_t rv;

        if (yk_http_is_said_twice(argv, i)) {
            return apr_psprintf(p,
                                "YoyakuThrottle: %s is said twice; once is "
                                "enough, for example: " EXAMPLE,
                                argv[i]);
        }
        if (ap_cstr_casecmpn(argv[i], "by=", 3) == 0) {
            *by = argv[i] + 3;
            continue;
        }
        rv = yk_rule_terms_parse(terms, &problem, argv[i], p);
        if (rv == APR_NOTFOUND) {
            return apr_psprintf(p,
                                "YoyakuThrottle: %s is none of limit=, "
                                "per-user=, user-wait=, overflow=, resume=, "
                                "busy=, run-after=, refuse-after=, by=, "
                                "dry-run; for example: " EXAMPLE,
                                argv[i]);
        }
        if (rv != APR_SUCCESS) {
            return apr_pstrcat(p, "YoyakuThrottle: ", problem, NULL);
        }
    }
    return NULL;
}

static const char *rule_define(cmd_parms *cmd, yk_http_rule_t *rule, int argc,
                               char *const argv[])
{
    yk_rule_terms_t terms;
    const char *by, *error = terms_parse(&terms, &by, argc, argv, cmd->pool);

    if (error != NULL) {
        return error;
    }
    if (rule->is_defined) {
        if (memcmp(&rule->terms, &terms, sizeof(terms)) != 0 ||
            strcmp(rule->by_text, by) != 0) {
            return apr_psprintf(cmd->pool,
                                "YoyakuThrottle: %s says something else in "
                                "%s; the name alone joins it: YoyakuThrottle "
                                "%s",
                                rule->name, rule->where, rule->name);
        }
        return NULL;
    }
    rule->by =
        ap_expr_parse_cmd(cmd, by, AP_EXPR_FLAG_STRING_RESULT, &error, NULL);
    if (error != NULL) {
        return apr_psprintf(cmd->pool,
                            "YoyakuThrottle: by=%s is not an expression: %s; "
                            "for example: by=%%{REMOTE_ADDR}",
                            by, error);
    }
    rule->by_text = by;
    rule->terms = terms;
    rule->is_defined = 1;
    return NULL;
}

const char *yk_http_throttle_set(cmd_parms *cmd, void *dummy, int argc,
                                 char *const argv[])
{
    yk_http_throttle_dir_t *dir = yk_http_dir_of(dummy, YK_HTTP_THROTTLE);
    yk_http_throttle_server_t *server =
        yk_http_server(cmd->server, YK_HTTP_THROTTLE);
    yk_http_rule_t *rule = NULL;
    const char *error = NULL;

    if (argc < 1) {
        return "YoyakuThrottle needs a name; for example: " EXAMPLE;
    }
    if (ap_cstr_casecmp(argv[0], "off") != 0) {
        if (!yk_rule_is_name(argv[0])) {
            return apr_psprintf(cmd->pool,
                                "YoyakuThrottle: '%s' is not a name of 1 to "
                                "%d letters, digits, dots, hyphens and "
                                "underscores; for example: " EXAMPLE,
                                argv[0], YK_RULE_NAME - 1);
        }
        rule = rule_named(cmd, apr_pstrdup(cmd->pool, argv[0]));
        if (argc > 1) {
            error = rule_define(cmd, rule, argc - 1, argv + 1);
        }
    }
    else if (argc > 1) {
        return "YoyakuThrottle off takes nothing else; for "
               "example: YoyakuThrottle off";
    }
    if (cmd->path == NULL) {
        server->is_said = 1;
        server->rule = rule;
    }
    else {
        dir->is_off = rule == NULL;
        dir->rule = rule;
    }
    return error;
}

const char *yk_http_throttle_set_bypass(cmd_parms *cmd, void *dummy,
                                        const char *arg)
{
    yk_http_throttle_dir_t *dir = yk_http_dir_of(dummy, YK_HTTP_THROTTLE);
    const char *error = NULL;

    dir->is_bypass_said = 1;
    dir->bypass = NULL;
    if (ap_cstr_casecmp(arg, "none") == 0) {
        return NULL;
    }
    dir->bypass = ap_expr_parse_cmd(cmd, arg, 0, &error, NULL);
    if (error != NULL) {
        return apr_psprintf(
            cmd->pool,
            "YoyakuThrottleBypass: '%s' is neither none nor a condition: "
            "%s; for example: YoyakuThrottleBypass \"-R "
            "'10.0.0.0/8'\"",
            arg, error);
    }
    return NULL;
}

const char *yk_http_throttle_set_number(cmd_parms *cmd, void *dummy,
                                        const char *arg)
{
    yk_http_throttle_server_t *server =
        yk_http_server(cmd->server, YK_HTTP_THROTTLE);
    const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    char *end;
    apr_int64_t n = apr_strtoi64(arg, &end, 10);

    if (error != NULL) {
        return error;
    }
    if (ap_cstr_casecmp(arg, "auto") == 0) {
        n = -1;
    }
    else if (!apr_isdigit(*arg) || *end != '\0' || n > YK_RULE_COUNT_MAX) {
        return apr_psprintf(cmd->pool,
                            "%s: '%s' is neither auto nor a number from 0 to "
                            "%d; for example: %s 20",
                            cmd->cmd->name, arg, YK_RULE_COUNT_MAX,
                            cmd->cmd->name);
    }
    if (ap_cstr_casecmp(cmd->cmd->name, "YoyakuThrottleWait") == 0) {
        server->wait = (int)n;
    }
    else {
        server->reserve = (int)n;
    }
    return NULL;
}

/* ---- once it is read ---- */

void yk_http_throttle_numbers(server_rec *s, uint32_t *workers,
                              uint32_t *reserve, uint32_t *wait)
{
    const yk_http_throttle_server_t *server =
        yk_http_server(s, YK_HTTP_THROTTLE);
    int daemons = 0, threads = 0;

    ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &daemons);
    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    *workers = (uint32_t)daemons * (uint32_t)(threads > 0 ? threads : 1);
    /* a server of three workers has none to spare */
    *reserve = server->reserve >= 0 ? (uint32_t)server->reserve
               : *workers < 4       ? 0
                                    : (*workers + 9) / 10;
    *wait = server->wait >= 0 ? (uint32_t)server->wait : (*workers + 3) / 4;
}

int yk_http_throttle_config_check(server_rec *s, apr_pool_t *ptemp)
{
    uint32_t workers, reserve, wait;

    yk_http_throttle_numbers(s, &workers, &reserve, &wait);
    for (int i = 0; i < rules->nelts; i++) {
        const yk_http_rule_t *rule =
            APR_ARRAY_IDX(rules, i, const yk_http_rule_t *);
        const char *problem;

        if (!rule->is_defined) {
            ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                         "YK0510: throttle: %s is named in %s but its terms "
                         "stand nowhere; for example: YoyakuThrottle %s "
                         "limit=8",
                         rule->name, rule->where, rule->name);
            return HTTP_INTERNAL_SERVER_ERROR;
        }
        if (yk_rule_terms_check(&rule->terms, &problem, wait, ptemp) !=
            APR_SUCCESS) {
            ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                         "YK0511: throttle: %s in %s: %s", rule->name,
                         rule->where, problem);
            return HTTP_INTERNAL_SERVER_ERROR;
        }
    }
    if (rules->nelts > YK_RULES_MAX) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "YK0512: throttle: %d rules; at most %d", rules->nelts,
                     YK_RULES_MAX);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}
