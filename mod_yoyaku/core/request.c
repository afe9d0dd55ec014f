/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/request.h"

#include <string.h>

#define KEY_ALLOWED "1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'"
#define WHAT_ALLOWED "either place or area"
#define SHORT_ALLOWED "one of lines, places and area"
#define COUNT_ALLOWED "either quantity or tariffs"
#define MONEY_ALLOWED "a text such as \"90.00\", with the currency's decimals"

/* ---- wishes ---- */

static void forbid(yk_body_t *body, const char *member, const char *allowed)
{
    if (yk_body_has(body, member)) {
        yk_body_refuse(body, member, allowed, "%s does not go with the rest.",
                       yk_body_path(body, member));
    }
}

static const char *read_tariff(yk_body_t *body)
{
    return yk_body_text(body, "tariff", 1, YK_TEXT_KEY);
}

/* "tariffs": {"adult": 2, "child": 2} */
static void read_tariffs(yk_wish_line_t *line, yk_body_t *body)
{
    yk_body_t *tariffs = yk_body_object(body, "tariffs");
    int64_t least = yk_body_is_form(body) ? 0 : 1, people = 0;
    const char **names = NULL;
    uint32_t n;

    if (tariffs == NULL) {
        return;
    }
    /* A page may show more boxes than one line has tariffs; most are empty. */
    n = yk_body_names(&names, tariffs,
                      yk_body_is_form(body) ? YK_WISH_COUNT : YK_WISH_PARTS);
    for (uint32_t i = 0; i < n; i++) {
        int64_t count =
            yk_body_number(tariffs, names[i], least, YK_WISH_COUNT, 0);

        if (names[i][0] == '\0' || strlen(names[i]) > YK_TEXT_KEY) {
            yk_body_refuse(tariffs, names[i], "a name of 1 to 64 bytes",
                           "No tariff has such a name.");
        }
        if (count == 0) {
            continue;
        }
        people += count;
        if (line->nparts == YK_WISH_PARTS || people > YK_WISH_COUNT) {
            yk_body_refuse(body, "tariffs",
                           "at most 8 tariffs and 256 people in a line",
                           "%s asks for too much in one line.",
                           yk_body_path(body, "tariffs"));
            return;
        }
        line->parts[line->nparts].tariff = names[i];
        line->parts[line->nparts++].quantity = (uint32_t)count;
    }
    if (line->nparts == 0) {
        yk_body_refuse(body, "tariffs", "1 to 256 people",
                       "%s asks for nobody.", yk_body_path(body, "tariffs"));
    }
}

/* How many in line->area, and at what. */
static void read_count(yk_wish_line_t *line, yk_body_t *body)
{
    if (yk_body_has(body, "tariffs")) {
        forbid(body, "quantity", COUNT_ALLOWED);
        forbid(body, "tariff", "either tariff or tariffs");
        read_tariffs(line, body);
        return;
    }
    yk_body_need(body, "quantity", "a whole number from 1 to 256");
    line->nparts = 1;
    line->parts[0].quantity =
        (uint32_t)yk_body_number(body, "quantity", 1, YK_WISH_COUNT, 1);
    line->parts[0].tariff = read_tariff(body);
}

static void set_place(yk_wish_line_t *line, const char *place,
                      const char *tariff)
{
    line->place = place;
    line->nparts = 1;
    line->parts[0].quantity = 1;
    line->parts[0].tariff = tariff;
}

/* One of "lines". */
static void read_line(yk_wish_line_t *line, yk_body_t *item, const char *slot)
{
    yk_body_t *body = yk_body_object(item, NULL);

    if (body == NULL) {
        return;
    }
    line->field = yk_body_path(body, NULL);
    if (slot == NULL) {
        yk_body_need(body, "slot", KEY_ALLOWED);
    }
    line->slot = yk_body_key(body, "slot");
    if (line->slot == NULL) {
        line->slot = slot;
    }
    else if (slot != NULL && strcmp(line->slot, slot) != 0) {
        yk_body_refuse(body, "slot", slot,
                       "The line names another slot than the URL.");
    }
    if (yk_body_has(body, "place")) {
        forbid(body, "area", WHAT_ALLOWED);
        forbid(body, "quantity", "nothing: a place is one");
        forbid(body, "tariffs", "tariff");
        set_place(line, yk_body_text(body, "place", 1, YK_TEXT_KEY),
                  read_tariff(body));
        return;
    }
    yk_body_need(body, "area", WHAT_ALLOWED);
    line->area = yk_body_text(body, "area", 1, YK_TEXT_NAME);
    read_count(line, body);
}

static yk_wish_line_t *lines_make(yk_wish_t *wish, uint32_t n, apr_pool_t *p)
{
    wish->nlines = n;
    wish->lines = apr_pcalloc(p, (n > 0 ? n : 1) * sizeof(*wish->lines));
    return wish->lines;
}

static void read_lines(yk_wish_t *wish, yk_body_t *body, const char *slot,
                       apr_pool_t *p)
{
    yk_body_t **items = NULL;
    uint32_t n;

    yk_body_need(body, "lines", "a list of 1 to 256 lines");
    n = yk_body_list(&items, body, "lines", YK_WISH_LINES);
    lines_make(wish, n, p);
    for (uint32_t i = 0; i < n; i++) {
        read_line(&wish->lines[i], items[i], slot);
    }
}

/* {"places": ["A-12", "A-13"], "tariff": "adult"} */
static void read_places(yk_wish_t *wish, yk_body_t *body, const char *slot,
                        apr_pool_t *p)
{
    yk_body_t **items = NULL;
    uint32_t n = yk_body_list(&items, body, "places", YK_WISH_LINES);
    const char *tariff = read_tariff(body);

    lines_make(wish, n, p);
    for (uint32_t i = 0; i < n; i++) {
        yk_wish_line_t *line = &wish->lines[i];

        yk_body_need(items[i], NULL, "a text of 1 to 64 bytes");
        line->slot = slot;
        line->field = yk_body_path(items[i], NULL);
        set_place(line, yk_body_text(items[i], NULL, 1, YK_TEXT_KEY), tariff);
    }
}

/* No place twice: it would be taken once and paid twice. */
static void refuse_twice(const yk_wish_t *wish, yk_body_t *body)
{
    for (uint32_t i = 1; i < wish->nlines; i++) {
        const yk_wish_line_t *line = &wish->lines[i];

        for (uint32_t j = 0; line->place != NULL && j < i; j++) {
            const yk_wish_line_t *other = &wish->lines[j];

            if (other->place != NULL &&
                strcmp(other->place, line->place) == 0 &&
                strcmp(other->slot, line->slot) == 0) {
                yk_body_refuse(body, line->field, "each place once",
                               "%s names a place a second time.", line->field);
                return;
            }
        }
    }
}

apr_status_t yk_request_wish(yk_wish_t **pwish, yk_fault_t *fault,
                             yk_body_t *body, const char *slot, apr_pool_t *p)
{
    yk_wish_t *wish = apr_pcalloc(p, sizeof(*wish));
    apr_status_t rv;

    if (slot == NULL || yk_body_has(body, "lines")) {
        forbid(body, "places", SHORT_ALLOWED);
        forbid(body, "area", SHORT_ALLOWED);
        read_lines(wish, body, slot, p);
    }
    else if (yk_body_has(body, "places")) {
        forbid(body, "area", SHORT_ALLOWED);
        forbid(body, "quantity", "nothing: a place is one");
        forbid(body, "tariffs", "tariff");
        read_places(wish, body, slot, p);
    }
    else {
        yk_wish_line_t *line = lines_make(wish, 1, p);

        yk_body_need(body, "area", SHORT_ALLOWED);
        line->slot = slot;
        line->field = "area";
        line->area = yk_body_text(body, "area", 1, YK_TEXT_NAME);
        read_count(line, body);
    }
    wish->together = yk_body_flag(body, "together", 0);
    wish->confirm = yk_body_flag(body, "confirm", 0);
    wish->fresh = yk_body_flag(body, "new", 0);
    wish->reference = yk_body_text(body, "reference", 0, YK_TEXT_NAME);
    if (!yk_body_is_bad(body)) {
        refuse_twice(wish, body);
    }
    rv = yk_body_check(body, fault);
    if (rv == APR_SUCCESS) {
        *pwish = wish;
    }
    return rv;
}

/* ---- money ---- */

/* "amount" and "currency"; -1 when no amount was sent. */
static int64_t read_money(const char **currency, yk_body_t *body)
{
    const char *amount = yk_body_text(body, "amount", 1, 20);
    int64_t minor = -1;

    *currency = NULL;
    if (!yk_body_is_null(body, "currency")) {
        *currency = yk_body_text(body, "currency", 0, 3);
    }
    if (*currency == NULL) {
        *currency = "";
    }
    if (**currency != '\0' && !yk_money_is_currency(*currency)) {
        yk_body_refuse(body, "currency", "three capital letters",
                       "currency must be three capital letters.");
    }
    if (amount == NULL) {
        return -1;
    }
    if (yk_money_parse(&minor, amount, *currency) != APR_SUCCESS) {
        yk_body_refuse(body, "amount", MONEY_ALLOWED,
                       "amount is not money of this currency.");
    }
    if (minor > 0 && **currency == '\0') {
        yk_body_refuse(body, "currency", "three capital letters",
                       "currency is missing beside the amount.");
    }
    return minor;
}

/* ---- the others ---- */

static uint32_t read_line_no(yk_body_t *body)
{
    yk_body_need(body, "line", "the number of a line of the order");
    return (uint32_t)yk_body_number(body, "line", 1, UINT32_MAX, 0);
}

/* "give": [{"line": 1, "quantity": 1}] */
static void read_give(yk_exchange_t *exchange, yk_body_t *body, apr_pool_t *p)
{
    yk_body_t **items = NULL;
    uint32_t n = yk_body_list(&items, body, "give", YK_WISH_LINES);

    exchange->ngive = n;
    exchange->give = apr_pcalloc(p, (n + 1) * sizeof(*exchange->give));
    for (uint32_t i = 0; i < n; i++) {
        yk_body_t *item = yk_body_object(items[i], NULL);

        if (item == NULL) {
            return;
        }
        exchange->give[i].line = read_line_no(item);
        exchange->give[i].quantity =
            (uint32_t)yk_body_number(item, "quantity", 1, YK_WISH_COUNT, 0);
        for (uint32_t j = 0; j < i; j++) {
            if (exchange->give[j].line == exchange->give[i].line) {
                yk_body_refuse(item, "line", "each line once",
                               "A line is given a second time.");
            }
        }
    }
}

apr_status_t yk_request_exchange(yk_exchange_t **pexchange, yk_fault_t *fault,
                                 yk_body_t *body, apr_pool_t *p)
{
    yk_exchange_t *exchange = apr_pcalloc(p, sizeof(*exchange));
    yk_body_t *take;
    apr_status_t rv;

    exchange->take = apr_pcalloc(p, sizeof(*exchange->take));
    if (!yk_body_has(body, "take")) {
        yk_body_need(body, "give", "give, take or both");
    }
    read_give(exchange, body, p);
    take = yk_body_object(body, "take");
    if (take != NULL) {
        read_lines(exchange->take, take, NULL, p);
        exchange->take->together = yk_body_flag(take, "together", 0);
    }
    exchange->amount = read_money(&exchange->currency, body);
    exchange->reason = yk_body_text(body, "reason", 0, YK_TEXT_NAME);
    if (exchange->reason == NULL) {
        exchange->reason = "";
    }
    if (!yk_body_is_bad(body)) {
        refuse_twice(exchange->take, body);
    }
    rv = yk_body_check(body, fault);
    if (rv == APR_SUCCESS) {
        *pexchange = exchange;
    }
    return rv;
}

/* "holders": [{"line": 1, "holder": "..."}] */
static void read_holders(yk_patch_t *patch, yk_body_t *body, apr_pool_t *p)
{
    yk_body_t **items = NULL;
    uint32_t n = yk_body_list(&items, body, "holders", YK_WISH_LINES);

    patch->nholders = n;
    patch->holders = apr_pcalloc(p, (n + 1) * sizeof(*patch->holders));
    for (uint32_t i = 0; i < n; i++) {
        yk_body_t *item = yk_body_object(items[i], NULL);

        if (item == NULL) {
            return;
        }
        patch->holders[i].line = read_line_no(item);
        patch->holders[i].holder =
            yk_body_text(item, "holder", 0, YK_TEXT_NAME);
        if (patch->holders[i].holder == NULL) {
            yk_body_refuse(item, "holder", "a text of 0 to 250 bytes",
                           "%s is missing.", yk_body_path(item, "holder"));
        }
        for (uint32_t j = 0; j < i; j++) {
            if (patch->holders[j].line == patch->holders[i].line) {
                yk_body_refuse(item, "line", "each line once",
                               "A line is named a second time.");
            }
        }
    }
}

apr_status_t yk_request_patch(yk_patch_t **ppatch, yk_fault_t *fault,
                              yk_body_t *body, apr_pool_t *p)
{
    yk_patch_t *patch = apr_pcalloc(p, sizeof(*patch));
    apr_status_t rv;

    patch->reference = yk_body_text(body, "reference", 0, YK_TEXT_NAME);
    patch->contact = yk_body_text(body, "contact", 0, YK_TEXT_NAME);
    patch->data = yk_body_text(body, "data", 0, YK_TEXT_DATA);
    read_holders(patch, body, p);
    rv = yk_body_check(body, fault);
    if (rv == APR_SUCCESS) {
        *ppatch = patch;
    }
    return rv;
}

apr_status_t yk_request_payment(yk_payment_t **ppayment, yk_fault_t *fault,
                                yk_body_t *body, apr_pool_t *p)
{
    yk_payment_t *payment = apr_pcalloc(p, sizeof(*payment));
    apr_status_t rv;

    yk_body_need(body, "attempt", "the attempt that checkout answered");
    payment->attempt =
        (uint32_t)yk_body_number(body, "attempt", 0, UINT32_MAX, 0);
    yk_body_need(body, "amount", MONEY_ALLOWED);
    payment->amount = read_money(&payment->currency, body);
    payment->payment = yk_body_text(body, "payment", 0, YK_TEXT_NAME);
    if (payment->payment == NULL) {
        payment->payment = "";
    }
    rv = yk_body_check(body, fault);
    if (rv == APR_SUCCESS) {
        *ppayment = payment;
    }
    return rv;
}

apr_status_t yk_request_reason(const char **reason, yk_fault_t *fault,
                               yk_body_t *body, apr_pool_t *p)
{
    const char *said = yk_body_text(body, "reason", 0, YK_TEXT_NAME);
    apr_status_t rv = yk_body_check(body, fault);

    if (rv == APR_SUCCESS) {
        *reason = said != NULL ? said : "";
    }
    return rv;
}

apr_status_t yk_request_nothing(yk_fault_t *fault, yk_body_t *body)
{
    return yk_body_check(body, fault);
}
