/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include <strings.h>
#include "schema.h"

typedef struct probe_t {
    const char *wrong;
    int seen, rows;
    apr_pool_t *p;
} probe_t;

/* What each variable must be, and the sentence when it is not. */
typedef struct rule_t {
    const char *name, *value, *sentence;
} rule_t;

static const rule_t rules[] = {
    {"time_zone", "+00:00",
     "The session's time zone is %s and must be +00:00."},
    {"tx_isolation", "READ-COMMITTED",
     "The session's isolation is %s and must be READ-COMMITTED."},
    {"transaction_isolation", "READ-COMMITTED",
     "The session's isolation is %s and must be READ-COMMITTED."},
    {"autocommit", "ON", "The session's autocommit is %s and must be ON."},
    {"character_set_client", "utf8mb4",
     "The session's character set is %s and must be utf8mb4."},
    {"read_only", "OFF", "The database is read only (%s): is it a replica?"},
    {"super_read_only", "OFF",
     "The database is read only (%s): is it a replica?"},
    {"innodb_read_only", "OFF", "InnoDB is read only (%s)."},
};

static void variable_row(void *baton, char **row, const unsigned long *lengths)
{
    probe_t *probe = baton;
    size_t i;

    for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (row[0] == NULL || row[1] == NULL ||
            strcasecmp(row[0], rules[i].name) != 0) {
            continue;
        }
        probe->seen++;
        /* MariaDB 12 says more than ON and OFF: anything but OFF is on */
        if (strcasecmp(row[1], rules[i].value) != 0 && probe->wrong == NULL) {
            probe->wrong = apr_psprintf(probe->p, rules[i].sentence, row[1]);
        }
    }
}

static apr_status_t probe_session(yk_store_t *store, probe_t *probe)
{
    yk_packet_t *packet = yk_packet_make(store);

    yk_sql_put(yk_packet_ask(packet, variable_row, probe),
               "SHOW SESSION VARIABLES WHERE Variable_name IN ('time_zone',"
               "'tx_isolation','transaction_isolation','autocommit',"
               "'character_set_client','read_only','super_read_only',"
               "'innodb_read_only')");
    return yk_packet_run(packet);
}

static void seen_row(void *baton, char **row, const unsigned long *lengths)
{
    probe_t *probe = baton;
    probe->rows++;
}

/* Locks and writes the row that is there for nothing else. */
static apr_status_t probe_first(yk_store_t *store, probe_t *probe)
{
    yk_packet_t *packet = yk_packet_make(store);

    probe->rows = 0;
    yk_packet_begin(packet);
    yk_sql_put(yk_packet_ask(packet, seen_row, probe),
               "SELECT version FROM yoyaku_lock_anchor FORCE INDEX (PRIMARY)"
               " WHERE kind=0 AND owner=0 AND no=0 FOR UPDATE");
    yk_sql_put(yk_packet_do(packet),
               "UPDATE yoyaku_lock_anchor SET version=version+1"
               " WHERE kind=0 AND owner=0 AND no=0");
    return yk_packet_run(packet);
}

/* The same row on another line: it must not be had. */
static apr_status_t probe_second(yk_store_t *other, probe_t *probe)
{
    yk_packet_t *packet = yk_packet_make(other);
    apr_status_t rv;

    probe->rows = 0;
    yk_packet_begin(packet);
    yk_sql_put(yk_packet_ask(packet, seen_row, probe),
               "SELECT version FROM yoyaku_lock_anchor FORCE INDEX (PRIMARY)"
               " WHERE kind=0 AND owner=0 AND no=0 FOR UPDATE SKIP LOCKED");
    rv = yk_packet_run(packet);
    yk_store_rollback(other);
    return rv;
}

static apr_status_t probe_locks(yk_store_t *store, probe_t *probe,
                                apr_pool_t *p)
{
    yk_store_t *other;
    apr_pool_t *ptemp;
    apr_status_t rv = probe_first(store, probe);

    if (rv == APR_ENOTIMPL) {
        probe->wrong = "The database is read only: is it a replica?";
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (probe->rows != 1) {
        yk_store_rollback(store);
        probe->wrong = "The row to try locks on is missing: run yoyakuctl "
                       "schema.";
        return APR_ENOTIMPL;
    }
    apr_pool_create(&ptemp, p);
    rv = yk_store_attach(&other, &store->host, ptemp);
    if (rv == APR_SUCCESS) {
        rv = probe_second(other, probe);
    }
    yk_store_rest(other);
    apr_pool_destroy(ptemp);
    yk_store_rollback(store);
    if (rv == APR_TIMEUP || rv == APR_EBUSY) {
        return APR_SUCCESS; /* it waited, or said so at once: it is locked */
    }
    if (rv == APR_SUCCESS && probe->rows > 0) {
        probe->wrong = "A locked row could be locked again on another line: "
                       "row locks do not lock here.";
        return APR_ENOTIMPL;
    }
    return rv;
}

apr_status_t yk_store_probe(yk_store_t *store, const char **why, apr_pool_t *p)
{
    probe_t probe;
    apr_status_t rv;

    memset(&probe, 0, sizeof(probe));
    probe.p = p;
    rv = probe_session(store, &probe);
    if (rv == APR_SUCCESS && probe.seen < 5) {
        probe.wrong = "The session's settings could not be read.";
    }
    if (rv == APR_SUCCESS && probe.wrong != NULL) {
        rv = APR_ENOTIMPL;
    }
    if (rv == APR_SUCCESS) {
        rv = yk_schema_check(store, &probe.wrong, p);
    }
    if (rv == APR_SUCCESS) {
        rv = probe_locks(store, &probe, p);
    }
    if (rv == APR_EGENERAL) {
        /* a server that answers but cannot do what it must */
        rv = APR_ENOTIMPL;
    }
    if (rv != APR_SUCCESS) {
        *why = probe.wrong != NULL ? probe.wrong
                                   : "The database could not be tried out.";
    }
    return rv;
}
