/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 32768
#define SCRATCH_BYTES 65536
#define KEPT_MAX (1 << 16) /* a larger buffer is given back after use */

enum { IDLE, CONNECTING, WAITING, HEAD, BODY };
enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER };

const char *load_wire_end_name(load_wire_end_e end)
{
    static const char *const names[] = {
#define END_NAME(name, text) text,
        LOAD_WIRE_ENDS(END_NAME)
#undef END_NAME
    };

    return names[end];
}

int64_t load_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void *grow(void *block, size_t *space, size_t need)
{
    size_t wanted = *space == 0 ? 1024 : *space;

    while (wanted < need) {
        wanted *= 2;
    }
    if (wanted == *space) {
        return block;
    }
    block = realloc(block, wanted);
    if (block == NULL) {
        perror("driver: memory");
        exit(1);
    }
    *space = wanted;
    return block;
}

static void timer_set(load_wire_t *wire, uint32_t ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};

    event_add(&wire->timer, &tv);
}

void load_wire_close(load_wire_t *wire)
{
    if (wire->fd >= 0) {
        event_del(&wire->readable);
        event_del(&wire->writable);
        event_del(&wire->timer);
        if (wire->ssl != NULL) {
            load_tls_end(wire->ssl);
            wire->ssl = NULL;
        }
        close(wire->fd);
        wire->fd = -1;
    }
    wire->phase = IDLE;
}

static void connected(load_wire_t *wire)
{
    if (wire->connected != NULL) {
        wire->connected(wire, wire->baton);
    }
}

static void finish(load_wire_t *wire, load_wire_end_e end)
{
    event_del(&wire->timer);
    if (wire->phase == CONNECTING) {
        connected(wire);
    }
    if (end != LOAD_WIRE_DONE || !wire->keep_alive) {
        load_wire_close(wire);
    }
    wire->phase = IDLE;
    wire->done(wire, end, wire->baton);
    if (wire->phase == IDLE && wire->in_space > KEPT_MAX) {
        free(wire->in);
        wire->in = NULL;
        wire->in_space = 0;
    }
}

const char *load_answer_header(const load_answer_t *answer, const char *name,
                               size_t *len, const char *after)
{
    size_t name_len = strlen(name);
    const char *line = after != NULL ? after : answer->head;

    for (line = strchr(line, '\n'); line != NULL; line = strchr(line, '\n')) {
        line++;
        if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':') {
            line += name_len + 1;
            line += strspn(line, " \t");
            *len = strcspn(line, "\r\n");
            return line;
        }
    }
    return NULL;
}

/** @return 0 when the head is not one we can follow */
static int head_read(load_wire_t *wire)
{
    load_answer_t *answer = &wire->answer;
    const char *value;
    size_t len;

    if (strncmp(wire->in, "HTTP/1.", 7) != 0 || strlen(wire->in) < 12) {
        return 0;
    }
    answer->head = wire->in;
    answer->status = atoi(wire->in + 9);
    wire->chunked = wire->until_close = 0;
    wire->body_left = 0;
    value = load_answer_header(answer, "Connection", &len, NULL);
    wire->keep_alive = wire->in[7] == '1' &&
                       (value == NULL || strncasecmp(value, "close", 5) != 0);
    value = load_answer_header(answer, "Transfer-Encoding", &len, NULL);
    if (value != NULL && strncasecmp(value, "chunked", 7) == 0) {
        wire->chunked = 1;
        wire->chunk_phase = CHUNK_SIZE;
        wire->chunk_line_len = 0;
        return 1;
    }
    value = load_answer_header(answer, "Content-Length", &len, NULL);
    if (value != NULL) {
        wire->body_left = strtoull(value, NULL, 10);
    }
    else if (answer->status != 304 && answer->status != 204) {
        wire->until_close = 1;
        wire->keep_alive = 0;
    }
    if (answer->status == 304 || answer->status == 204) {
        wire->body_left = 0;
    }
    return 1;
}

static void body_keep(load_wire_t *wire, const char *bytes, size_t len)
{
    wire->answer.body_len += len;
    if (wire->keep_body) {
        wire->in = grow(wire->in, &wire->in_space, wire->in_len + len + 1);
        memcpy(wire->in + wire->in_len, bytes, len);
        wire->in_len += len;
    }
}

/** One line of the chunked framing. @return bytes used; *line set when whole */
static size_t chunk_line(load_wire_t *wire, const char *bytes, size_t len,
                         int *whole)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            wire->chunk_line[wire->chunk_line_len] = '\0';
            wire->chunk_line_len = 0;
            *whole = 1;
            return i + 1;
        }
        if (bytes[i] != '\r' &&
            wire->chunk_line_len < sizeof(wire->chunk_line) - 1) {
            wire->chunk_line[wire->chunk_line_len++] = bytes[i];
        }
    }
    *whole = 0;
    return len;
}

/** @return 1 when the body is at its end */
static int chunks_read(load_wire_t *wire, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t used;
        int whole;

        if (wire->chunk_phase == CHUNK_DATA) {
            used = len < wire->body_left ? len : (size_t)wire->body_left;
            body_keep(wire, bytes, used);
            wire->body_left -= used;
            if (wire->body_left == 0) {
                wire->chunk_phase = CHUNK_END;
            }
        }
        else {
            used = chunk_line(wire, bytes, len, &whole);
            if (whole && wire->chunk_phase == CHUNK_SIZE) {
                wire->body_left = strtoull(wire->chunk_line, NULL, 16);
                wire->chunk_phase =
                    wire->body_left == 0 ? CHUNK_TRAILER : CHUNK_DATA;
            }
            else if (whole && wire->chunk_phase == CHUNK_END) {
                wire->chunk_phase = CHUNK_SIZE;
            }
            else if (whole && wire->chunk_line[0] == '\0') {
                return 1;
            }
        }
        bytes += used;
        len -= used;
    }
    return 0;
}

static void answer_done(load_wire_t *wire)
{
    if (wire->keep_body) {
        wire->in[wire->in_len] = '\0';
    }
    /* buffers may have moved while the body came */
    wire->answer.head = wire->in;
    wire->answer.body = wire->keep_body ? wire->in + wire->head_len + 1 : NULL;
    finish(wire, LOAD_WIRE_DONE);
}

/** @return 1 when the answer ended (and the wire may be in other hands) */
static int body_read(load_wire_t *wire, const char *bytes, size_t len)
{
    if (wire->chunked) {
        if (chunks_read(wire, bytes, len)) {
            answer_done(wire);
            return 1;
        }
        return 0;
    }
    if (!wire->until_close && len > wire->body_left) {
        len = (size_t)wire->body_left;
    }
    body_keep(wire, bytes, len);
    if (!wire->until_close) {
        wire->body_left -= len;
        if (wire->body_left == 0) {
            answer_done(wire);
            return 1;
        }
    }
    return 0;
}

/** @return 1 when the answer ended, -1 when the head is whole now */
static int bytes_read(load_wire_t *wire, const char *bytes, size_t len)
{
    char *end;
    size_t from;

    if (wire->phase == BODY) {
        return body_read(wire, bytes, len);
    }
    wire->phase = HEAD;
    from = wire->in_len < 3 ? 0 : wire->in_len - 3;
    wire->in = grow(wire->in, &wire->in_space, wire->in_len + len + 2);
    memcpy(wire->in + wire->in_len, bytes, len);
    wire->in_len += len;
    wire->in[wire->in_len] = '\0';
    end = memmem(wire->in + from, wire->in_len - from, "\r\n\r\n", 4);
    if (end == NULL) {
        if (wire->in_len > HEAD_MAX) {
            finish(wire, LOAD_WIRE_MALFORMED);
            return 1;
        }
        return 0;
    }
    return -1;
}

/** The head is whole: cut it off, go on with what came behind it. */
static int head_end(load_wire_t *wire, const char *bytes, size_t len)
{
    char *end = memmem(wire->in, wire->in_len, "\r\n\r\n", 4);
    size_t head = (size_t)(end - wire->in) + 4;
    size_t behind = wire->in_len - head;

    /* head, NUL, body */
    wire->in[head - 1] = '\0';
    wire->head_len = head - 1;
    wire->in_len = head;
    /* nothing here asks for a 1xx */
    if (!head_read(wire) || wire->answer.status < 200) {
        finish(wire, LOAD_WIRE_MALFORMED);
        return 1;
    }
    wire->phase = BODY;
    if (!wire->chunked && !wire->until_close && wire->body_left == 0) {
        answer_done(wire);
        return 1;
    }
    return behind > 0 ? body_read(wire, bytes + len - behind, behind) : 0;
}

static void broke(load_wire_t *wire)
{
    if (wire->phase == IDLE) {
        load_wire_close(wire); /* the server's keep-alive time-out */
    }
    else if (wire->phase == BODY && wire->until_close) {
        answer_done(wire);
    }
    else if (wire->phase == WAITING && wire->reused) {
        finish(wire, LOAD_WIRE_STALE);
    }
    else {
        finish(wire, LOAD_WIRE_RESET);
    }
}

static ssize_t socket_read(load_wire_t *wire, char *bytes, size_t len)
{
    return wire->ssl != NULL ? load_tls_read(wire->ssl, bytes, len)
                             : recv(wire->fd, bytes, len, 0);
}

static ssize_t socket_write(load_wire_t *wire, const char *bytes, size_t len)
{
    return wire->ssl != NULL ? load_tls_write(wire->ssl, bytes, len)
                             : send(wire->fd, bytes, len, MSG_NOSIGNAL);
}

static void write_more(load_wire_t *wire)
{
    ssize_t put;

    if (wire->out_sent == 0) {
        wire->sent_us = load_now();
    }
    put = socket_write(wire, wire->out + wire->out_sent,
                       wire->out_len - wire->out_sent);
    if (put < 0 && errno != EAGAIN && errno != EINTR) {
        return; /* the socket has become readable and will say it there */
    }
    if (put > 0) {
        wire->out_sent += (size_t)put;
    }
    if (wire->out_sent < wire->out_len) {
        event_add(&wire->writable, NULL);
    }
}

/** The connection can be used: the request goes out. */
static void usable(load_wire_t *wire)
{
    wire->connect_us = load_now() - wire->begun_us;
    wire->phase = WAITING;
    connected(wire);
    event_add(&wire->readable, NULL);
    timer_set(wire, wire->peer->answer_timeout_ms);
    write_more(wire);
}

static void shake_hands(load_wire_t *wire)
{
    switch (load_tls_handshake(wire->peer->tls, wire->ssl)) {
    case LOAD_TLS_DONE:
        usable(wire);
        break;
    case LOAD_TLS_READ:
        event_add(&wire->readable, NULL);
        break;
    case LOAD_TLS_WRITE:
        event_add(&wire->writable, NULL);
        break;
    case LOAD_TLS_FAILED:
        finish(wire, LOAD_WIRE_TLS);
    }
}

static void on_readable(evutil_socket_t fd, short what, void *baton)
{
    static _Thread_local char scratch[SCRATCH_BYTES];
    load_wire_t *wire = baton;

    if (wire->phase == CONNECTING) {
        shake_hands(wire);
        return;
    }
    for (;;) {
        ssize_t got = socket_read(wire, scratch, sizeof(scratch));
        int ended;

        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got <= 0 || wire->phase == IDLE) {
            broke(wire);
            return;
        }
        ended = bytes_read(wire, scratch, (size_t)got);
        if (ended == -1) {
            ended = head_end(wire, scratch, (size_t)got);
        }
        /* TLS gives one record at a time and says itself when it has none */
        if (ended != 0 ||
            (wire->ssl == NULL && got < (ssize_t)sizeof(scratch))) {
            return;
        }
    }
}

static void on_connected(load_wire_t *wire)
{
    int error = 0;
    socklen_t len = sizeof(error);

    getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error != 0) {
        finish(wire, error == ECONNREFUSED ? LOAD_WIRE_REFUSED
                     : error == ETIMEDOUT  ? LOAD_WIRE_CONNECT_TIMEOUT
                                           : LOAD_WIRE_RESET);
        return;
    }
    if (wire->peer->tls == NULL) {
        usable(wire);
        return;
    }
    wire->ssl = load_tls_begin(wire->peer->tls, wire->fd);
    if (wire->ssl == NULL) {
        finish(wire, LOAD_WIRE_LOCAL);
        return;
    }
    shake_hands(wire);
}

static void on_writable(evutil_socket_t fd, short what, void *baton)
{
    load_wire_t *wire = baton;

    if (wire->phase == CONNECTING && wire->ssl != NULL) {
        shake_hands(wire);
    }
    else if (wire->phase == CONNECTING) {
        on_connected(wire);
    }
    else if (wire->phase != IDLE) {
        write_more(wire);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *baton)
{
    load_wire_t *wire = baton;

    if (wire->fd < 0) {
        finish(wire, LOAD_WIRE_LOCAL); /* socket() or connect() said no */
    }
    else {
        finish(wire, wire->phase == CONNECTING ? LOAD_WIRE_CONNECT_TIMEOUT
                                               : LOAD_WIRE_ANSWER_TIMEOUT);
    }
}

static void wire_connect(load_wire_t *wire)
{
    const struct sockaddr *to = (const struct sockaddr *)&wire->peer->address;
    int one = 1;
    int fd =
        socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    wire->phase = CONNECTING;
    if (fd < 0) {
        timer_set(wire, 0);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, to, wire->peer->address_len) != 0 && errno != EINPROGRESS &&
        errno != ECONNREFUSED) {
        close(fd);
        timer_set(wire, 0);
        return;
    }
    wire->fd = fd;
    event_assign(&wire->readable, wire->base, fd, EV_READ | EV_PERSIST,
                 on_readable, wire);
    event_assign(&wire->writable, wire->base, fd, EV_WRITE, on_writable, wire);
    event_add(&wire->writable, NULL);
    timer_set(wire, wire->peer->connect_timeout_ms);
}

void load_wire_init(load_wire_t *wire, struct event_base *base,
                    const load_peer_t *peer, load_wire_done_fn *done,
                    void *baton)
{
    memset(wire, 0, sizeof(*wire));
    wire->base = base;
    wire->peer = peer;
    wire->done = done;
    wire->baton = baton;
    wire->fd = -1;
    event_assign(&wire->timer, base, -1, 0, on_timer, wire);
}

int load_wire_is_connecting(const load_wire_t *wire)
{
    return wire->phase == CONNECTING;
}

void load_wire_send(load_wire_t *wire, const char *request, size_t len,
                    int keep_body)
{
    wire->out = grow(wire->out, &wire->out_space, len);
    memcpy(wire->out, request, len);
    wire->out_len = len;
    wire->out_sent = 0;
    wire->in_len = 0;
    wire->keep_body = keep_body;
    wire->connect_us = 0;
    memset(&wire->answer, 0, sizeof(wire->answer));
    wire->begun_us = wire->sent_us = load_now();
    if (wire->fd < 0) {
        wire->reused = 0;
        wire_connect(wire);
        return;
    }
    wire->reused = 1;
    wire->phase = WAITING;
    timer_set(wire, wire->peer->answer_timeout_ms);
    write_more(wire);
}

void load_wire_destroy(load_wire_t *wire)
{
    load_wire_close(wire);
    event_del(&wire->timer);
    free(wire->out);
    free(wire->in);
}
