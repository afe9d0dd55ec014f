/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <yoyaku/text.h>
#include "desk.h"
#include "refusal.h"
#include "room.h"
#include <yoyaku/snapshot.h>

#define ASK_EVERY 20 /* seconds, jittered up to 30 */
#define PUBLIC_AGE "public, max-age=2"
#define SNAPSHOT_AGE apr_time_from_sec(2)

static int jittered(void)
{
    return ASK_EVERY + yk_http_refusal_retry(5) - 5;
}

static const char *key_text(uint64_t key, apr_pool_t *p)
{
    return apr_psprintf(p, "%016" APR_UINT64_T_HEX_FMT, (apr_uint64_t)key);
}

static const char *number_or_null(int is, int64_t n, apr_pool_t *p)
{
    return is ? apr_psprintf(p, "%" APR_INT64_T_FMT, (apr_int64_t)n) : "null";
}

/* What both the page and an asking client are told of a number. Thousands ask
 * each second and nothing in it wants quoting: it is written as it stands. */
static const char *text_of(const yk_room_answer_t *answer, apr_pool_t *p)
{
    int waits = answer->what == YK_ROOM_WAIT, knows = answer->wait_us >= 0;
    /* by it the page reads its place from the marks, which count only those
     * whose numbers came back */
    int has_key = answer->key != 0 && answer->is_known;

    return apr_psprintf(
        p,
        "{\"inWaitingRoom\":%s,\"position\":%s,\"waitTimeKnown\":%s,"
        "\"waitTime\":%s,\"refreshIntervalSeconds\":%d%s%s%s}",
        waits ? "true" : "false",
        number_or_null(waits && answer->is_known, (int64_t)answer->ahead + 1,
                       p),
        knows ? "true" : "false",
        number_or_null(knows, answer->wait_us / 60000000 + 1, p), jittered(),
        has_key ? ",\"key\":\"" : "", has_key ? key_text(answer->key, p) : "",
        has_key ? "\"" : "");
}

static json_t *values_of(const yk_room_answer_t *answer, apr_pool_t *p)
{
    return json_loads(text_of(answer, p), 0, NULL);
}

/* Where the page finds the public document. Without a <Location> of the
 * handler's to go by it finds none, and asks for its own number alone. */
static json_t *rooms_of(request_rec *r)
{
    const char *base = yk_http_desk_scan_near(r->server);

    return base == NULL
               ? json_null()
               : json_string(apr_pstrcat(r->pool,
                                         ap_os_escape_path(r->pool, base, 1),
                                         "/rooms", NULL));
}

int yk_http_room_page(request_rec *r, yk_http_room_t *room, const char *page,
                      const yk_room_answer_t *answer)
{
    json_t *values = values_of(answer, r->pool);
    json_t *document = yk_rooms_public(yk_http_room_shared(),
                                       atomic_load(&room->row), r->pool);
    /* in one's turn in a second, be there in a second */
    int retry = answer->wait_us >= 0 && answer->wait_us < 10000000 &&
                        answer->what == YK_ROOM_WAIT
                    ? (int)(answer->wait_us / 1000000) + 1
                    : jittered();

    json_object_set_new(values, "has_number",
                        json_boolean(answer->number != 0));
    json_object_set_new(values, "room", json_string(room->name));
    json_object_set_new(values, "rooms", rooms_of(r));
    json_object_set_new(values, "refresh", json_integer(retry));
    if (document != NULL) {
        const char *state =
            json_string_value(json_object_get(document, "state"));

        json_object_set(values, "message",
                        json_object_get(document, "message"));
        json_object_set(values, "state", json_object_get(document, "state"));
        json_object_set(values, "opens", json_object_get(document, "opens"));
        json_object_set_new(values, "is_before",
                            json_boolean(strcmp(state, "before") == 0));
        json_object_set_new(values, "is_paused",
                            json_boolean(strcmp(state, "paused") == 0));
        json_decref(document);
    }
    return yk_http_refusal_send(r, YK_ANSWER_QUEUE, retry, values,
                                page != NULL && *page != '\0' ? page
                                                              : "waiting.html");
}

int yk_http_room_position(request_rec *r, const yk_room_answer_t *answer)
{
    const char *text = text_of(answer, r->pool);
    int rv = yk_http_refusal_bytes(r, HTTP_OK, "application/json", text,
                                   strlen(text));

    apr_table_setn(r->notes, "yoyaku-outcome", "queue");
    return rv;
}

int yk_http_room_document(request_rec *r)
{
    const apr_array_header_t *rooms = yk_http_room_all();
    const char *base, *name;

    if (r->handler == NULL || strcmp(r->handler, "yoyaku") != 0 ||
        r->method_number != M_GET) {
        return DECLINED;
    }
    base = yk_http_desk_scan_base(r);
    if (base == NULL || strncmp(r->uri + strlen(base), "/rooms/", 7) != 0) {
        return DECLINED;
    }
    name = r->uri + strlen(base) + 7;
    for (int i = 0; i < rooms->nelts; i++) {
        yk_http_room_t *room = APR_ARRAY_IDX(rooms, i, yk_http_room_t *);
        json_t *document;
        char *text;

        if (strcmp(room->name, name) != 0) {
            continue;
        }
        document = yk_rooms_public(yk_http_room_shared(),
                                   atomic_load(&room->row), r->pool);
        if (document == NULL) {
            return HTTP_SERVICE_UNAVAILABLE;
        }
        text = json_dumps(document, JSON_COMPACT);
        json_decref(document);
        yk_http_refusal_bytes(r, HTTP_OK, "application/json", text,
                              strlen(text));
        apr_table_setn(r->err_headers_out, "Cache-Control", PUBLIC_AGE);
        free(text);
        return OK;
    }
    return HTTP_NOT_FOUND;
}

/* ---- snapshots ---- */

static void snapshot(const yk_http_room_t *room, const char *folder,
                     apr_pool_t *p)
{
    json_t *document;
    char *text;

    if (atomic_load(&room->row) == YK_ROOM_NONE) {
        return;
    }
    document =
        yk_rooms_public(yk_http_room_shared(), atomic_load(&room->row), p);
    if (document == NULL) {
        return;
    }
    text = json_dumps(document, JSON_COMPACT);
    json_decref(document);
    yk_snapshot_write(folder, apr_pstrcat(p, "room-", room->name, NULL), NULL,
                      text, strlen(text), p);
    free(text);
}

void yk_http_room_snapshots(apr_pool_t *ptemp)
{
    static apr_time_t written; /* one ticker at a time */
    const char *folder = yk_http_room_keys()->snapshots;
    apr_time_t now = yk_state_now();

    if (folder == NULL || now - written < SNAPSHOT_AGE) {
        return;
    }
    written = now;
    for (int i = 0; i < yk_http_room_all()->nelts; i++) {
        snapshot(APR_ARRAY_IDX(yk_http_room_all(), i, yk_http_room_t *), folder,
                 ptemp);
    }
}
