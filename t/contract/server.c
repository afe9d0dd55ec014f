/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"
#include <apr_strings.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t server_pid;
static char folder[512];

static void give_up(const char *what)
{
    fprintf(stderr, "contract: %s (see %s)\n", what, folder);
    server_stop();
    exit(2);
}

/* Run a program to its end, its words to a file. @return 0 when it went well */
static int run_program(char *const argv[], const char *log)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Good for a while: the last so many of them are. */
static char *option(const char *name, const char *value)
{
    static char made[32][1024];
    static unsigned next;
    char *room = made[next++ % 32];

    char *at = apr_cpystrn(room, name, sizeof(made[0]));

    apr_cpystrn(at, value, (apr_size_t)(room + sizeof(made[0]) - at));
    return room;
}

static char *below(const char *name)
{
    return option(folder, name);
}

static void install(void)
{
    char *argv[] = {"mariadb-install-db",
                    "--no-defaults",
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                    "--force", /* also where the host has no name */
                    option("--datadir=", below("/data")),
                    geteuid() == 0 ? "--user=root" : NULL,
                    NULL};

    if (run_program(argv, below("/install.log")) != 0) {
        give_up("mariadb-install-db failed");
    }
}

/* More options of the server's, from YOYAKU_TEST_MARIADBD, for a run under
 * settings that others chose. */
#define OPTIONS_MORE 8

static void options_add(char **argv)
{
    const char *told = getenv("YOYAKU_TEST_MARIADBD");
    char *rest = NULL, *word;
    int n = 0;

    word = told != NULL ? strtok_r(strdup(told), " ", &rest) : NULL;
    for (; word != NULL && n < OPTIONS_MORE;
         word = strtok_r(NULL, " ", &rest)) {
        argv[n++] = word;
    }
}

static void spawn(void)
{
    char *user = geteuid() == 0 ? "--user=root" : "--skip-name-resolve";
    char *argv[] = {"mariadbd",
                    "--no-defaults",
                    user,
                    option("--datadir=", below("/data")),
                    option("--socket=", below("/s")),
                    option("--pid-file=", below("/pid")),
                    "--skip-networking",
                    "--skip-grant-tables",
                    "--innodb-buffer-pool-size=256M",
                    "--innodb-log-file-size=64M",
                    "--innodb-flush-log-at-trx-commit=0",
                    "--innodb-flush-method=nosync",
                    "--skip-sync-frm",
                    "--max-connections=100",
                    "--performance-schema=OFF",
                    [15 + OPTIONS_MORE] = NULL};

    options_add(argv + 15);

    server_pid = fork();
    if (server_pid == 0) {
        int fd = open(below("/server.log"), O_WRONLY | O_CREAT, 0600);
        /* it must not outlive us, even when we are killed */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        dup2(fd, 1);
        dup2(fd, 2);
        execvp("mariadbd", argv);
        _exit(127);
    }
}

static MYSQL *try_line(const char *name)
{
    MYSQL *line = mysql_init(NULL);

    if (mysql_real_connect(line, NULL, "root", "", name, 0, below("/s"),
                           CLIENT_MULTI_STATEMENTS) == NULL) {
        mysql_close(line);
        return NULL;
    }
    return line;
}

/* Beside our binary, so below build/; a socket's path must be short, though. */
static void make_folder(void)
{
    char exe[400];
    ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    char *slash;

    exe[len > 0 ? len : 0] = '\0';
    slash = strrchr(exe, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    if (slash == NULL || strlen(exe) > 80) {
        strcpy(exe, "/tmp");
    }
    snprintf(folder, sizeof(folder), "%s/contract-XXXXXX", exe);
    if (mkdtemp(folder) == NULL) {
        give_up("no folder for the server");
    }
    /* a starting mariadbd deletes every temporary table in its tmpdir, also
     * those of another one that runs */
    setenv("TMPDIR", folder, 1);
}

void server_start(void)
{
    int i;

    make_folder();
    atexit(server_stop);
    install();
    spawn();
    for (i = 0; i < 600; i++) {
        MYSQL *line = try_line(NULL);
        if (line != NULL) {
            mysql_close(line);
            return;
        }
        if (waitpid(server_pid, NULL, WNOHANG) == server_pid) {
            server_pid = 0;
            give_up("mariadbd ended");
        }
        usleep(100000);
    }
    give_up("mariadbd does not answer");
}

void server_stop(void)
{
    char *argv[] = {"rm", "-rf", folder, NULL};

    if (server_pid > 0) {
        kill(server_pid, SIGKILL);
        waitpid(server_pid, NULL, 0);
        server_pid = 0;
        run_program(argv, "/dev/null");
    }
}

MYSQL *server_line(const char *name)
{
    MYSQL *line = try_line(name);

    ck_assert_msg(line != NULL, "no line to a database");
    return line;
}

void server_run(MYSQL *line, const char *sql)
{
    int next = mysql_real_query(line, sql, strlen(sql)) != 0 ? 1 : 0;

    while (next == 0) {
        MYSQL_RES *result = mysql_store_result(line);
        ck_assert_msg(result != NULL || mysql_errno(line) == 0, "%s: %s", sql,
                      mysql_error(line));
        if (result != NULL) {
            mysql_free_result(result);
        }
        next = mysql_next_result(line);
    }
    ck_assert_msg(next < 0, "%s: %s", sql, mysql_error(line));
}

const char *server_text(MYSQL *line, const char *sql, apr_pool_t *p)
{
    const char *text = NULL;
    MYSQL_RES *result;
    MYSQL_ROW row;

    ck_assert_msg(mysql_real_query(line, sql, strlen(sql)) == 0, "%s: %s", sql,
                  mysql_error(line));
    result = mysql_store_result(line);
    ck_assert_msg(result != NULL, "%s: no rows", sql);
    row = mysql_fetch_row(result);
    if (row != NULL && row[0] != NULL) {
        text = apr_pstrmemdup(p, row[0], mysql_fetch_lengths(result)[0]);
    }
    mysql_free_result(result);
    return text;
}

long long server_number(MYSQL *line, const char *sql)
{
    apr_pool_t *p;
    const char *text;
    long long number;

    apr_pool_create(&p, NULL);
    text = server_text(line, sql, p);
    ck_assert_msg(text != NULL, "%s: nothing", sql);
    number = strtoll(text, NULL, 10);
    apr_pool_destroy(p);
    return number;
}

void server_database(const char *name)
{
    MYSQL *line = server_line(NULL);
    char sql[256];

    server_run(line, "SET SESSION lock_wait_timeout=10");
    snprintf(sql, sizeof(sql), "DROP DATABASE IF EXISTS %s", name);
    server_run(line, sql);
    snprintf(sql, sizeof(sql), "CREATE DATABASE %s", name);
    server_run(line, sql);
    mysql_close(line);
}

const char *server_params(const char *name, apr_pool_t *p)
{
    return apr_psprintf(p, "sock=%s/s,user=root,dbname=%s", folder, name);
}

const char *server_beside(const char *name, apr_pool_t *p)
{
    return apr_pstrcat(p, folder, "/", name, NULL);
}

const char *server_schema(apr_pool_t *p)
{
    const char *here = __FILE__;
    const char *tail = strstr(here, "t/contract/");
    const char *told = getenv("YOYAKU_SCHEMA");

    if (told != NULL) {
        return told;
    }
    ck_assert(tail != NULL);
    return apr_pstrcat(p, apr_pstrmemdup(p, here, (apr_size_t)(tail - here)),
                       "mod_yoyaku/schema", NULL);
}
