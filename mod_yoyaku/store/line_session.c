/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "packet.h"
#include "yoyaku/log.h"

/*
 * What every session of ours needs, in one packet: whoever leads a lane without
 * a line opens one while all others wait. Times are compared as epoch
 * microseconds, which an hour's change of a local zone would tear; a plain read
 * after the locks must see what is committed by then; a text too long must fail
 * rather than be cut. MariaDB alone ends idle transactions by itself; MySQL
 * sees a comment.
 */
#define SESSION                                                                \
    "SET NAMES utf8mb4;"                                                       \
    "SET SESSION time_zone='+00:00',autocommit=1,"                             \
    "sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',"                     \
    "innodb_lock_wait_timeout=2,wait_timeout=60"                               \
    "/*M!100303 ,SESSION idle_transaction_timeout=10*/;"                       \
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"                  \
    "SELECT @@time_zone,@@autocommit,@@innodb_lock_wait_timeout,"              \
    "@@character_set_client,@@"

/* In the order of the SELECT. */
static const char *const EXPECTED[] = {"+00:00", "1", "2", "utf8mb4",
                                       "READ-COMMITTED"};
#define NEXPECTED (sizeof(EXPECTED) / sizeof(*EXPECTED))

/* The variable of the isolation has two names: MySQL from 5.7.20 on and MariaDB
 * from 11.1.1 on know the first, MariaDB before that the second alone. */
static const char *isolation(MYSQL *line)
{
    unsigned long version = mysql_get_server_version(line);

    return version >= 110101 || (version >= 50720 && version < 100000)
               ? "transaction_isolation"
               : "tx_isolation";
}

static apr_status_t failure(MYSQL *line)
{
    return yk_line_is_lost(mysql_errno(line)) ? APR_ECONNRESET : APR_ENOTIMPL;
}

/* @return 1 when every setting is as we set it */
static int holds(MYSQL_RES *rows)
{
    MYSQL_ROW row =
        mysql_num_fields(rows) == NEXPECTED ? mysql_fetch_row(rows) : NULL;

    for (unsigned i = 0; row != NULL && i < NEXPECTED; i++) {
        if (row[i] == NULL || strcmp(row[i], EXPECTED[i]) != 0) {
            return 0;
        }
    }
    return row != NULL;
}

apr_status_t yk_store_session_set(void *data, apr_pool_t *ptemp)
{
    MYSQL *line = data;
    const char *sql = apr_pstrcat(ptemp, SESSION, isolation(line), NULL);
    int good = 0, more;

    if (mysql_set_server_option(line, MYSQL_OPTION_MULTI_STATEMENTS_ON) != 0 ||
        mysql_real_query(line, sql, strlen(sql)) != 0) {
        return failure(line);
    }
    do {
        MYSQL_RES *rows = mysql_store_result(line);

        if (rows != NULL) {
            good = holds(rows);
            mysql_free_result(rows);
        }
        more = mysql_next_result(line);
    } while (more == 0);
    if (more > 0 || mysql_errno(line) != 0) {
        return failure(line);
    }
    return good ? APR_SUCCESS : APR_ENOTIMPL;
}
