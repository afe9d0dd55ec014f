/* SPDX-License-Identifier: Apache-2.0 */
#include "booker.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/*
 * yoyaku-driver SCRIPT: reads what to do (script.h), does it, and prints JSON
 * lines: progress while it runs, one result at the end. The rig reads them.
 */

typedef struct thread_t {
    pthread_t id;
    load_loop_t *loop;
    load_tally_t *tally;
    const char *cpus;
    uint32_t number;
    _Atomic int ended;
} thread_t;

/** The number-th of "0,1,3", over again when there are fewer. */
static int cpu_of(const char *cpus, uint32_t number)
{
    uint32_t count = 1;

    for (const char *c = cpus; *c != '\0'; c++) {
        count += *c == ',';
    }
    number %= count;
    while (number > 0) {
        cpus = strchr(cpus, ',') + 1;
        number--;
    }
    return atoi(cpus);
}

static void *thread_run(void *baton)
{
    thread_t *thread = baton;
    struct rusage usage;

    if (thread->cpus != NULL) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu_of(thread->cpus, thread->number), &set);
        sched_setaffinity(0, sizeof(set), &set);
    }
    load_loop_run(thread->loop);
    getrusage(RUSAGE_THREAD, &usage);
    thread->tally->cpu_seconds =
        (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
        (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    thread->tally->wall_seconds =
        (double)(load_now() - thread->loop->begin_us) / 1e6;
    if (thread->tally->record != NULL && fclose(thread->tally->record) != 0) {
        perror("driver: record");
        exit(1);
    }
    atomic_store(&thread->ended, 1);
    return NULL;
}

static int all_ended(thread_t *threads, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!atomic_load(&threads[i].ended)) {
            return 0;
        }
    }
    return 1;
}

static void watch(thread_t *threads, load_tally_t **tallies,
                  const load_script_t *script, int64_t begin_us)
{
    int64_t last = load_now();

    while (!all_ended(threads, script->threads)) {
        struct timespec nap = {0, 20 * 1000000};
        int64_t now;

        nanosleep(&nap, NULL);
        now = load_now();
        if (script->progress_ms > 0 &&
            now - last >= (int64_t)script->progress_ms * 1000) {
            load_tally_progress(tallies, script->threads,
                                (double)(now - begin_us) / 1e6,
                                (double)(now - last) / 1e6, stdout);
            last = now;
        }
    }
}

static void descriptors_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static load_script_t *script_open(const char *path)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    load_script_t *script;

    if (in == NULL) {
        perror(path);
        return NULL;
    }
    script = load_script_read(in);
    fclose(in);
    return script;
}

int main(int argc, char **argv)
{
    load_script_t *script = argc == 2 ? script_open(argv[1]) : NULL;
    load_tally_t **tallies, *sum;
    load_tls_t *tls = NULL;
    thread_t *threads;
    int64_t begin_us;

    if (script == NULL) {
        fprintf(stderr, "usage: yoyaku-driver SCRIPT   (script.h says what "
                        "stands in it)\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    descriptors_raise();
    srand((unsigned)(time(NULL) ^ getpid()));
    if (script->tls) {
        tls = load_tls_create(script->host, script->insecure);
        if (tls == NULL) {
            return 1;
        }
    }
    threads = calloc(script->threads, sizeof(*threads));
    tallies = calloc(script->threads, sizeof(*tallies));
    sum = load_tally_create(script, UINT32_MAX);
    begin_us = load_now() + 100000;
    for (uint32_t i = 0; i < script->threads; i++) {
        threads[i].tally = tallies[i] = load_tally_create(script, i);
        threads[i].loop =
            load_loop_create(script, tls, tallies[i], i, begin_us);
        threads[i].cpus = script->cpus;
        threads[i].number = i;
        if (threads[i].loop == NULL) {
            return 1;
        }
    }
    for (uint32_t i = 0; i < script->threads; i++) {
        if (pthread_create(&threads[i].id, NULL, thread_run, &threads[i]) !=
            0) {
            perror("driver: thread");
            return 1;
        }
    }
    watch(threads, tallies, script, begin_us);
    for (uint32_t i = 0; i < script->threads; i++) {
        pthread_join(threads[i].id, NULL);
        load_tally_add(sum, tallies[i], script);
    }
    load_tally_write(sum, script, stdout);
    return 0;
}
