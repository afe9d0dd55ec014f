/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_SNAPSHOT_H
#define YK_HTTP_SNAPSHOT_H

#include <yoyaku/snapshot.h>
#include "board.h"

/**
 * @file snapshot.h
 * @brief Boards and the list as files (YoyakuSnapshotDir), also while nobody
 *        asks.
 *
 *   snapshot.c        every quarter of a second, in one process of this host
 *   snapshot_scope.c  which slots anybody may see
 *
 * A turn writes what is not what was written last: so a slot's file is written
 * at most four times a second, and the last change is always in it.
 */

/** Look through the configuration for what is guarded. */
void yk_http_snapshot_scope_read(apr_pool_t *pconf);
/** May anybody ask for this? */
int yk_http_snapshot_is_public(const char *uri);

/** Begin to write, if there is a folder for it. In post_config. */
void yk_http_snapshot_create(apr_pool_t *pconf, server_rec *s);

#endif
