/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include "line.h"

/* A host that connects by itself: for the tool and the tests. It keeps one
 * idle line, so that a store at rest does not connect anew each time. */
typedef struct open_t {
    apr_pool_t *p;
    const char *host, *sock, *user, *pass, *dbname;
    unsigned port, connect_s, read_s, write_s;
    MYSQL *idle;
    char why[600]; /**< the last try got no line; "": it did */
} open_t;

static apr_status_t acquire(void *baton, void **line)
{
    open_t *o = baton;
    MYSQL *made = o->idle;
    apr_status_t rv;

    o->idle = NULL;
    if (made != NULL) {
        *line = made;
        return APR_SUCCESS;
    }
    made = mysql_init(NULL);
    if (made == NULL) {
        return APR_ENOMEM;
    }
    mysql_options(made, MYSQL_OPT_CONNECT_TIMEOUT, &o->connect_s);
    mysql_options(made, MYSQL_OPT_READ_TIMEOUT, &o->read_s);
    mysql_options(made, MYSQL_OPT_WRITE_TIMEOUT, &o->write_s);
    if (mysql_real_connect(made, o->host, o->user, o->pass, o->dbname, o->port,
                           o->sock, CLIENT_MULTI_STATEMENTS) == NULL) {
        apr_snprintf(o->why, sizeof(o->why), "%s (%u)", mysql_error(made),
                     mysql_errno(made));
        mysql_close(made);
        return APR_ECONNRESET;
    }
    o->why[0] = '\0';
    rv = yk_store_session_set(made, o->p);
    if (rv != APR_SUCCESS) {
        mysql_close(made);
        return rv;
    }
    *line = made;
    return APR_SUCCESS;
}

static void release(void *baton, void *line, int broken)
{
    open_t *o = baton;

    if (broken || o->idle != NULL) {
        mysql_close(line);
        return;
    }
    o->idle = line;
}

static apr_status_t close_idle(void *data)
{
    open_t *o = data;

    if (o->idle != NULL) {
        mysql_close(o->idle);
        o->idle = NULL;
    }
    return APR_SUCCESS;
}

static unsigned number_of(const char *value, unsigned most)
{
    char *end;
    unsigned long n = strtoul(value, &end, 10);
    return *value != '\0' && *end == '\0' && n <= most ? (unsigned)n : 0;
}

/* One "name=value" of DBDParams. @return 0 when the name is not known */
static int set_param(open_t *o, const char *name, const char *value)
{
    if (strcmp(name, "host") == 0) {
        o->host = value;
    }
    else if (strcmp(name, "sock") == 0) {
        o->sock = value;
    }
    else if (strcmp(name, "user") == 0) {
        o->user = value;
    }
    else if (strcmp(name, "pass") == 0) {
        o->pass = value;
    }
    else if (strcmp(name, "dbname") == 0) {
        o->dbname = value;
    }
    else if (strcmp(name, "port") == 0) {
        o->port = number_of(value, 65535);
    }
    else if (strcmp(name, "connecttimeout") == 0) {
        o->connect_s = number_of(value, 3600);
    }
    else if (strcmp(name, "readtimeout") == 0) {
        o->read_s = number_of(value, 3600);
    }
    else if (strcmp(name, "writetimeout") == 0) {
        o->write_s = number_of(value, 3600);
    }
    else {
        /* what mod_dbd knows and we set ourselves */
        return strcmp(name, "reconnect") == 0 || strcmp(name, "fldsz") == 0 ||
               strcmp(name, "group") == 0 || strcmp(name, "flags") == 0;
    }
    return 1;
}

apr_status_t yk_store_open(yk_store_t **store, const char *params,
                           apr_pool_t *p)
{
    open_t *o = apr_pcalloc(p, sizeof(*o));
    yk_store_host_t host = {o, acquire, release};
    static const char between[] = " \r\n\t;|,"; /* as mod_dbd reads them */
    char *name, *rest;

    o->p = p;
    o->connect_s = 5;
    o->read_s = 120; /* setting up a hall takes longer than a hold */
    o->write_s = 30;
    for (name = apr_strtok(apr_pstrdup(p, params), between, &rest);
         name != NULL; name = apr_strtok(NULL, between, &rest)) {
        char *value = strchr(name, '=');

        if (value == NULL) {
            return APR_EINVAL;
        }
        *value++ = '\0';
        if (!set_param(o, name, value)) {
            return APR_EINVAL;
        }
    }
    apr_pool_cleanup_register(p, o, close_idle, apr_pool_cleanup_null);
    return yk_store_attach(store, &host, p);
}

const char *yk_store_unreachable(const yk_store_t *store)
{
    return store->host.acquire == acquire
               ? ((const open_t *)store->host.baton)->why
               : "";
}
