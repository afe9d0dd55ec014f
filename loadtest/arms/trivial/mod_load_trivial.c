/* SPDX-License-Identifier: Apache-2.0 */
#include "../arm.h"
#include <http_request.h>
#include <stdlib.h>

/*
 * The floor that everything else stands on: httpd, its connection handling,
 * a body read, an answer of a hold's size written. No database, no lock.
 *
 *   POST   /trivial/...        201 and an order of one line
 *   DELETE /trivial/order      200, released
 *   GET    /trivial/board/x    as many places as LoadTrivialBoard says; 304
 *                              when If-None-Match has its tag
 *   GET    /trivial/board/950  so many bytes of it: what a compressed one is
 *   GET    /trivial/count      how many of all these there were
 */

extern module AP_MODULE_DECLARE_DATA load_trivial_module;

#define BOARD_TAG "\"trivial-board\""

static char *board;
static apr_size_t board_len;

/* What the desk says of one place, byte for byte as long. */
#define ONE_LINE                                                               \
    "\"total\":\"45.00\",\"currency\":\"EUR\",\"lines\":[{\"line\":1,"         \
    "\"slot\":"                                                                \
    "\"m1\",\"section\":\"Stalls\",\"row\":\"A\",\"seat\":\"12\",\"place\":"   \
    "\"A-12\",\"grade\":\"T071\",\"tariff\":\"standard\",\"price\":\"45.00\"}" \
    "]}"

static const char order[] =
    "{\"number\":\"0TR1V1A100000\",\"token\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAA\","
    "\"state\":\"held\",\"expires\":\"2026-12-24T18:00:00Z\","
    "\"seconds_left\":600," ONE_LINE;

static const char released[] =
    "{\"number\":\"0TR1V1A100000\",\"state\":\"released\",\"expires\":null,"
    "\"seconds_left\":0," ONE_LINE;

static int reply(request_rec *r, const char *bytes, apr_size_t len)
{
    return arm_reply(r, "application/json", bytes, len);
}

static int send_board(request_rec *r)
{
    const char *tag = apr_table_get(r->headers_in, "If-None-Match");
    apr_size_t len = (apr_size_t)atoi(r->uri + sizeof("/trivial/board/") - 1);

    apr_table_setn(r->headers_out, "ETag", BOARD_TAG);
    if (tag != NULL && strcmp(tag, BOARD_TAG) == 0) {
        r->status = HTTP_NOT_MODIFIED;
        return OK;
    }
    return reply(r, board, len > 0 && len < board_len ? len : board_len);
}

static int handler(request_rec *r)
{
    if (r->handler == NULL || strcmp(r->handler, "load-trivial") != 0) {
        return DECLINED;
    }
    if (strcmp(r->uri, "/trivial/count") == 0) {
        return arm_reply_count(r, "application/json");
    }
    apr_atomic_inc32(arm_counter());
    if (r->method_number == M_GET) {
        return send_board(r);
    }
    if (ap_discard_request_body(r) != OK) {
        return HTTP_BAD_REQUEST;
    }
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    if (r->method_number == M_DELETE) {
        return reply(r, released, sizeof(released) - 1);
    }
    r->status = HTTP_CREATED;
    apr_table_setn(r->headers_out, "Location", "/trivial/order");
    apr_table_setn(
        r->headers_out, "Set-Cookie",
        "yoyaku_order=AAAAAAAAAAAAAAAAAAAAAAAAAAA; Path=/; HttpOnly; "
        "SameSite=Lax");
    return reply(r, order, sizeof(order) - 1);
}

static const char *set_board(cmd_parms *cmd, void *dummy, const char *value)
{
    static const char head[] =
        "{\"slot\":\"demo\",\"sections\":[{\"places\":\"";
    apr_size_t places = (apr_size_t)atoi(value);

    board = apr_palloc(cmd->pool, sizeof(head) + places + 8);
    memcpy(board, head, sizeof(head) - 1);
    memset(board + sizeof(head) - 1, '0', places);
    memcpy(board + sizeof(head) - 1 + places, "\"}]}", 5);
    board_len = sizeof(head) - 1 + places + 4;
    return NULL;
}

static const command_rec directives[] = {
    AP_INIT_TAKE1("LoadTrivialBoard", set_board, NULL, RSRC_CONF,
                  "how many places the board has"),
    {NULL}};

static void hooks(apr_pool_t *p)
{
    ap_hook_post_config(arm_begin, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(load_trivial) = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, directives, hooks, 0,
};
