/* SPDX-License-Identifier: Apache-2.0 */
#include "tls.h"
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct load_tls_t {
    SSL_CTX *context;
    char *name; /**< to send and to check; NULL: the host is an address */
    _Atomic int told;
};

static int is_address(const char *host)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, host, bytes) == 1 ||
           inet_pton(AF_INET6, host, bytes) == 1;
}

static int context_make(load_tls_t *tls, const char *host, int insecure)
{
    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->context == NULL) {
        return 0;
    }
    SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_OFF);
    /* a server that just closes is a server that closed */
    SSL_CTX_set_options(tls->context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (insecure) {
        return 1;
    }
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    return SSL_CTX_set_default_verify_paths(tls->context) == 1 &&
           (tls->name != NULL ||
            X509_VERIFY_PARAM_set1_ip_asc(SSL_CTX_get0_param(tls->context),
                                          host) == 1);
}

load_tls_t *load_tls_create(const char *host, int insecure)
{
    load_tls_t *tls = calloc(1, sizeof(*tls));

    if (tls == NULL) {
        perror("driver: memory");
        return NULL;
    }
    tls->name = is_address(host) ? NULL : strdup(host);
    if (!context_make(tls, host, insecure)) {
        fprintf(stderr, "driver: TLS for %s cannot be set up\n", host);
        load_tls_destroy(tls);
        return NULL;
    }
    return tls;
}

void load_tls_destroy(load_tls_t *tls)
{
    if (tls != NULL) {
        SSL_CTX_free(tls->context);
        free(tls->name);
        free(tls);
    }
}

SSL *load_tls_begin(load_tls_t *tls, int fd)
{
    SSL *ssl = SSL_new(tls->context);

    if (ssl == NULL) {
        return NULL;
    }
    if (SSL_set_fd(ssl, fd) != 1 ||
        (tls->name != NULL && (SSL_set_tlsext_host_name(ssl, tls->name) != 1 ||
                               SSL_set1_host(ssl, tls->name) != 1))) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}

/** Once a run: the others fail for the same reason. */
static void tell(load_tls_t *tls, const SSL *ssl)
{
    long verified = SSL_get_verify_result(ssl);
    char text[256] = "the connection was closed";
    unsigned long error = ERR_peek_last_error();

    if (atomic_exchange(&tls->told, 1)) {
        return;
    }
    if (verified != X509_V_OK) {
        snprintf(text, sizeof(text), "%s",
                 X509_verify_cert_error_string(verified));
    }
    else if (error != 0) {
        ERR_error_string_n(error, text, sizeof(text));
    }
    fprintf(stderr, "driver: TLS: %s\n", text);
}

load_tls_e load_tls_handshake(load_tls_t *tls, SSL *ssl)
{
    int rc;

    ERR_clear_error();
    rc = SSL_do_handshake(ssl);
    if (rc == 1) {
        return LOAD_TLS_DONE;
    }
    switch (SSL_get_error(ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return LOAD_TLS_READ;
    case SSL_ERROR_WANT_WRITE:
        return LOAD_TLS_WRITE;
    default:
        tell(tls, ssl);
        return LOAD_TLS_FAILED;
    }
}

static ssize_t as_socket(const SSL *ssl, int rc)
{
    if (rc > 0) {
        return rc;
    }
    switch (SSL_get_error(ssl, rc)) {
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    default:
        errno = ECONNRESET;
        return -1;
    }
}

ssize_t load_tls_read(SSL *ssl, char *bytes, size_t len)
{
    ERR_clear_error();
    return as_socket(ssl,
                     SSL_read(ssl, bytes, len > INT_MAX ? INT_MAX : (int)len));
}

ssize_t load_tls_write(SSL *ssl, const char *bytes, size_t len)
{
    ERR_clear_error();
    return as_socket(ssl,
                     SSL_write(ssl, bytes, len > INT_MAX ? INT_MAX : (int)len));
}

void load_tls_end(SSL *ssl)
{
    if (SSL_is_init_finished(ssl)) {
        ERR_clear_error();
        SSL_shutdown(ssl);
    }
    SSL_free(ssl);
}
