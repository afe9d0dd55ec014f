/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/snapshot.h"
#include "board_memory.h"
#include "yoyaku/pool.h"
#include "yoyaku/text.h"
#include <apr_strings.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JSON ".json"
#define GZIP ".gz"
#define HALF ".new"
#define FORGOTTEN 60 /* seconds */

const char *yk_snapshot_board(const char *key, apr_pool_t *p)
{
    uint64_t hash = yk_text_fnv(YK_TEXT_FNV, key, strlen(key));

    return apr_psprintf(p, "boards/%02x/%s", (unsigned)(hash & 0xff), key);
}

static apr_status_t bytes_write(int fd, const char *bytes, apr_size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno != EINTR) {
            return errno;
        }
        if (n > 0) {
            bytes += n;
            len -= (apr_size_t)n;
        }
    }
    return APR_SUCCESS;
}

/* Whatever takes a file's place is another file, or was changed later. */
static uint64_t mark_of(uint64_t mark, const struct stat *st)
{
    const uint64_t said[] = {(uint64_t)st->st_ino, (uint64_t)st->st_size,
                             (uint64_t)st->st_mtim.tv_sec,
                             (uint64_t)st->st_mtim.tv_nsec};

    return yk_text_fnv(mark, (const char *)said, sizeof(said));
}

/* The mark is taken before the file has its name: another may have it just
 * afterwards. */
static apr_status_t file_write(const char *path, uint64_t *mark,
                               const char *bytes, apr_size_t len,
                               apr_pool_t *ptemp)
{
    const char *half = apr_psprintf(ptemp, "%s.%ld" HALF, path, (long)getpid());
    int fd =
        open(half, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    struct stat st;
    apr_status_t rv;

    if (fd < 0) {
        return errno;
    }
    rv = bytes_write(fd, bytes, len);
    if (rv == APR_SUCCESS && fstat(fd, &st) != 0) {
        rv = errno;
    }
    if (close(fd) != 0 && rv == APR_SUCCESS) {
        rv = errno;
    }
    if (rv == APR_SUCCESS && rename(half, path) != 0) {
        rv = errno;
    }
    if (rv != APR_SUCCESS) {
        unlink(half);
        return rv;
    }
    *mark = mark_of(*mark, &st);
    return APR_SUCCESS;
}

/* The folders on the way to a file. */
static void folders_make(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
}

apr_status_t yk_snapshot_write(const char *folder, const char *name,
                               uint64_t *mark, const char *json, apr_size_t len,
                               apr_pool_t *ptemp)
{
    char *path = apr_pstrcat(ptemp, folder, "/", name, JSON, NULL);
    const char *packed = apr_pstrcat(ptemp, path, GZIP, NULL);
    apr_size_t space = yk_board_gzip_space(len);
    char *gzip = yk_pool_room(ptemp, space);
    apr_size_t gzip_len = yk_board_gzip(gzip, space, json, len);
    uint64_t made = YK_TEXT_FNV;
    apr_status_t rv = file_write(packed, &made, gzip, gzip_len, ptemp);

    if (APR_STATUS_IS_ENOENT(rv)) {
        folders_make(path);
        rv = file_write(packed, &made, gzip, gzip_len, ptemp);
    }
    if (rv == APR_SUCCESS) {
        rv = file_write(path, &made, json, len, ptemp);
    }
    if (rv == APR_SUCCESS && mark != NULL) {
        *mark = made;
    }
    return rv;
}

int yk_snapshot_stands(const char *folder, const char *name, uint64_t mark,
                       apr_pool_t *ptemp)
{
    const char *path = apr_pstrcat(ptemp, folder, "/", name, JSON, NULL);
    uint64_t found = YK_TEXT_FNV;
    struct stat st;

    if (lstat(apr_pstrcat(ptemp, path, GZIP, NULL), &st) != 0) {
        return 0;
    }
    found = mark_of(found, &st);
    return lstat(path, &st) == 0 && mark_of(found, &st) == mark;
}

void yk_snapshot_remove(const char *folder, const char *name, apr_pool_t *ptemp)
{
    const char *path = apr_pstrcat(ptemp, folder, "/", name, JSON, NULL);

    unlink(path);
    unlink(apr_pstrcat(ptemp, path, GZIP, NULL));
}

/* ---- what others left ---- */

static int ends_with(const char *name, const char *end)
{
    apr_size_t len = strlen(name), n = strlen(end);

    return len > n && strcmp(name + len - n, end) == 0;
}

/* Half made by somebody who is no more: whoever lives is done in a moment. */
static int is_forgotten(int fd, const char *name)
{
    struct stat st;

    return ends_with(name, HALF) &&
           fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && time(NULL) - st.st_mtime > FORGOTTEN;
}

/* Of which slot it is; NULL: it is none of ours. */
static const char *key_of(const char *below, const char *name, apr_pool_t *p)
{
    apr_size_t len = strlen(name);
    const char *key;

    len -= ends_with(name, JSON GZIP) ? strlen(JSON GZIP) : strlen(JSON);
    key = apr_pstrmemdup(p, name, len);
    return strcmp(yk_snapshot_board(key, p),
                  apr_pstrcat(p, below, "/", key, NULL)) == 0
               ? key
               : NULL;
}

static void folder_sweep(const char *folder, const char *below,
                         yk_snapshot_keep_fn *keep, void *baton, apr_pool_t *p)
{
    DIR *dir = opendir(apr_pstrcat(p, folder, "/", below, NULL));
    const struct dirent *each;

    if (dir == NULL) {
        return;
    }
    for (each = readdir(dir); each != NULL; each = readdir(dir)) {
        const char *key = NULL;

        if (ends_with(each->d_name, JSON) ||
            ends_with(each->d_name, JSON GZIP)) {
            key = key_of(below, each->d_name, p);
        }
        if ((key != NULL && !keep(baton, key)) ||
            is_forgotten(dirfd(dir), each->d_name)) {
            unlinkat(dirfd(dir), each->d_name, 0);
        }
    }
    closedir(dir);
}

void yk_snapshot_sweep(const char *folder, yk_snapshot_keep_fn *keep,
                       void *baton, apr_pool_t *ptemp)
{
    for (unsigned i = 0; i < 256; i++) {
        apr_pool_t *p;

        apr_pool_create(&p, ptemp);
        folder_sweep(folder, apr_psprintf(p, "boards/%02x", i), keep, baton, p);
        apr_pool_destroy(p);
    }
}
