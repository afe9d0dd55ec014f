/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"
#include <apr_strings.h>
#include <apr_tables.h>
#include <apr_time.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void give_up(const char *what, const char *detail)
{
    fprintf(stderr, "interleave: %s: %s\n", what, detail);
    exit(99);
}

/* The folder of this binary: everything it writes lies under build/. */
static char *own_folder(apr_pool_t *p)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len < 0) {
        give_up("readlink", strerror(errno));
    }
    path[len] = '\0';
    *strrchr(path, '/') = '\0';
    return apr_pstrdup(p, path);
}

static pid_t spawn(const char *const *argv, const char *log)
{
    pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!freopen(log, "a", stdout) || !freopen(log, "a", stderr)) {
        _exit(98);
    }
    execvp(argv[0], (char *const *)argv);
    _exit(97);
}

static void install(const char *data, const char *log, apr_pool_t *p)
{
    const char *const argv[] = {"mariadb-install-db",
                                "--no-defaults",
                                "--user=root",
                                "--auth-root-authentication-method=normal",
                                "--skip-test-db",
                                "--skip-name-resolve",
                                "--force", /* also where the host has no name */
                                "--innodb-log-file-size=8M",
                                apr_pstrcat(p, "--datadir=", data, NULL),
                                NULL};
    int status = 0;
    pid_t pid = spawn(argv, log);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        give_up("mariadb-install-db failed, see", log);
    }
}

static const char *const *arguments(const server_t *server, const char *data,
                                    apr_pool_t *p)
{
    apr_array_header_t *argv = apr_array_make(p, 24, sizeof(char *));
    const char *more = getenv("YOYAKU_TEST_MARIADBD");
    char *copy, *word, *rest;
#define ADD(text) APR_ARRAY_PUSH(argv, const char *) = (text)
    ADD("mariadbd");
    ADD("--no-defaults");
    ADD("--user=root");
    ADD(apr_pstrcat(p, "--datadir=", data, NULL));
    ADD(apr_pstrcat(p, "--socket=", server->socket, NULL));
    ADD(apr_pstrcat(p, "--pid-file=", server->folder, "/pid", NULL));
    ADD("--skip-networking");
    ADD("--max-connections=300");
    ADD("--innodb-log-file-size=32M");
    ADD("--innodb-buffer-pool-size=64M");
    ADD("--innodb-flush-log-at-trx-commit=0");
    ADD("--innodb-monitor-enable=lock_timeouts");
    ADD("--innodb-monitor-enable=lock_deadlocks");
    copy = apr_pstrdup(p, more ? more : "");
    for (word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        ADD(word);
    }
    ADD(NULL);
#undef ADD
    return (const char *const *)argv->elts;
}

static MYSQL *try_connect(const server_t *server, const char *database)
{
    MYSQL *line = mysql_init(NULL);
    if (!mysql_real_connect(line, NULL, "root", "", *database ? database : NULL,
                            0, server->socket, CLIENT_MULTI_STATEMENTS)) {
        mysql_close(line);
        return NULL;
    }
    return line;
}

static void stop(server_t *server)
{
    const char *argv[] = {"rm", "-rf", server->folder, NULL};
    pid_t pid;
    if (server->pid == 0) {
        return;
    }
    kill(server->pid, SIGTERM);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
    if (!getenv("YOYAKU_INTERLEAVE_KEEP")) {
        pid = spawn(argv, "/dev/null");
        waitpid(pid, NULL, 0);
    }
    unlink(server->socket);
}

/* The one that runs: whatever ends this process, it is taken away. */
static server_t running;

static void stop_it(void)
{
    stop(&running);
}

server_t *server_start(apr_pool_t *p)
{
    server_t *server = apr_pcalloc(p, sizeof(*server));
    const char *log, *data;
    MYSQL *line = NULL;
    int tries;

    server->folder =
        apr_psprintf(p, "%s/interleave-%ld", own_folder(p), (long)getpid());
    /* a socket's path is short: /tmp keeps it below the 107 bytes it may have
     */
    server->socket =
        apr_psprintf(p, "/tmp/yoyaku-interleave-%ld.sock", (long)getpid());
    if (mkdir(server->folder, 0700) != 0) {
        give_up(server->folder, strerror(errno));
    }
    /* a starting mariadbd deletes every temporary table in its tmpdir, also
     * those of another one that runs */
    setenv("TMPDIR", server->folder, 1);
    log = apr_pstrcat(p, server->folder, "/log", NULL);
    data = apr_pstrcat(p, server->folder, "/data", NULL);
    install(data, log, p);
    server->pid = spawn(arguments(server, data, p), log);
    running.pid = server->pid;
    running.folder = strdup(server->folder);
    running.socket = strdup(server->socket);
    atexit(stop_it);
    for (tries = 0; tries < 600 && !line; tries++) {
        apr_sleep(50000);
        line = try_connect(server, "");
        if (waitpid(server->pid, NULL, WNOHANG) != 0) {
            give_up("mariadbd ended, see", log);
        }
    }
    if (!line) {
        give_up("mariadbd does not answer, see", log);
    }
    mysql_close(line);
    return server;
}

MYSQL *server_connect(const server_t *server, const char *database)
{
    MYSQL *line = try_connect(server, database);
    if (!line) {
        give_up("connect", server->socket);
    }
    /* under snapshot isolation a locking read would fail with 1020 */
    server_do(line, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    return line;
}

void server_do(MYSQL *line, const char *sql)
{
    int more = mysql_real_query(line, sql, strlen(sql));
    while (more == 0) {
        MYSQL_RES *result = mysql_store_result(line);
        if (result) {
            mysql_free_result(result);
        }
        more = mysql_next_result(line);
    }
    if (mysql_errno(line) != 0) {
        fprintf(stderr, "%s\n", sql);
        give_up("a statement of the tests failed", mysql_error(line));
    }
}

char *server_ask_all(MYSQL *line, const char *sql, apr_pool_t *p)
{
    apr_array_header_t *parts = apr_array_make(p, 16, sizeof(char *));
    MYSQL_RES *result;
    MYSQL_ROW row;
    unsigned i;
    if (mysql_real_query(line, sql, strlen(sql)) != 0) {
        fprintf(stderr, "%s\n", sql);
        give_up("a question of the tests failed", mysql_error(line));
    }
    result = mysql_store_result(line);
    if (!result) {
        fprintf(stderr, "%s\n", sql);
        give_up("a question of the tests has no result", mysql_error(line));
    }
    for (row = mysql_fetch_row(result); row; row = mysql_fetch_row(result)) {
        for (i = 0; i < mysql_num_fields(result); i++) {
            APR_ARRAY_PUSH(parts, const char *) =
                apr_pstrdup(p, row[i] ? row[i] : "NULL");
            APR_ARRAY_PUSH(parts, const char *) =
                i + 1 < mysql_num_fields(result) ? "|" : "\n";
        }
    }
    mysql_free_result(result);
    return apr_array_pstrcat(p, parts, 0);
}

char *server_ask(MYSQL *line, const char *sql, apr_pool_t *p)
{
    char *all = server_ask_all(line, sql, p);
    char *end = strpbrk(all, "|\n");
    if (!end) {
        return NULL;
    }
    *end = '\0';
    return all;
}

/* One transaction's paragraph says "LOCK WAIT" before "thread id N". */
static int waits_in(const char *status, unsigned long id)
{
    char mark[48];
    const char *found, *begin = strstr(status, "LIST OF TRANSACTIONS");
    if (!begin) {
        return 0;
    }
    apr_snprintf(mark, sizeof(mark), "thread id %lu,", id);
    found = strstr(begin, mark);
    if (!found) {
        return 0;
    }
    while (found > begin && strncmp(found, "---TRANSACTION", 14) != 0) {
        if (strncmp(found, "LOCK WAIT", 9) == 0) {
            return 1;
        }
        found--;
    }
    return 0;
}

/* The status as text, good until the next question on this line. */
static const char *status_of(MYSQL *line, MYSQL_RES **result)
{
    static const char sql[] = "SHOW ENGINE INNODB STATUS";
    MYSQL_ROW row = NULL;
    if (mysql_real_query(line, sql, sizeof(sql) - 1) == 0) {
        *result = mysql_store_result(line);
        row = *result ? mysql_fetch_row(*result) : NULL;
    }
    if (!row) {
        give_up(sql, mysql_error(line));
    }
    return row[2];
}

int server_all_wait(MYSQL *line, const unsigned long *ids, int n,
                    apr_pool_t *ptemp)
{
    MYSQL_RES *result;
    const char *status = status_of(line, &result);
    int i, all = 1;
    for (i = 0; i < n && all; i++) {
        all = waits_in(status, ids[i]);
    }
    mysql_free_result(result);
    return all;
}

int server_open(MYSQL *line, apr_pool_t *ptemp)
{
    int tries, n = 1;
    for (tries = 0; tries < 200 && n > 0; tries++) {
        MYSQL_RES *result;
        const char *at =
            strstr(status_of(line, &result), "LIST OF TRANSACTIONS");
        n = 0;
        for (at = at ? strstr(at, "---TRANSACTION") : NULL; at;
             at = strstr(at + 14, "---TRANSACTION")) {
            const char *comma = strchr(at, ',');
            n += comma && strncmp(comma, ", ACTIVE", 8) == 0;
        }
        mysql_free_result(result);
        if (n > 0) {
            apr_sleep(5000);
        }
    }
    return n;
}

void server_kill(MYSQL *line, unsigned long id, apr_pool_t *ptemp)
{
    char *kill_sql = apr_psprintf(ptemp, "KILL %lu", id);
    char *look = apr_psprintf(ptemp,
                              "SELECT COUNT(*) FROM "
                              "information_schema.PROCESSLIST WHERE ID = %lu",
                              id);
    int tries;
    /* 1094: it has gone by itself */
    if (mysql_real_query(line, kill_sql, strlen(kill_sql)) != 0 &&
        mysql_errno(line) != 1094) {
        give_up(kill_sql, mysql_error(line));
    }
    for (tries = 0; tries < 5000; tries++) {
        if (strcmp(server_ask(line, look, ptemp), "0") == 0) {
            return;
        }
        apr_sleep(1000);
    }
    give_up(kill_sql, "it does not end");
}

void server_counts(MYSQL *line, long *deadlocks, long *timeouts,
                   apr_pool_t *ptemp)
{
    char *text = server_ask_all(
        line,
        "SELECT SUM(IF(NAME = 'lock_deadlocks', COUNT, 0)), "
        "SUM(IF(NAME = 'lock_timeouts', COUNT, 0)) "
        "FROM information_schema.INNODB_METRICS",
        ptemp);
    *deadlocks = strtol(text, &text, 10);
    *timeouts = atol(text + 1);
}
