/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/room.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>
#include <strings.h>
#include "yoyaku/rule.h"
#include "yoyaku/text.h"

#define EXAMPLE                                                                \
    "for example: YoyakuWaitingRoom sale active=2000 rate=40/s visit=15min"

void yk_room_terms_default(yk_room_terms_t *terms)
{
    memset(terms, 0, sizeof(*terms));
    terms->active = 2000;
    terms->rate_milli = 40000;
    terms->orders = 1;
    terms->visit_us = apr_time_from_sec(900);
    terms->idle_us = apr_time_from_sec(180);
    terms->grace_us = apr_time_from_sec(120);
}

apr_status_t yk_room_rate_parse(uint32_t *rate_milli, const char *text)
{
    int64_t milli = 0, scale = 1000;
    const char *at = text;

    while (apr_isdigit(*at) && milli < 10000000) {
        milli = milli * 10 + (*at++ - '0') * 1000;
    }
    if (*at == '.') {
        for (at++; apr_isdigit(*at) && scale > 1; at++) {
            scale /= 10;
            milli += (*at - '0') * scale;
        }
    }
    if (at == text || milli < 1 || milli > 10000000) {
        return APR_EINVAL;
    }
    if (strcmp(at, "/min") == 0) {
        milli = (milli + 59) / 60;
    }
    else if (strcmp(at, "/s") != 0 && *at != '\0') {
        return APR_EINVAL;
    }
    *rate_milli = (uint32_t)milli;
    return APR_SUCCESS;
}

char *yk_room_rate_write(uint32_t rate_milli, apr_pool_t *p)
{
    if (rate_milli % 1000 == 0) {
        return apr_psprintf(p, "%u/s", rate_milli / 1000);
    }
    return apr_psprintf(p, "%u.%03u/s", rate_milli / 1000, rate_milli % 1000);
}

static apr_status_t number_set(uint32_t *number, const char **problem,
                               const char *name, const char *text, int least,
                               int most, apr_pool_t *p)
{
    char *end;
    apr_int64_t n = apr_strtoi64(text, &end, 10);

    if (!apr_isdigit(*text) || *end != '\0' || n < least || n > most) {
        *problem = apr_psprintf(p, "%s=%s: not a number from %d to %d; %s",
                                name, text, least, most, EXAMPLE);
        return APR_EINVAL;
    }
    *number = (uint32_t)n;
    return APR_SUCCESS;
}

static apr_status_t time_set(int64_t *us, const char **problem,
                             const char *name, const char *text, apr_pool_t *p)
{
    if (yk_rule_time_parse(us, text) != APR_SUCCESS || *us < APR_USEC_PER_SEC) {
        *problem = apr_psprintf(p, "%s=%s: not a time from 1s to 24h; %s", name,
                                text, EXAMPLE);
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}

apr_status_t yk_room_terms_parse(yk_room_terms_t *terms, const char **problem,
                                 const char *argument, apr_pool_t *p)
{
    const char *equals = strchr(argument, '=');
    const char *name =
        equals != NULL ? apr_pstrmemdup(p, argument, equals - argument) : "";
    const char *text = equals != NULL ? equals + 1 : "";

    if (strcasecmp(name, "active") == 0) {
        return number_set(&terms->active, problem, name, text, 1, YK_ROOM_LIVE,
                          p);
    }
    if (strcasecmp(name, "orders") == 0) {
        return number_set(&terms->orders, problem, name, text, 0, 1000, p);
    }
    if (strcasecmp(name, "visit") == 0) {
        return time_set(&terms->visit_us, problem, name, text, p);
    }
    if (strcasecmp(name, "idle") == 0) {
        return time_set(&terms->idle_us, problem, name, text, p);
    }
    if (strcasecmp(name, "grace") == 0) {
        return time_set(&terms->grace_us, problem, name, text, p);
    }
    if (strcasecmp(name, "rate") == 0) {
        if (yk_room_rate_parse(&terms->rate_milli, text) != APR_SUCCESS) {
            *problem = apr_psprintf(p,
                                    "rate=%s: not a rate from 0.001/s to "
                                    "10000/s, or so many /min; %s",
                                    text, EXAMPLE);
            return APR_EINVAL;
        }
        return APR_SUCCESS;
    }
    if (strcasecmp(name, "opens") == 0) {
        if (yk_time_parse(&terms->opens_us, text) != APR_SUCCESS) {
            *problem = apr_psprintf(p,
                                    "opens=%s: not a time with its zone; for "
                                    "example: opens=2026-12-24T18:00:00+01:00",
                                    text);
            return APR_EINVAL;
        }
        return APR_SUCCESS;
    }
    return APR_NOTFOUND;
}

apr_status_t yk_room_terms_check(const yk_room_terms_t *terms,
                                 const char **problem, apr_pool_t *p)
{
    if (terms->idle_us > terms->visit_us) {
        *problem = apr_psprintf(
            p, "idle=%s is longer than visit=%s and would never end one; %s",
            yk_rule_time_write(terms->idle_us, p),
            yk_rule_time_write(terms->visit_us, p), EXAMPLE);
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}
