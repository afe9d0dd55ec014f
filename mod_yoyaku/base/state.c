/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/state.h"
#include "yoyaku/secret.h"
#include "yoyaku/worker.h"

#include <apr_file_info.h>
#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct yk_state_t {
    void *memory;
    apr_size_t size;
    const char *path;
    int found;
};

apr_time_t yk_state_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (apr_time_t)ts.tv_sec * APR_USEC_PER_SEC + ts.tv_nsec / 1000;
}

/* The kernel names every start of the machine by a UUID. */
static uint64_t boot_now(void)
{
    char text[64] = "";
    yk_hash_t hash;
    uint64_t boot;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof(text) - 1);

        text[n > 0 ? n : 0] = '\0';
        close(fd);
    }
    yk_secret_hash(&hash, text, strlen(text));
    memcpy(&boot, hash.bytes, sizeof(boot));
    return boot;
}

apr_status_t yk_state_folder(const char **problem, const char *folder,
                             apr_pool_t *p)
{
    struct stat st;

    *problem = NULL;
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
        apr_status_t rv = errno;

        *problem = apr_psprintf(p, "%s cannot be made", folder);
        return rv;
    }
    if (lstat(folder, &st) != 0) {
        apr_status_t rv = errno;

        *problem = apr_psprintf(p, "%s cannot be looked at", folder);
        return rv;
    }
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        *problem = apr_psprintf(p,
                                "%s must be a directory of the user who starts "
                                "the server, writable by nobody else",
                                folder);
        return APR_EACCES;
    }
    return APR_SUCCESS;
}

static apr_status_t unmap(void *data)
{
    yk_state_t *state = data;

    munmap(state->memory, state->size);
    return APR_SUCCESS;
}

static apr_status_t map(yk_state_t **state, int fd, const char *path,
                        apr_size_t size, int write, apr_pool_t *p)
{
    yk_state_t *made = apr_pcalloc(p, sizeof(*made));
    void *memory = mmap(NULL, size, PROT_READ | (write ? PROT_WRITE : 0),
                        MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED) {
        return errno;
    }
    made->memory = memory;
    made->size = size;
    made->path = path;
    apr_pool_cleanup_register(p, made, unmap, apr_pool_cleanup_null);
    *state = made;
    return APR_SUCCESS;
}

/* Owner and mode are the whole of the trust in a file. */
static apr_status_t open_own(int *fd, apr_size_t *size, const char *path,
                             int write)
{
    struct stat st;
    int got = open(path, (write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);

    if (got < 0) {
        return errno;
    }
    if (fstat(got, &st) != 0 || !S_ISREG(st.st_mode) ||
        st.st_uid != geteuid() || (st.st_mode & 0077) != 0) {
        close(got);
        return APR_EACCES;
    }
    *fd = got;
    *size = (apr_size_t)st.st_size;
    return APR_SUCCESS;
}

static int head_fits(const yk_state_head_t *head, const yk_state_kind_t *kind)
{
    return memcmp(head->magic, YK_STATE_MAGIC, sizeof(head->magic)) == 0 &&
           head->layout == kind->layout && head->size == kind->size &&
           head->mutex_bytes == sizeof(pthread_mutex_t) &&
           strncmp(head->kind, kind->name, sizeof(head->kind)) == 0;
}

static const char *path_of(const yk_state_kind_t *kind, const char *folder,
                           apr_pool_t *p)
{
    return apr_psprintf(p, "%s/%s-%u.state", folder, kind->name, kind->layout);
}

static void head_write(yk_state_head_t *head, const yk_state_kind_t *kind)
{
    head->layout = kind->layout;
    head->mutex_bytes = sizeof(pthread_mutex_t);
    head->size = kind->size;
    yk_secret_random(&head->epoch, sizeof(head->epoch));
    apr_cpystrn(head->kind, kind->name, sizeof(head->kind));
    head->made_us = (uint64_t)apr_time_now();
    memcpy(head->magic, YK_STATE_MAGIC, sizeof(head->magic));
}

/* Under a temporary name first, so that a reader finds a whole file. */
static apr_status_t make(yk_state_t **state, const yk_state_kind_t *kind,
                         const char *path, apr_pool_t *p)
{
    const char *half = apr_pstrcat(p, path, ".new", NULL);
    apr_status_t rv = APR_SUCCESS;
    int fd;

    unlink(half);
    fd = open(half, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno;
    }
    if (ftruncate(fd, (off_t)kind->size) != 0) {
        rv = errno;
    }
    if (rv == APR_SUCCESS) {
        rv = map(state, fd, path, kind->size, 1, p);
    }
    close(fd);
    if (rv == APR_SUCCESS) {
        yk_state_head_t *head = (*state)->memory;

        head_write(head, kind);
        head->boot = boot_now();
        kind->fresh((*state)->memory);
        if (rename(half, path) != 0) {
            rv = errno;
        }
    }
    if (rv != APR_SUCCESS) {
        unlink(half);
    }
    return rv;
}

static apr_status_t find(yk_state_t **state, const yk_state_kind_t *kind,
                         const char *path, int write, apr_pool_t *p)
{
    apr_size_t size;
    apr_status_t rv;
    int fd;

    rv = open_own(&fd, &size, path, write);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (size != kind->size) {
        close(fd);
        return APR_EMISMATCH;
    }
    rv = map(state, fd, path, size, write, p);
    close(fd);
    if (rv == APR_SUCCESS && !head_fits((*state)->memory, kind)) {
        apr_pool_cleanup_run(p, *state, unmap);
        rv = APR_EMISMATCH;
    }
    if (rv == APR_SUCCESS) {
        (*state)->found = 1;
    }
    return rv;
}

apr_status_t yk_state_create(yk_state_t **state, const yk_state_kind_t *kind,
                             const char *folder, apr_pool_t *p)
{
    const char *path = path_of(kind, folder, p);
    uint64_t me = yk_worker_identity((uint32_t)getpid());
    uint64_t now = (uint64_t)apr_time_now();
    yk_state_head_t *head;
    apr_status_t rv;

    rv = find(state, kind, path, 1, p);
    if (APR_STATUS_IS_ENOENT(rv) || rv == APR_EMISMATCH) {
        rv = make(state, kind, path, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    head = (*state)->memory;
    if (head->boot != boot_now()) {
        kind->renew((*state)->memory);
        head->boot = boot_now();
    }
    else if (head->parent != me && yk_worker_is_alive(head->parent)) {
        apr_pool_cleanup_run(p, *state, unmap);
        return APR_EBUSY;
    }
    head->parent = me;
    head->generation = now > head->generation ? now : head->generation + 1;
    return APR_SUCCESS;
}

static int is_of_kind(const char *name, const yk_state_kind_t *kind,
                      uint32_t *layout)
{
    apr_size_t n = strlen(kind->name);
    char *end;

    if (strncmp(name, kind->name, n) != 0 || name[n] != '-') {
        return 0;
    }
    *layout = (uint32_t)strtoul(name + n + 1, &end, 10);
    return end != name + n + 1 && strcmp(end, ".state") == 0;
}

/* The newest file of another layout; NULL when there is none. */
static const char *other_layout(const yk_state_kind_t *kind, const char *folder,
                                apr_pool_t *p)
{
    const char *best = NULL;
    apr_time_t best_made = 0;
    apr_dir_t *dir;
    apr_finfo_t info;

    if (apr_dir_open(&dir, folder, p) != APR_SUCCESS) {
        return NULL;
    }
    while (apr_dir_read(&info, APR_FINFO_NAME, dir) == APR_SUCCESS) {
        const char *path;
        uint32_t layout;
        apr_finfo_t whole;

        if (!is_of_kind(info.name, kind, &layout) || layout == kind->layout) {
            continue;
        }
        path = apr_pstrcat(p, folder, "/", info.name, NULL);
        if (apr_stat(&whole, path, APR_FINFO_MTIME, p) == APR_SUCCESS &&
            (best == NULL || whole.mtime > best_made)) {
            best = path;
            best_made = whole.mtime;
        }
    }
    apr_dir_close(dir);
    return best;
}

apr_status_t yk_state_attach(yk_state_t **state, const yk_state_kind_t *kind,
                             const char *folder, int write, apr_pool_t *p)
{
    apr_status_t rv = find(state, kind, path_of(kind, folder, p), write, p);

    if (APR_STATUS_IS_ENOENT(rv) && other_layout(kind, folder, p) != NULL) {
        rv = APR_EMISMATCH;
    }
    return rv;
}

apr_status_t yk_state_before(yk_state_t **state, apr_size_t *size,
                             const yk_state_kind_t *kind, const char *folder,
                             apr_pool_t *p)
{
    const char *path = other_layout(kind, folder, p);
    const yk_state_head_t *head;
    apr_status_t rv;
    int fd;

    if (path == NULL) {
        return APR_ENOENT;
    }
    rv = open_own(&fd, size, path, 1);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (*size < sizeof(yk_state_head_t)) {
        close(fd);
        return APR_ENOENT;
    }
    rv = map(state, fd, path, *size, 1, p);
    close(fd);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    head = (*state)->memory;
    if (memcmp(head->magic, YK_STATE_MAGIC, sizeof(head->magic)) != 0 ||
        head->mutex_bytes != sizeof(pthread_mutex_t) ||
        head->boot != boot_now()) {
        apr_pool_cleanup_run(p, *state, unmap);
        return APR_ENOENT;
    }
    return APR_SUCCESS;
}

apr_status_t yk_state_unlink(const yk_state_t *state)
{
    return unlink(state->path) == 0 ? APR_SUCCESS : errno;
}

void *yk_state_memory(const yk_state_t *state)
{
    return state->memory;
}

int yk_state_was_found(const yk_state_t *state)
{
    return state->found;
}
