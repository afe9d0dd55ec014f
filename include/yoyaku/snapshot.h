/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_SNAPSHOT_H
#define YOYAKU_SNAPSHOT_H

#include <apr_pools.h>

/**
 * @file snapshot.h
 * @brief Documents as files, so that any static server can answer the crowd.
 *
 *   FOLDER/slots.json             and slots.json.gz: the list
 *   FOLDER/boards/3f/KEY.json     and .gz: a slot's availability; 3f is the
 *                                 lowest byte of the key's FNV-1a hash (64 bit)
 *   FOLDER/room-NAME.json         and .gz: a waiting room
 *
 * A file is written under another name and renamed, so a reader sees a whole
 * one; the compressed one first. Not synced: after a crash of the machine they
 * are written anew.
 */

/** "boards/3f/hamlet-24" */
const char *yk_snapshot_board(const char *key, apr_pool_t *p);

/**
 * Write FOLDER/NAME.json and FOLDER/NAME.json.gz.
 * @param name our own words and a key: [A-Za-z0-9._/-]
 * @param gzip NULL: compressed here
 */
apr_status_t yk_snapshot_write(const char *folder, const char *name,
                               const char *json, apr_size_t len,
                               const char *gzip, apr_size_t gzip_len,
                               apr_pool_t *ptemp);

/** Remove both. */
void yk_snapshot_remove(const char *folder, const char *name,
                        apr_pool_t *ptemp);

#endif
