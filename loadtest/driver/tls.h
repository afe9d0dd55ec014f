/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOAD_TLS_H
#define LOAD_TLS_H

#include <openssl/ssl.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * @file tls.h
 * @brief TLS under a wire, for a staging server that is reached by https.
 *
 * The certificate is checked against the machine's own authorities (or those
 * of SSL_CERT_FILE) and against the host's name or address, unless the user
 * said otherwise. Each connection shakes hands anew, as that of a visitor
 * who has not been here before. Nothing waits: what is not there yet is said
 * as EAGAIN, as a socket says it.
 *
 * One load_tls_t a run, shared by all threads; one SSL a connection.
 */

typedef struct load_tls_t load_tls_t;

/** @param insecure believe any certificate
 *  @return NULL: said why on stderr */
load_tls_t *load_tls_create(const char *host, int insecure);
void load_tls_destroy(load_tls_t *tls);

/** For a socket that has connected. @return NULL: out of memory */
SSL *load_tls_begin(load_tls_t *tls, int fd);

/** What a step came to. */
typedef enum load_tls_e {
    LOAD_TLS_DONE,
    LOAD_TLS_READ,  /**< when the socket can be read */
    LOAD_TLS_WRITE, /**< when the socket can be written */
    LOAD_TLS_FAILED /**< the first of a run is told on stderr */
} load_tls_e;

load_tls_e load_tls_handshake(load_tls_t *tls, SSL *ssl);

/** As recv() and send(): bytes, 0 at the end, -1 with errno. EAGAIN of a
 *  read may need the socket writable and the reverse only while hands are
 *  shaken anew, which nobody does here. */
ssize_t load_tls_read(SSL *ssl, char *bytes, size_t len);
ssize_t load_tls_write(SSL *ssl, const char *bytes, size_t len);

/** Says goodbye when it can and frees; the socket is the caller's. */
void load_tls_end(SSL *ssl);

#endif
