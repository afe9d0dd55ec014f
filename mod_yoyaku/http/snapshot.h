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
 *   snapshot_scope.c  which slots anybody may see, and in which folder they go
 *
 * A turn writes what is not what was written last: so a slot's file is written
 * at most four times a second, and the last change is always in it.
 *
 * What is public. A door is a way to slots: a path with handler yoyaku in a
 * server that has it, its own or the main server's.
 *
 *   main    <Location /yoyaku>                      doors
 *   host a  database A                     ---->    a /yoyaku     A default
 *   host b  database B, <Location /tickets>         b /yoyaku     B default
 *           <Location /tickets/slots/x> Require     b /tickets    B default
 *
 * A document has a file only if every door to it stands open: so one way that
 * is guarded is not passed by through another one that is not, and the guards
 * of a house have no say in another house. In the drawing x of B has no file, x
 * of A has one.
 *
 * A folder holds the slots of one house, as a file's name is a slot's key. Two
 * houses that share one get no file from either.
 */

/** One house's slots in one folder. */
typedef struct yk_http_house_t {
    const yk_http_database_t *database;
    const char *tenant; /**< as named outside of containers */
    const char *folder;
    const apr_finfo_t *which; /**< the folder, whatever its name */
    server_rec *s;            /**< the first server that has a door to it */
} yk_http_house_t;

/** Look through the configuration for doors, guards and folders.
 *  @return of yk_http_house_t; empty: nothing is to be written */
const apr_array_header_t *yk_http_snapshot_scope_read(apr_pool_t *pconf,
                                                      server_rec *s);
/** May anybody ask for this?
 *  @param below what stands behind a door's path: "/slots/hamlet-24" */
int yk_http_snapshot_is_public(const yk_http_house_t *house, const char *below,
                               apr_pool_t *ptemp);

/** Begin to write, if there is a folder for it. In post_config. */
void yk_http_snapshot_create(apr_pool_t *pconf, server_rec *s);

#endif
