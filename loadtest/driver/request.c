/* SPDX-License-Identifier: Apache-2.0 */
#include "booker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text_t {
    char *bytes;
    size_t len, space;
} text_t;

static void put(text_t *text, const char *bytes, size_t len)
{
    if (text->len + len + 1 > text->space) {
        text->space = 2 * (text->len + len + 1);
        text->bytes = realloc(text->bytes, text->space);
        if (text->bytes == NULL) {
            perror("driver: memory");
            exit(1);
        }
    }
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
    text->bytes[text->len] = '\0';
}

static void put_text(text_t *text, const char *string)
{
    put(text, string, strlen(string));
}

static void put_number(text_t *text, uint32_t number)
{
    char digits[16];

    put(text, digits, (size_t)snprintf(digits, sizeof(digits), "%u", number));
}

/** A name as a JSON string's inside. */
static void put_string(text_t *text, const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            put(text, "\\", 1);
        }
        put(text, c, 1);
    }
}

/** Under which folder YoyakuSnapshotDir has a slot's file. */
static void put_folder(text_t *text, const char *slot)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    char digits[4];

    for (; *slot != '\0'; slot++) {
        hash = (hash ^ (unsigned char)*slot) * UINT64_C(0x100000001b3);
    }
    put(text, digits,
        (size_t)snprintf(digits, sizeof(digits), "%02x",
                         (unsigned)(hash & 0xff)));
}

static void put_blank(text_t *text, const char *name, size_t len,
                      const load_booker_t *b)
{
    const load_script_t *script = b->loop->script;

    if (strncmp(name, "slot", len) == 0) {
        put_text(text, script->slots[b->slot]);
    }
    else if (strncmp(name, "folder", len) == 0) {
        put_folder(text, script->slots[b->slot]);
    }
    else if (strncmp(name, "area", len) == 0) {
        put_string(text, script->areas[b->area].name);
    }
    else if (strncmp(name, "quantity", len) == 0) {
        put_number(text, b->quantity);
    }
    else if (strncmp(name, "together", len) == 0) {
        put_text(text, b->together ? "true" : "false");
    }
    else if (strncmp(name, "line", len) == 0) {
        put_number(text, b->nlines > 0 ? b->lines[0] : 0);
    }
    else if (strncmp(name, "number", len) == 0) {
        put_text(text, b->number);
    }
    else if (strncmp(name, "place", len) == 0) {
        put_string(text, script->places[b->asked[0]]);
    }
    else if (strncmp(name, "places", len) == 0) {
        for (uint32_t i = 0; i < b->nasked; i++) {
            put_text(text, i == 0 ? "\"" : ",\"");
            put_string(text, script->places[b->asked[i]]);
            put(text, "\"", 1);
        }
    }
}

/** @return 1 for {word}: braces of JSON are not blanks */
static size_t blank_len(const char *from)
{
    size_t len = strspn(from + 1, "abcdefghijklmnopqrstuvwxyz");

    return len > 0 && from[1 + len] == '}' ? len : 0;
}

static void put_filled(text_t *text, const char *pattern,
                       const load_booker_t *b)
{
    while (*pattern != '\0') {
        size_t plain = strcspn(pattern, "{");
        size_t len;

        put(text, pattern, plain);
        pattern += plain;
        if (*pattern == '\0') {
            break;
        }
        len = blank_len(pattern);
        if (len == 0) {
            put(text, pattern++, 1);
            continue;
        }
        put_blank(text, pattern + 1, len, b);
        pattern += len + 2;
    }
}

static void put_cookies(text_t *text, const load_booker_t *b)
{
    const char *before = "Cookie: ";

    for (int i = 0; i < LOAD_COOKIES; i++) {
        if (b->cookies[i][0] != '\0') {
            put_text(text, before);
            put_text(text, b->cookies[i]);
            before = "; ";
        }
    }
    if (before[0] == ';') {
        put_text(text, "\r\n");
    }
}

static int changes(load_action_e action)
{
    return action != LOAD_ACTION_SLOT && action != LOAD_ACTION_PLAN &&
           action != LOAD_ACTION_BOARD;
}

static void put_head(text_t *text, const load_booker_t *b, load_action_e action)
{
    const load_script_t *script = b->loop->script;
    const load_view_t *view = &b->loop->views[b->slot];
    int v6 = strchr(script->host, ':') != NULL;

    put_text(text, " HTTP/1.1\r\nHost: ");
    put_text(text, v6 ? "[" : "");
    put_text(text, script->host);
    put_text(text, v6 ? "]:" : ":");
    put_number(text, script->port);
    put_text(text, "\r\nUser-Agent: yoyaku-load\r\n"
                   "Accept: application/json\r\n");
    put_cookies(text, b);
    if (changes(action) && script->keys) {
        put_text(text, "Idempotency-Key: ");
        put_text(text, b->key);
        put_text(text, "\r\n");
    }
    if (action == LOAD_ACTION_PLAN) {
        /* as a browser asks; nobody reads it here */
        put_text(text, "Accept-Encoding: gzip\r\n");
    }
    if (action == LOAD_ACTION_BOARD && script->conditional &&
        view->etag[0] != '\0') {
        put_text(text, "If-None-Match: ");
        put_text(text, view->etag);
        put_text(text, "\r\n");
    }
    if (script->header != NULL) {
        put_text(text, script->header);
        put_text(text, "\r\n");
    }
    if (script->keep == LOAD_KEEP_OFF) {
        put_text(text, "Connection: close\r\n");
    }
}

size_t load_request_write(load_booker_t *b, load_action_e action)
{
    static _Thread_local text_t body;
    const load_script_t *script = b->loop->script;
    const load_click_t *click =
        b->area >= 0 && script->in_area[action].method != NULL
            ? &script->in_area[action]
            : &script->clicks[action];
    text_t text = {b->loop->request, 0, b->loop->request_space};

    if (!b->again) {
        snprintf(b->key, sizeof(b->key), "%016llx%016llx",
                 (unsigned long long)b->loop->nonce,
                 (unsigned long long)load_random(&b->random));
    }
    put_text(&text, click->method);
    put(&text, " ", 1);
    put_filled(&text, click->path, b);
    put_head(&text, b, action);
    body.len = 0;
    if (click->body != NULL) {
        put_filled(&body, click->body, b);
        put_text(&text, "Content-Type: ");
        put_text(&text, b->loop->script->type);
        put_text(&text, "\r\nContent-Length: ");
        put_number(&text, (uint32_t)body.len);
        put_text(&text, "\r\n");
    }
    else if (strcmp(click->method, "POST") == 0) {
        put_text(&text, "Content-Length: 0\r\n");
    }
    put_text(&text, "\r\n");
    put(&text, body.bytes != NULL ? body.bytes : "", body.len);
    b->loop->request = text.bytes;
    b->loop->request_space = text.space;
    return text.len;
}

static void cookie_keep(load_booker_t *b, const char *line, size_t len)
{
    size_t name_len = strcspn(line, "=;\r\n");
    size_t all = strcspn(line, ";\r\n");
    int gone = all <= name_len + 1 || memmem(line, len, "Max-Age=0", 9) != NULL;
    int place = -1;

    if (all >= LOAD_COOKIE_BYTES || line[name_len] != '=') {
        return;
    }
    for (int i = LOAD_COOKIES - 1; i >= 0; i--) {
        if (b->cookies[i][0] == '\0' && place < 0) {
            place = i;
        }
        if (strncmp(b->cookies[i], line, name_len + 1) == 0) {
            place = i;
            break;
        }
    }
    if (place >= 0) {
        memcpy(b->cookies[place], line, gone ? 0 : all);
        b->cookies[place][gone ? 0 : all] = '\0';
    }
}

void load_request_cookies(load_booker_t *b, const load_answer_t *answer)
{
    const char *after = NULL;
    size_t len;

    for (;;) {
        after = load_answer_header(answer, "Set-Cookie", &len, after);
        if (after == NULL) {
            return;
        }
        cookie_keep(b, after, len);
    }
}
