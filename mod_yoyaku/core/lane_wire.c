/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_wire.h"
#include <apr_strings.h>
#include <string.h>

/* Either direction. After `bad` nothing is read or written any more. Writing
 * changes nothing but the bytes: a wish too long for its record is carried out
 * from the same memory afterwards. */
typedef struct wire_t {
    int writes;
    int bad;
    unsigned char *at;
    unsigned char *end;
    apr_pool_t *p; /* reading: where texts and lists go */
} wire_t;

/* A list can be no longer than this, so that no length makes a huge one. */
#define LIST_MOST 1024

static void pass(wire_t *w, void *value, apr_size_t len)
{
    if (w->bad || (apr_size_t)(w->end - w->at) < len) {
        w->bad = 1;
        if (!w->writes) {
            memset(value, 0, len);
        }
        return;
    }
    if (w->writes) {
        memcpy(w->at, value, len);
    }
    else {
        memcpy(value, w->at, len);
    }
    w->at += len;
}

#define PASS(w, member) pass(w, &(member), sizeof(member))

static void pass_text(wire_t *w, const char **text)
{
    uint32_t len = UINT32_MAX;
    char *copy;

    if (w->writes && *text != NULL) {
        len = (uint32_t)strlen(*text);
    }
    PASS(w, len);
    if (w->writes) {
        if (len != UINT32_MAX) {
            pass(w, (void *)(uintptr_t)*text, len);
        }
        return;
    }
    if (w->bad || (apr_size_t)(w->end - w->at) < len) {
        w->bad |= len != UINT32_MAX;
        *text = NULL;
        return;
    }
    copy = apr_palloc(w->p, len + 1);
    pass(w, copy, len);
    copy[len] = '\0';
    *text = copy;
}

/* A list's length; reading: its memory. */
static void *pass_list(wire_t *w, const void *list, uint32_t *n,
                       apr_size_t size)
{
    PASS(w, *n);
    if (w->bad || *n > LIST_MOST) {
        w->bad = 1;
        *n = w->writes ? *n : 0;
    }
    return w->writes ? (void *)(uintptr_t)list
                     : apr_pcalloc(w->p, (*n + 1) * size);
}

/* Something that may be there or not. */
static void *pass_optional(wire_t *w, const void *thing, apr_size_t size)
{
    unsigned char there = thing != NULL;

    PASS(w, there);
    if (w->writes) {
        return (void *)(uintptr_t)thing;
    }
    return there && !w->bad ? apr_pcalloc(w->p, size) : NULL;
}

static void pass_terms(wire_t *w, yk_terms_t *terms)
{
    PASS(w, terms->tenant_id);
    pass_text(w, &terms->booker);
    PASS(w, terms->booker_required);
    PASS(w, terms->shop);
    pass_text(w, &terms->who);
    PASS(w, terms->confirm);
    PASS(w, terms->hold_ttl);
    PASS(w, terms->hold_max_lifetime);
    PASS(w, terms->checkout_ttl);
    PASS(w, terms->wait);
    PASS(w, terms->hold_places);
    PASS(w, terms->pass);
}

static void pass_wish_line(wire_t *w, yk_wish_line_t *line)
{
    pass_text(w, &line->slot);
    pass_text(w, &line->place);
    pass_text(w, &line->area);
    pass_text(w, &line->field);
    PASS(w, line->nparts);
    if (line->nparts > YK_WISH_PARTS) {
        w->bad = 1;
        line->nparts = w->writes ? line->nparts : 0;
        return;
    }
    for (uint32_t i = 0; i < line->nparts; i++) {
        pass_text(w, &line->parts[i].tariff);
        PASS(w, line->parts[i].quantity);
    }
}

static void pass_wish(wire_t *w, const yk_wish_t **pwish)
{
    yk_wish_t *wish = pass_optional(w, *pwish, sizeof(*wish));

    *pwish = wish;
    if (wish == NULL) {
        return;
    }
    wish->lines =
        pass_list(w, wish->lines, &wish->nlines, sizeof(*wish->lines));
    for (uint32_t i = 0; i < wish->nlines; i++) {
        pass_wish_line(w, &wish->lines[i]);
    }
    PASS(w, wish->together);
    PASS(w, wish->confirm);
    PASS(w, wish->fresh);
    pass_text(w, &wish->reference);
}

static void pass_claim(wire_t *w, const yk_claim_t **pclaim)
{
    yk_claim_t *claim = pass_optional(w, *pclaim, sizeof(*claim));
    yk_hash_t *token;

    *pclaim = claim;
    if (claim == NULL) {
        return;
    }
    token = pass_optional(w, claim->token, sizeof(*token));
    claim->token = token;
    if (token != NULL) {
        PASS(w, *token);
    }
    PASS(w, claim->order_id);
    PASS(w, claim->weak);
}

static void pass_once(wire_t *w, const yk_once_t **ponce)
{
    yk_once_t *once = pass_optional(w, *ponce, sizeof(*once));

    *ponce = once;
    if (once != NULL) {
        pass_text(w, &once->key);
        PASS(w, once->scope);
        PASS(w, once->request);
    }
}

static void pass_payment(wire_t *w, const yk_payment_t **ppayment)
{
    yk_payment_t *payment = pass_optional(w, *ppayment, sizeof(*payment));

    *ppayment = payment;
    if (payment != NULL) {
        PASS(w, payment->attempt);
        PASS(w, payment->amount);
        pass_text(w, &payment->currency);
        pass_text(w, &payment->payment);
    }
}

static void pass_ask(wire_t *w, yk_ask_t *ask)
{
    yk_give_t *give;

    PASS(w, ask->kind);
    if ((unsigned)ask->kind >= YK_ASK_COUNT || ask->patch != NULL) {
        w->bad = 1;
        return;
    }
    pass_claim(w, &ask->claim);
    pass_once(w, &ask->once);
    pass_wish(w, &ask->wish);
    give = pass_list(w, ask->give, &ask->ngive, sizeof(*give));
    ask->give = give;
    for (uint32_t i = 0; i < ask->ngive; i++) {
        PASS(w, give[i]);
    }
    PASS(w, ask->amount);
    pass_text(w, &ask->currency);
    pass_payment(w, &ask->payment);
    pass_text(w, &ask->why);
}

static void pass_lane_wish(wire_t *w, yk_lane_wish_t *wish)
{
    pass_terms(w, &wish->terms);
    pass_ask(w, &wish->ask);
    pass_text(w, &wish->token);
    PASS(w, wish->salt);
    PASS(w, wish->change_id);
}

static void pass_line(wire_t *w, yk_line_t *line)
{
    PASS(w, line->line);
    PASS(w, line->slot_id);
    PASS(w, line->area_no);
    PASS(w, line->place_no);
    PASS(w, line->quantity);
    PASS(w, line->price_no);
    pass_text(w, &line->tariff);
    PASS(w, line->amount);
    PASS(w, line->currency);
    PASS(w, line->live);
    pass_text(w, &line->holder);
}

static void pass_order(wire_t *w, const yk_order_t **porder)
{
    yk_order_t *order = pass_optional(w, *porder, sizeof(*order));

    *porder = order;
    if (order == NULL) {
        return;
    }
    PASS(w, order->order_id);
    PASS(w, order->tenant_id);
    PASS(w, order->state);
    PASS(w, order->version);
    PASS(w, order->until_us);
    PASS(w, order->begun_us);
    PASS(w, order->max_until_us);
    PASS(w, order->checkout_end_us);
    PASS(w, order->confirmed_us);
    PASS(w, order->attempt);
    PASS(w, order->late);
    PASS(w, order->token_hash);
    pass_text(w, &order->booker);
    PASS(w, order->booker_hash);
    pass_text(w, &order->reference);
    pass_text(w, &order->contact);
    pass_text(w, &order->data);
    pass_text(w, &order->payment);
    PASS(w, order->currency);
    PASS(w, order->next_line);
    PASS(w, order->pass);
    order->lines =
        pass_list(w, order->lines, &order->nlines, sizeof(*order->lines));
    for (uint32_t i = 0; i < order->nlines; i++) {
        pass_line(w, &order->lines[i]);
    }
    if (!w->writes) {
        order->line_space = order->nlines;
    }
}

static void pass_refused_places(wire_t *w, yk_reply_t *reply)
{
    reply->places =
        pass_list(w, reply->places, &reply->nplaces, sizeof(*reply->places));
    for (uint32_t i = 0; i < reply->nplaces; i++) {
        pass_text(w, &reply->places[i].slot);
        pass_text(w, &reply->places[i].place);
    }
}

static void pass_reply(wire_t *w, yk_reply_t *reply)
{
    PASS(w, reply->answer);
    if ((unsigned)reply->answer >= YK_ANSWER_COUNT) {
        w->bad = 1;
        return;
    }
    PASS(w, reply->replayed);
    PASS(w, reply->created);
    pass_order(w, &reply->order);
    PASS(w, reply->now_us);
    PASS(w, reply->seating);
    PASS(w, reply->late);
    PASS(w, reply->difference);
    pass_text(w, &reply->field);
    pass_text(w, &reply->allowed);
    pass_text(w, &reply->slot);
    pass_text(w, &reply->area);
    pass_text(w, &reply->tariff);
    PASS(w, reply->free);
    pass_refused_places(w, reply);
    PASS(w, reply->complete);
    pass_text(w, &reply->limit);
    pass_text(w, &reply->scope);
    PASS(w, reply->max);
    PASS(w, reply->have);
    PASS(w, reply->asked);
    pass_text(w, &reply->state);
    PASS(w, reply->opens);
    PASS(w, reply->closes);
    PASS(w, reply->attempt);
    PASS(w, reply->total);
    pass_text(w, &reply->currency);
}

apr_size_t yk_lane_wish_write(unsigned char *bytes, apr_size_t space,
                              const yk_lane_wish_t *wish)
{
    wire_t w = {.writes = 1, .at = bytes, .end = bytes + space};
    yk_lane_wish_t copy = *wish;

    pass_lane_wish(&w, &copy);
    return w.bad ? 0 : (apr_size_t)(w.at - bytes);
}

apr_status_t yk_lane_wish_read(yk_lane_wish_t *wish, const unsigned char *bytes,
                               apr_size_t len, apr_pool_t *p)
{
    /* Out of the shared memory first: it may change under a reader. */
    unsigned char *own = apr_pmemdup(p, bytes, len);
    wire_t w = {.at = own, .end = own + len, .p = p};

    memset(wish, 0, sizeof(*wish));
    pass_lane_wish(&w, wish);
    return w.bad || w.at != w.end || wish->terms.booker == NULL ||
                   wish->terms.who == NULL
               ? APR_EINVAL
               : APR_SUCCESS;
}

apr_size_t yk_lane_reply_write(unsigned char *bytes, apr_size_t space,
                               const yk_reply_t *reply)
{
    wire_t w = {.writes = 1, .at = bytes, .end = bytes + space};
    yk_reply_t copy = *reply;
    unsigned char has_token = reply->token != NULL;

    PASS(&w, has_token);
    pass_reply(&w, &copy);
    return w.bad ? 0 : (apr_size_t)(w.at - bytes);
}

apr_status_t yk_lane_reply_read(yk_reply_t *reply, int *has_token,
                                const unsigned char *bytes, apr_size_t len,
                                apr_pool_t *p)
{
    unsigned char *own = apr_pmemdup(p, bytes, len);
    wire_t w = {.at = own, .end = own + len, .p = p};
    unsigned char token = 0;

    memset(reply, 0, sizeof(*reply));
    PASS(&w, token);
    pass_reply(&w, reply);
    *has_token = token;
    return w.bad || w.at != w.end ? APR_EINVAL : APR_SUCCESS;
}
