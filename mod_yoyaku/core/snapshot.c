/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/snapshot.h"
#include "board_memory.h"
#include "yoyaku/pool.h"
#include "yoyaku/text.h"
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static apr_status_t file_write(const char *path, const char *bytes,
                               apr_size_t len, apr_pool_t *ptemp)
{
    const char *half = apr_pstrcat(ptemp, path, ".new", NULL);
    int fd =
        open(half, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    apr_status_t rv;

    if (fd < 0) {
        return errno;
    }
    rv = bytes_write(fd, bytes, len);
    if (close(fd) != 0 && rv == APR_SUCCESS) {
        rv = errno;
    }
    if (rv == APR_SUCCESS && rename(half, path) != 0) {
        rv = errno;
    }
    if (rv != APR_SUCCESS) {
        unlink(half);
    }
    return rv;
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
                               const char *json, apr_size_t len,
                               const char *gzip, apr_size_t gzip_len,
                               apr_pool_t *ptemp)
{
    char *path = apr_pstrcat(ptemp, folder, "/", name, ".json", NULL);
    const char *packed = apr_pstrcat(ptemp, path, ".gz", NULL);
    apr_status_t rv;

    if (gzip == NULL) {
        apr_size_t space = yk_board_gzip_space(len);
        char *made = yk_pool_room(ptemp, space);

        gzip_len = yk_board_gzip(made, space, json, len);
        gzip = made;
    }
    rv = file_write(packed, gzip, gzip_len, ptemp);
    if (APR_STATUS_IS_ENOENT(rv)) {
        folders_make(path);
        rv = file_write(packed, gzip, gzip_len, ptemp);
    }
    return rv == APR_SUCCESS ? file_write(path, json, len, ptemp) : rv;
}

void yk_snapshot_remove(const char *folder, const char *name, apr_pool_t *ptemp)
{
    const char *path = apr_pstrcat(ptemp, folder, "/", name, ".json", NULL);

    unlink(path);
    unlink(apr_pstrcat(ptemp, path, ".gz", NULL));
}
