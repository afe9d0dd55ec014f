/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_CALL_H
#define YK_HTTP_CALL_H

#include <yoyaku/body.h>
#include <yoyaku/request.h>
#include "desk.h"
#include "json.h"

/**
 * @file call.h
 * @brief One request to the desk, from its path to its reply.
 *
 *   route.c      path and method -> what is to be done
 *   same_site.c  may this page ask for that
 *   accept.c     which representation suits
 *   entity.c     the body, read to its bounds and no further
 *   claim.c      the order in hand: header, cookie
 *   once.c       the Idempotency-Key
 *   call.c       booker, terms, lines to the database, tenant
 *   hold.c order.c slots.c board.c shop.c   what is done
 *   document.c   an order as JSON
 *   reply.c      what goes out; status.c: the HTTP code of every answer
 *
 * Everything that can be refused without the database is refused before a line
 * to it is asked for. A reply is an ordinary response with its status set, so
 * that no ErrorDocument takes its place.
 */

typedef enum yk_http_accept_e {
    YK_HTTP_ACCEPT_NOTHING, /**< neither suits */
    YK_HTTP_ACCEPT_JSON,
    YK_HTTP_ACCEPT_HTML,     /**< preferred; JSON does not suit */
    YK_HTTP_ACCEPT_HTML_JSON /**< preferred; JSON suits too */
} yk_http_accept_e;

typedef struct yk_http_call_t {
    request_rec *r;
    const yk_http_desk_dir_t *conf;
    int shop;           /**< handler yoyaku-shop */
    const char *base;   /**< "/yoyaku"; "" for the root */
    const char *method; /**< of the request, or what its form says */
    const char *slot;   /**< {slot} of the path, or NULL */
    uint64_t order_id;  /**< {number} of the path */
    uint32_t line;      /**< {line} of the path */

    yk_http_accept_e accept;
    const char *origin; /**< one that YoyakuAllowOrigin names, or NULL */
    int foreign;        /**< from there: no cookie is read or set */

    yk_body_t *body;   /**< {} without one */
    const char *bytes; /**< as sent */
    apr_size_t len;
    int form; /**< came as a form: answered 303 */
    int read; /**< the body was read to its end */
    int gone; /**< not OK: what the handler returns, unanswered */

    const char *token; /**< as sent; never logged */
    yk_hash_t token_hash;
    yk_claim_t claim_room;
    const yk_claim_t *claim; /**< NULL: none in hand */
    int claim_is_bad;        /**< a header that is no token */

    yk_once_t once_room;
    const yk_once_t *once; /**< NULL: no key */

    yk_terms_t terms;
    yk_store_t *store; /**< made when first needed */
    yk_http_dbd_t *dbd;
    yk_catalogue_t *catalogue;
    int names_difference; /**< the answer says what an exchange cost */
    yk_fault_t fault;     /**< when a check says APR_EINVAL */
} yk_http_call_t;

/* ---- route.c ---- */

/** The handler of both locations. */
int yk_http_route(request_rec *r);

/** The URL of something below the base: yk_http_route_url(call, "/order"). */
const char *yk_http_route_url(const yk_http_call_t *call, const char *below);

/* ---- checks: APR_SUCCESS, or APR_EINVAL with call->fault ---- */

apr_status_t yk_http_same_site_check(yk_http_call_t *call, int is_change);
apr_status_t yk_http_entity_read(yk_http_call_t *call, int is_needed);
apr_status_t yk_http_once_check(yk_http_call_t *call, int names_order);
/** Sets terms.booker; for a hold it must be there if that is required. */
apr_status_t yk_http_call_booker(yk_http_call_t *call, int is_hold);

/** Set the fault. @return APR_EINVAL */
apr_status_t yk_http_call_fault(yk_http_call_t *call, yk_answer_e answer,
                                const char *field, const char *allowed,
                                const char *detail);

/* ---- same_site.c ---- */

/** Say what other origins may do; for every response. */
void yk_http_same_site_headers(yk_http_call_t *call);
/** Answer OPTIONS. */
int yk_http_same_site_options(yk_http_call_t *call, const char *allow);

/* ---- accept.c ---- */

/** What the request's Accept prefers; a tie is JSON. */
yk_http_accept_e yk_http_accept(const request_rec *r);
/** @return 1 when JSON is preferred, not merely as good as a page */
int yk_http_accept_prefers_json(const request_rec *r);
/** @return 1 when Accept-Encoding takes gzip */
int yk_http_accept_gzip(const request_rec *r);

/* ---- claim.c ---- */

/** Look for a token in header and cookie; sets claim. */
void yk_http_claim_read(yk_http_call_t *call);
/** Claim an order by number, as the shop does. */
void yk_http_claim_number(yk_http_call_t *call);
/** @return APR_SUCCESS, or APR_EINVAL: there is none in hand */
apr_status_t yk_http_claim_need(yk_http_call_t *call);
/** Give the browser a token. */
void yk_http_claim_cookie(yk_http_call_t *call, const char *token);

/* ---- call.c: the way to the book ---- */

/** Only look: no more than a line and the tenant.
 *  @return a status of answer.h */
apr_status_t yk_http_call_open(yk_http_call_t *call);
/** Change something: the database must be fit, too. */
apr_status_t yk_http_call_desk(yk_http_call_t *call, yk_desk_t **desk);
/** Give the line back; before anything is sent. */
void yk_http_call_rest(yk_http_call_t *call);

/* ---- status.c ---- */

int yk_http_status(yk_answer_e answer);
/** What a status that is not APR_SUCCESS is called outside. */
yk_answer_e yk_http_status_answer(apr_status_t rv);

/* ---- document.c ---- */

/** The members of an order, as its booker sees it (the shop: more). */
void yk_http_document_order(yk_http_call_t *call, yk_http_json_t *j,
                            const yk_order_t *order, apr_time_t now);

/* ---- board.c ---- */

/** There is no such slot, or it could not be read. */
int yk_http_board_refuse(yk_http_call_t *call, apr_status_t rv);

/* ---- reply.c ---- */

/** Send bytes with a status. */
int yk_http_reply_bytes(yk_http_call_t *call, int status, const char *type,
                        const char *bytes, apr_size_t len);
/** Send a document as it is now. */
int yk_http_reply_json(yk_http_call_t *call, int status, yk_http_json_t *j);
/** Send call->fault. */
int yk_http_reply_fault(yk_http_call_t *call);
/** 303, what a form gets. */
int yk_http_reply_see(yk_http_call_t *call, const char *url);
/** What the desk said: the order, or a problem. `reply` is read also when rv
 *  is APR_INCOMPLETE. */
int yk_http_reply_desk(yk_http_call_t *call, apr_status_t rv,
                       const yk_reply_t *reply);
/** The database could not be asked. */
int yk_http_reply_status(yk_http_call_t *call, apr_status_t rv);
/** Something public: `max-age` seconds, an ETag, 304 when it is known.
 *  @param etag without quotes; @return OK when 304 was sent, else DECLINED */
int yk_http_reply_public(yk_http_call_t *call, const char *etag,
                         const char *cache);
/** A body that was not read must not be read to be thrown away: it may be long.
 *  The connection ends with this response. */
void yk_http_reply_unread(yk_http_call_t *call);
/** Set a note for CustomLog. */
void yk_http_reply_note(yk_http_call_t *call, const char *name,
                        const char *value);

/* ---- what is done ---- */

int yk_http_slots_index(yk_http_call_t *call);
int yk_http_slots_list(yk_http_call_t *call);
int yk_http_slots_look(yk_http_call_t *call);
int yk_http_board_plan(yk_http_call_t *call);
int yk_http_board_availability(yk_http_call_t *call);
int yk_http_hold_make(yk_http_call_t *call);
int yk_http_order_look(yk_http_call_t *call);
int yk_http_order_patch(yk_http_call_t *call);
int yk_http_order_release(yk_http_call_t *call);
int yk_http_order_checkout(yk_http_call_t *call);
int yk_http_order_reopen(yk_http_call_t *call);
int yk_http_order_exchange(yk_http_call_t *call);
int yk_http_order_confirm(yk_http_call_t *call);
int yk_http_order_remove(yk_http_call_t *call);
int yk_http_shop_search(yk_http_call_t *call);
int yk_http_shop_confirm(yk_http_call_t *call);
int yk_http_shop_cancel(yk_http_call_t *call);
int yk_http_shop_release(yk_http_call_t *call);

/** One change at the desk. @param what as its body was read, or NULL */
typedef apr_status_t yk_http_change_fn(yk_desk_t *desk, yk_reply_t *reply,
                                       yk_http_call_t *call, const void *what);

/** Open the desk and make a change; the body has been read.
 *  @return as yk_http_call_desk() and the desk's calls */
apr_status_t yk_http_call_change(yk_http_call_t *call, yk_reply_t *reply,
                                 yk_http_change_fn *change, const void *what);

/** The same and its answer. @param read what reading the body came to: else
 *  its fault is the answer, and the desk stays closed */
int yk_http_call_answer(yk_http_call_t *call, apr_status_t read,
                        yk_http_change_fn *change, const void *what);

#endif
