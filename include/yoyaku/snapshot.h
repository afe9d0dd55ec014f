/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_SNAPSHOT_H
#define YOYAKU_SNAPSHOT_H

#include <apr_pools.h>
#include <stdint.h>

/**
 * @file snapshot.h
 * @brief Documents as files, so that any static server can answer the crowd.
 *
 *   FOLDER/slots.json             and slots.json.gz: the list
 *   FOLDER/boards/3f/KEY.json     and .gz: a slot's availability; 3f is the
 *                                 lowest byte of the key's FNV-1a hash (64 bit)
 *   FOLDER/room-NAME.json         and .gz: a waiting room
 *
 * A file is written under another name, one of each process, and renamed, so a
 * reader sees a whole one; the compressed one first. Not synced: after a crash
 * of the machine they are written anew.
 *
 * Who writes has the folder to himself but for moments: an old generation's
 * process may wake late and put something old over something newer, somebody
 * may tidy up. So a writer keeps the mark of what he wrote and looks whether it
 * still stands there.
 */

/** "boards/3f/hamlet-24" */
const char *yk_snapshot_board(const char *key, apr_pool_t *p);

/**
 * Write FOLDER/NAME.json and FOLDER/NAME.json.gz.
 * @param name our own words and a key: [A-Za-z0-9._/-]
 * @param mark of the two files, for yk_snapshot_stands(); may be NULL
 */
apr_status_t yk_snapshot_write(const char *folder, const char *name,
                               uint64_t *mark, const char *json, apr_size_t len,
                               apr_pool_t *ptemp);

/** @return 1: both files are those that were written then */
int yk_snapshot_stands(const char *folder, const char *name, uint64_t mark,
                       apr_pool_t *ptemp);

/** Remove both. */
void yk_snapshot_remove(const char *folder, const char *name,
                        apr_pool_t *ptemp);

/** @return 1: this slot's files are to stay */
typedef int yk_snapshot_keep_fn(void *baton, const char *key);

/**
 * Remove the boards that no writer knows any more, as one leaves them that was
 * stopped before their slots went, and what killed writers left half made.
 * Only what bears a name of ours is touched.
 */
void yk_snapshot_sweep(const char *folder, yk_snapshot_keep_fn *keep,
                       void *baton, apr_pool_t *ptemp);

#endif
