/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/rule.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLE "for example: YoyakuThrottle search limit=8 busy=60"

void yk_rule_terms_default(yk_rule_terms_t *terms)
{
    memset(terms, 0, sizeof(*terms));
    terms->user_wait = 6;
    terms->busy = YK_RULE_BUSY_DEFAULT;
    terms->refuse_after_us = apr_time_from_sec(30);
}

int yk_rule_is_name(const char *name)
{
    apr_size_t n = strlen(name);

    if (n == 0 || n >= YK_RULE_NAME) {
        return 0;
    }
    for (const char *c = name; *c != '\0'; c++) {
        if (!apr_isalnum(*c) && strchr("._-", *c) == NULL) {
            return 0;
        }
    }
    return 1;
}

/* "[[h:]m:]s": each but the first below 60 would be pedantic; 0:90 is 90 s. */
static apr_status_t clock_parse(int64_t *us, const char *text)
{
    int64_t sum = 0;
    int colons = 0;

    while (*text != '\0') {
        char *end;
        long n;

        if (!apr_isdigit(*text)) {
            return APR_EINVAL;
        }
        n = strtol(text, &end, 10);
        if (n > 86400 || (*end != ':' && *end != '\0') || colons > 2) {
            return APR_EINVAL;
        }
        sum = sum * 60 + n;
        text = end;
        if (*text == ':') {
            colons++;
            text++;
            if (*text == '\0') {
                return APR_EINVAL;
            }
        }
    }
    *us = apr_time_from_sec(sum);
    return APR_SUCCESS;
}

apr_status_t yk_rule_time_parse(int64_t *us, const char *text)
{
    static const struct {
        const char *unit;
        int64_t us;
    } units[] = {{"ms", 1000},
                 {"s", APR_USEC_PER_SEC},
                 {"sec", APR_USEC_PER_SEC},
                 {"min", 60 * APR_USEC_PER_SEC},
                 {"mi", 60 * APR_USEC_PER_SEC},
                 {"h", 3600 * APR_USEC_PER_SEC}};
    apr_status_t rv = APR_EINVAL;
    apr_int64_t n;
    char *end;

    if (*text == '\0') {
        *us = 0;
        return APR_SUCCESS;
    }
    if (!apr_isdigit(*text)) {
        return APR_EINVAL;
    }
    n = apr_strtoi64(text, &end, 10);
    if (*end == '\0' || *end == ':') {
        rv = clock_parse(us, text);
    }
    for (int i = 0; rv != APR_SUCCESS && i < 6; i++) {
        if (strcasecmp(end, units[i].unit) == 0 && n <= 86400000) {
            *us = n * units[i].us;
            rv = APR_SUCCESS;
        }
    }
    if (rv == APR_SUCCESS && (*us < 0 || *us > YK_RULE_TIME_MAX)) {
        rv = APR_EINVAL;
    }
    return rv;
}

char *yk_rule_time_write(int64_t us, apr_pool_t *p)
{
    if (us % APR_USEC_PER_SEC != 0) {
        return apr_psprintf(p, "%" APR_INT64_T_FMT "ms", us / 1000);
    }
    if (us > 0 && us % (60 * APR_USEC_PER_SEC) == 0) {
        return apr_psprintf(p, "%" APR_INT64_T_FMT "min",
                            us / (60 * APR_USEC_PER_SEC));
    }
    return apr_psprintf(p, "%" APR_INT64_T_FMT "s", us / APR_USEC_PER_SEC);
}

static apr_status_t number_parse(uint32_t *number, const char *text)
{
    char *end;
    apr_int64_t n;

    if (*text == '\0') {
        *number = 0;
        return APR_SUCCESS;
    }
    if (!apr_isdigit(*text)) {
        return APR_EINVAL;
    }
    n = apr_strtoi64(text, &end, 10);
    if (*end != '\0' || n > YK_RULE_COUNT_MAX) {
        return APR_EINVAL;
    }
    *number = (uint32_t)n;
    return APR_SUCCESS;
}

static apr_status_t number_set(uint32_t *number, const char **problem,
                               const char *name, const char *text,
                               apr_pool_t *p)
{
    if (number_parse(number, text) == APR_SUCCESS) {
        return APR_SUCCESS;
    }
    *problem = apr_psprintf(p, "%s=%s: not a number from 0 (off) to %d; %s",
                            name, text, YK_RULE_COUNT_MAX, EXAMPLE);
    return APR_EINVAL;
}

static apr_status_t time_set(int64_t *us, const char **problem,
                             const char *name, const char *text, apr_pool_t *p)
{
    if (yk_rule_time_parse(us, text) == APR_SUCCESS) {
        return APR_SUCCESS;
    }
    *problem = apr_psprintf(p,
                            "%s=%s: not a time from 0 (off) to 24h; for "
                            "example: %s=30s, %s=2min, %s=0:30",
                            name, text, name, name, name);
    return APR_EINVAL;
}

/* limit/per-user,overflow,resume,busy,run-after,refuse-after */
static apr_status_t short_parse(yk_rule_terms_t *terms, const char **problem,
                                const char *argument, apr_pool_t *p)
{
    char *words[6] = {NULL}, *rest = apr_pstrdup(p, argument);
    apr_status_t rv = APR_SUCCESS;
    char *user;
    int n = 0;

    while (rest != NULL && n < 6) {
        char *comma = strchr(rest, ',');

        words[n++] = rest;
        rest = comma != NULL ? comma + 1 : NULL;
        if (comma != NULL) {
            *comma = '\0';
        }
    }
    if (rest != NULL) {
        *problem = apr_psprintf(p,
                                "%s: more than limit/per-user,overflow,resume,"
                                "busy,run-after,refuse-after; for example: "
                                "4/1,20,30,60,0,0:30",
                                argument);
        return APR_EINVAL;
    }
    user = strchr(words[0], '/');
    if (user != NULL) {
        *user++ = '\0';
        rv = number_set(&terms->per_user, problem, "per-user", user, p);
    }
    if (rv == APR_SUCCESS) {
        rv = number_set(&terms->limit, problem, "limit", words[0], p);
    }
    if (rv == APR_SUCCESS && n > 1) {
        rv = number_set(&terms->overflow, problem, "overflow", words[1], p);
    }
    if (rv == APR_SUCCESS && n > 2) {
        rv = number_set(&terms->resume, problem, "resume", words[2], p);
    }
    if (rv == APR_SUCCESS && n > 3) {
        rv = number_set(&terms->busy, problem, "busy", words[3], p);
    }
    if (rv == APR_SUCCESS && n > 4) {
        rv = time_set(&terms->run_after_us, problem, "run-after", words[4], p);
    }
    if (rv == APR_SUCCESS && n > 5) {
        rv = time_set(&terms->refuse_after_us, problem, "refuse-after",
                      words[5], p);
    }
    return rv;
}

apr_status_t yk_rule_terms_parse(yk_rule_terms_t *terms, const char **problem,
                                 const char *argument, apr_pool_t *p)
{
    const char *equals = strchr(argument, '=');
    apr_size_t n;

    if (strcasecmp(argument, "dry-run") == 0) {
        terms->dry_run = 1;
        return APR_SUCCESS;
    }
    if (apr_isdigit(*argument)) {
        return short_parse(terms, problem, argument, p);
    }
    if (equals == NULL) {
        return APR_NOTFOUND;
    }
    n = (apr_size_t)(equals - argument);
#define NUMBER(member, name, text)                                             \
    if (n == sizeof(name) - 1 && strncasecmp(argument, name, n) == 0) {        \
        return number_set(&terms->member, problem, name, equals + 1, p);       \
    }
    YK_RULE_NUMBERS(NUMBER)
#undef NUMBER
#define TIME(member, name, text)                                               \
    if (n == sizeof(name) - 1 && strncasecmp(argument, name, n) == 0) {        \
        return time_set(&terms->member, problem, name, equals + 1, p);         \
    }
    YK_RULE_TIMES(TIME)
#undef TIME
    return APR_NOTFOUND;
}

/* Two that must stand in this order, unless one of them is off. */
static int in_order(const char **problem, const char *low, uint32_t a,
                    const char *high, uint32_t b, int equal, apr_pool_t *p)
{
    if (a == 0 || b == 0 || a < b || (equal && a == b)) {
        return 1;
    }
    *problem =
        apr_psprintf(p,
                     "%s=%u must be below %s%s=%u (0 is off); needed: "
                     "limit < overflow < resume <= busy; %s",
                     low, a, equal ? "or equal to " : "", high, b, EXAMPLE);
    return 0;
}

apr_status_t yk_rule_terms_check(const yk_rule_terms_t *terms,
                                 const char **problem, uint32_t wait,
                                 apr_pool_t *p)
{
    uint32_t busy = terms->busy;

    if (busy == YK_RULE_BUSY_DEFAULT) {
        busy = terms->limit != 0 ? terms->limit + wait : 0;
    }
    if (!in_order(problem, "limit", terms->limit, "overflow", terms->overflow,
                  0, p) ||
        !in_order(problem, "limit", terms->limit, "resume", terms->resume, 0,
                  p) ||
        !in_order(problem, "limit", terms->limit, "busy", busy, 1, p) ||
        !in_order(problem, "overflow", terms->overflow, "resume", terms->resume,
                  0, p) ||
        !in_order(problem, "overflow", terms->overflow, "busy", busy, 0, p) ||
        !in_order(problem, "resume", terms->resume, "busy", busy, 1, p)) {
        return APR_EINVAL;
    }
    if (terms->run_after_us != 0 && terms->refuse_after_us != 0 &&
        terms->run_after_us >= terms->refuse_after_us) {
        *problem = apr_psprintf(
            p,
            "run-after=%s must be below refuse-after=%s (0 is off); for "
            "example: run-after=10s refuse-after=30s",
            yk_rule_time_write(terms->run_after_us, p),
            yk_rule_time_write(terms->refuse_after_us, p));
        return APR_EINVAL;
    }
    if (terms->per_user != 0 && terms->limit != 0 &&
        terms->per_user > terms->limit) {
        *problem = apr_psprintf(p,
                                "per-user=%u is above limit=%u and would never "
                                "hold; from 1 to limit, or 0 (off)",
                                terms->per_user, terms->limit);
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}

char *yk_rule_terms_write(const yk_rule_terms_t *terms, apr_pool_t *p)
{
    char *text = apr_psprintf(p,
                              "limit=%u per-user=%u user-wait=%u "
                              "overflow=%u resume=%u",
                              terms->limit, terms->per_user, terms->user_wait,
                              terms->overflow, terms->resume);

    if (terms->busy != YK_RULE_BUSY_DEFAULT) {
        text = apr_psprintf(p, "%s busy=%u", text, terms->busy);
    }
    return apr_pstrcat(
        p, text, " run-after=", yk_rule_time_write(terms->run_after_us, p),
        " refuse-after=", yk_rule_time_write(terms->refuse_after_us, p),
        terms->dry_run ? " dry-run" : "", NULL);
}
