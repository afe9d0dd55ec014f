/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_H
#define YK_HTTP_H

#include <httpd.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>

/**
 * @file http.h
 * @brief The module's frame: parts, each with its directives, configuration
 *        and hooks. The only folder that knows httpd.
 *
 * A part is one file (or a few with its prefix) that fills a yk_http_part_t
 * and offers its directives as a macro in its header; mod_yoyaku.c lists the
 * parts and knows nothing else of them.
 */

APLOG_USE_MODULE(yoyaku);
extern module AP_MODULE_DECLARE_DATA yoyaku_module;

/** X(NAME, part object): in the order their hooks are registered. */
/* One a line, so that parts are added without meeting. */
#define YK_HTTP_PARTS(X)                                                       \
    X(DESK, yk_http_desk)                                                      \
    X(BOARD, yk_http_board)                                                    \
    X(ROOM, yk_http_room)                                                      \
    X(THROTTLE, yk_http_throttle)                                              \
    X(MEASURE, yk_http_measure)                                                \
    X(OVERVIEW, yk_http_overview)                                              \
    X(LANE, yk_http_lane)

typedef enum yk_http_part_e {
#define YK_HTTP_PART_ENUM(name, part) YK_HTTP_##name,
    YK_HTTP_PARTS(YK_HTTP_PART_ENUM)
#undef YK_HTTP_PART_ENUM
        YK_HTTP_PART_COUNT
} yk_http_part_e;

/** Any of them may be NULL. */
typedef struct yk_http_part_t {
    void *(*dir_create)(apr_pool_t *p);
    void *(*dir_merge)(apr_pool_t *p, void *base, void *add);
    void *(*server_create)(apr_pool_t *p, server_rec *s);
    void *(*server_merge)(apr_pool_t *p, void *base, void *add);
    void (*hooks)(apr_pool_t *p);
} yk_http_part_t;

#define YK_HTTP_PART_EXTERN(name, part) extern const yk_http_part_t part;
YK_HTTP_PARTS(YK_HTTP_PART_EXTERN)
#undef YK_HTTP_PART_EXTERN

/** A part's configuration for a directory or request, or a server. */
void *yk_http_dir(ap_conf_vector_t *dir_config, yk_http_part_e part);
void *yk_http_server(server_rec *s, yk_http_part_e part);
/** In a directive: the `dummy` argument is the frame's; this is the part's. */
void *yk_http_dir_of(void *dummy, yk_http_part_e part);

/** In a directive with name=value arguments: was this one's name there before
 *  it? @return 1 or 0 */
int yk_http_is_said_twice(char *const argv[], int at);

/** What a part keeps of a request: one for a whole chain of internal redirects,
 *  none of a subrequest's. NULL: nothing. */
void *yk_http_kept(const request_rec *r, yk_http_part_e part);
void yk_http_keep(request_rec *r, yk_http_part_e part, void *what);

#endif
