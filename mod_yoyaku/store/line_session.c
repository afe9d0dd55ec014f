/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "packet.h"
#include "yoyaku/log.h"

/*
 * What every session of ours needs. Times are compared as epoch microseconds,
 * which an hour's change of a local zone would tear; a plain read after the
 * locks must see what is committed by then; a text too long must fail rather
 * than be cut.
 */
#define SESSION                                                                \
    "SET SESSION time_zone='+00:00',autocommit=1,"                             \
    "sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',"                     \
    "innodb_lock_wait_timeout=2,wait_timeout=60"

#define ISOLATION "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"

/* MariaDB alone ends idle transactions by itself; MySQL sees a comment. */
#define IDLE                                                                   \
    "SET @yoyaku_idle=1/*M!100303 ,SESSION idle_transaction_timeout=10*/"

/* The variable of the isolation has two names; only one is there. */
#define CHECK                                                                  \
    "SHOW SESSION VARIABLES WHERE Variable_name IN ('time_zone',"              \
    "'tx_isolation','transaction_isolation','autocommit',"                     \
    "'innodb_lock_wait_timeout','character_set_client')"

static apr_status_t run(MYSQL *line, const char *sql)
{
    if (mysql_real_query(line, sql, strlen(sql)) != 0) {
        unsigned number = mysql_errno(line);
        return yk_line_is_lost(number) ? APR_ECONNRESET : APR_ENOTIMPL;
    }
    return APR_SUCCESS;
}

/* @return 1 when this variable is as we set it */
static int holds(const char *name, const char *value)
{
    if (strcmp(name, "time_zone") == 0) {
        return strcmp(value, "+00:00") == 0;
    }
    if (strcmp(name, "autocommit") == 0) {
        return strcmp(value, "ON") == 0;
    }
    if (strcmp(name, "innodb_lock_wait_timeout") == 0) {
        return strcmp(value, "2") == 0;
    }
    if (strcmp(name, "character_set_client") == 0) {
        return strcmp(value, "utf8mb4") == 0;
    }
    return strcmp(value, "READ-COMMITTED") == 0;
}

static apr_status_t check(MYSQL *line)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    unsigned seen = 0;
    apr_status_t rv = run(line, CHECK);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    result = mysql_store_result(line);
    if (result == NULL) {
        return APR_ECONNRESET;
    }
    for (row = mysql_fetch_row(result); row != NULL;
         row = mysql_fetch_row(result)) {
        seen++;
        if (row[0] == NULL || row[1] == NULL || !holds(row[0], row[1])) {
            rv = APR_ENOTIMPL;
        }
    }
    mysql_free_result(result);
    return seen >= 5 ? rv : APR_ENOTIMPL;
}

apr_status_t yk_store_session_set(void *data, apr_pool_t *ptemp)
{
    MYSQL *line = data;
    apr_status_t rv;

    (void)ptemp;
    if (mysql_set_character_set(line, "utf8mb4") != 0) {
        return yk_line_is_lost(mysql_errno(line)) ? APR_ECONNRESET
                                                  : APR_ENOTIMPL;
    }
    rv = run(line, SESSION);
    if (rv == APR_SUCCESS) {
        rv = run(line, ISOLATION);
    }
    if (rv == APR_SUCCESS) {
        rv = run(line, IDLE);
    }
    if (rv == APR_SUCCESS) {
        rv = check(line);
    }
    if (rv == APR_SUCCESS &&
        mysql_set_server_option(line, MYSQL_OPTION_MULTI_STATEMENTS_ON) != 0) {
        rv = yk_line_is_lost(mysql_errno(line)) ? APR_ECONNRESET : APR_ENOTIMPL;
    }
    return rv;
}
