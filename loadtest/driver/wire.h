/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOAD_WIRE_H
#define LOAD_WIRE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "tls.h"

/**
 * @file wire.h
 * @brief One booker's connection: a small HTTP/1.1 client on an event loop.
 *
 * One request at a time, kept alive between requests when both sides want it.
 * A connection that the server closed while it was idle is opened anew without
 * a word; one that broke before a byte of the answer came on a reused
 * connection is the keep-alive race and is said as such (STALE), because the
 * server may or may not have read the request.
 *
 * Lives in one thread with its event base. `done` is called once for each
 * request, never from inside load_wire_send().
 */

/** X(CONSTANT, "name"): how an exchange ended. */
#define LOAD_WIRE_ENDS(X)                                                      \
    X(DONE, "done")               /* an answer, whole */                       \
    X(RESET, "reset")             /* the peer broke it off */                  \
    X(STALE, "stale")             /* the keep-alive race */                    \
    X(REFUSED, "connect_refused") /* nobody listens */                         \
    X(CONNECT_TIMEOUT, "connect_timeout")                                      \
    X(ANSWER_TIMEOUT, "answer_timeout")                                        \
    X(TLS, "tls")             /* no TLS, or a certificate we do not believe */ \
    X(MALFORMED, "malformed") /* not HTTP/1.1 */                               \
    X(LOCAL, "local")         /* out of ports or descriptors */

typedef enum load_wire_end_e {
#define LOAD_WIRE_ENUM(name, text) LOAD_WIRE_##name,
    LOAD_WIRE_ENDS(LOAD_WIRE_ENUM)
#undef LOAD_WIRE_ENUM
        LOAD_WIRE_END_COUNT
} load_wire_end_e;

const char *load_wire_end_name(load_wire_end_e end);

/** Where to. Shared by all wires of a thread. */
typedef struct load_peer_t {
    struct sockaddr_storage address;
    socklen_t address_len;
    uint32_t connect_timeout_ms, answer_timeout_ms;
    load_tls_t *tls; /**< NULL: plain */
} load_peer_t;

typedef struct load_wire_t load_wire_t;
typedef void load_wire_done_fn(load_wire_t *wire, load_wire_end_e end,
                               void *baton);

typedef struct load_answer_t {
    int status;
    char *head;      /**< header block, NUL-terminated */
    char *body;      /**< NULL when it was not to be kept */
    size_t body_len; /**< bytes that came, kept or not */
} load_answer_t;

struct load_wire_t {
    struct event_base *base;
    const load_peer_t *peer;
    load_wire_done_fn *done;
    /** May be set: connecting has come to its end, well or not. */
    void (*connected)(load_wire_t *wire, void *baton);
    void *baton;
    int fd;    /**< -1: closed */
    SSL *ssl;  /**< NULL: plain */
    int phase; /**< wire.c's own */
    int reused, keep_body, keep_alive, chunked, until_close;
    struct event readable, writable, timer;
    char *out;
    size_t out_len, out_sent, out_space;
    char *in; /**< head, then body when kept */
    size_t in_len, in_space, head_len;
    uint64_t body_left; /**< of the body, or of the chunk */
    int chunk_phase;
    char chunk_line[32];
    size_t chunk_line_len;
    int64_t sent_us;    /**< first byte of the request written */
    int64_t connect_us; /**< connecting, and TLS's hands shaken; 0: reused */
    int64_t begun_us;
    load_answer_t answer;
};

void load_wire_init(load_wire_t *wire, struct event_base *base,
                    const load_peer_t *peer, load_wire_done_fn *done,
                    void *baton);

/** Send one request; connects when need be. The bytes are copied. */
void load_wire_send(load_wire_t *wire, const char *request, size_t len,
                    int keep_body);

/** @return 1 while connecting */
int load_wire_is_connecting(const load_wire_t *wire);

void load_wire_close(load_wire_t *wire);
void load_wire_destroy(load_wire_t *wire);

/** A header's value in the answer's head, up to the end of its line.
 *  @return NULL when absent; `len` without the line end */
const char *load_answer_header(const load_answer_t *answer, const char *name,
                               size_t *len, const char *after);

/** CLOCK_MONOTONIC in microseconds. */
int64_t load_now(void);

#endif
