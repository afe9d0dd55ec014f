/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"
#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_strings.h>
#include <apr_tables.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "yoyaku/setup.h"

static const char *const tables[] = {
#define TABLE(name) "yoyaku_" #name,
    YK_TABLES(TABLE)
#undef TABLE
};
#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

/* ---- what is there ---- */

typedef struct seen_t {
    int there[TABLE_COUNT];
    const char *other; /* a table that is not InnoDB */
    const char *engine;
    unsigned version;
    apr_pool_t *p;
} seen_t;

static void table_row(void *baton, char **row, const unsigned long *lengths)
{
    seen_t *seen = baton;
    size_t i;

    for (i = 0; i < TABLE_COUNT; i++) {
        if (row[0] != NULL && strcasecmp(row[0], tables[i]) == 0) {
            seen->there[i] = 1;
            if (row[1] == NULL || strcasecmp(row[1], "InnoDB") != 0) {
                seen->other = tables[i];
                seen->engine = yk_column_text(row[1], lengths[1], seen->p);
            }
        }
    }
}

static void version_row(void *baton, char **row, const unsigned long *lengths)
{
    seen_t *seen = baton;
    seen->version = (unsigned)yk_column_uint(row[0]);
}

static apr_status_t look(yk_store_t *store, seen_t *seen)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, table_row, seen);

    yk_sql_put(sql, "SELECT TABLE_NAME,ENGINE FROM information_schema.TABLES"
                    " WHERE TABLE_SCHEMA=DATABASE()"
                    " AND TABLE_NAME LIKE 'yoyaku%'");
    return yk_packet_run(packet);
}

apr_status_t yk_schema_check(yk_store_t *store, const char **why, apr_pool_t *p)
{
    seen_t seen;
    yk_packet_t *packet;
    yk_sql_t *sql;
    apr_status_t rv;
    size_t i;

    memset(&seen, 0, sizeof(seen));
    seen.p = p;
    rv = look(store, &seen);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (i = 0; i < TABLE_COUNT; i++) {
        if (!seen.there[i]) {
            *why = apr_psprintf(p,
                                "The table %s is missing: run yoyakuctl "
                                "schema.",
                                tables[i]);
            return APR_ENOTIMPL;
        }
    }
    if (seen.other != NULL) {
        *why = apr_psprintf(p,
                            "The table %s is of the engine %s; it must be "
                            "InnoDB, or locks do not lock.",
                            seen.other, seen.engine);
        return APR_ENOTIMPL;
    }
    packet = yk_packet_make(store);
    sql = yk_packet_ask(packet, version_row, &seen);
    yk_sql_put(sql, "SELECT MAX(version) FROM yoyaku_schema_version");
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS && seen.version < YK_SCHEMA_VERSION) {
        *why = apr_psprintf(p,
                            "The schema is version %u and must be %u: run "
                            "yoyakuctl schema.",
                            seen.version, YK_SCHEMA_VERSION);
        return APR_ENOTIMPL;
    }
    return rv;
}

/* ---- applying ---- */

/* @return the number of "0003-holds.sql", or 0: not a schema file */
static unsigned number_of(const char *name)
{
    size_t len = strlen(name);
    char *end;
    unsigned long n = strtoul(name, &end, 10);

    if (end != name + 4 || *end != '-' || len < 9 ||
        strcmp(name + len - 4, ".sql") != 0) {
        return 0;
    }
    return (unsigned)n;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static apr_status_t list_files(apr_array_header_t **files, const char *folder,
                               apr_pool_t *p)
{
    apr_dir_t *dir;
    apr_finfo_t info;
    apr_status_t rv = apr_dir_open(&dir, folder, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *files = apr_array_make(p, 8, sizeof(const char *));
    while (apr_dir_read(&info, APR_FINFO_NAME, dir) == APR_SUCCESS) {
        if (number_of(info.name) > 0) {
            APR_ARRAY_PUSH(*files, const char *) = apr_pstrdup(p, info.name);
        }
    }
    apr_dir_close(dir);
    qsort((*files)->elts, (size_t)(*files)->nelts, sizeof(const char *),
          by_name);
    return APR_SUCCESS;
}

static apr_status_t read_file(char **text, const char *path, apr_pool_t *p)
{
    apr_file_t *file;
    apr_finfo_t info;
    apr_size_t got = 0;
    apr_status_t rv = apr_file_open(&file, path, APR_READ, APR_OS_DEFAULT, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = apr_file_info_get(&info, APR_FINFO_SIZE, file);
    if (rv == APR_SUCCESS) {
        *text = apr_palloc(p, (apr_size_t)info.size + 1);
        rv = apr_file_read_full(file, *text, (apr_size_t)info.size, &got);
        (*text)[got] = '\0';
    }
    apr_file_close(file);
    return rv;
}

/* The next statement: up to a semicolon that ends its line. Lines of comment
 * are left out. @return NULL: no more */
static char *next_statement(char **rest, apr_pool_t *p)
{
    char *statement = apr_pstrdup(p, "");

    while (**rest != '\0') {
        char *line = *rest;
        char *end = strchr(line, '\n');
        size_t len;
        *rest = end != NULL ? end + 1 : line + strlen(line);
        if (end != NULL) {
            *end = '\0';
        }
        len = strlen(line);
        if (strncmp(line, "--", 2) == 0 || len == 0) {
            continue;
        }
        if (line[len - 1] == ';') {
            line[len - 1] = '\0';
            return apr_pstrcat(p, statement, line, NULL);
        }
        statement = apr_pstrcat(p, statement, line, "\n", NULL);
    }
    return *statement != '\0' ? statement : NULL;
}

static apr_status_t run(yk_store_t *store, const char *statement)
{
    yk_packet_t *packet = yk_packet_make(store);
    apr_status_t rv;

    yk_sql_put(yk_packet_do(packet), statement);
    rv = yk_packet_run(packet);
    /* another host, or an earlier attempt, was here already */
    return rv == APR_EEXIST ? APR_SUCCESS : rv;
}

static apr_status_t apply(yk_store_t *store, unsigned number, const char *name,
                          const char *path, apr_pool_t *p)
{
    yk_packet_t *packet;
    yk_sql_t *sql;
    char *text, *statement;
    apr_status_t rv = read_file(&text, path, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (statement = next_statement(&text, p);
         statement != NULL && rv == APR_SUCCESS;
         statement = next_statement(&text, p)) {
        rv = run(store, statement);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    packet = yk_packet_make(store);
    sql = yk_packet_do(packet);
    yk_sql_put(sql, "INSERT IGNORE INTO yoyaku_schema_version"
                    " (version,name,applied_us) VALUES ");
    yk_sql_row(sql);
    yk_sql_uint(sql, number);
    yk_sql_text_cut(sql, name, 250);
    yk_sql_clock(sql, 0);
    yk_sql_row_end(sql);
    return yk_packet_run(packet);
}

static void applied_row(void *baton, char **row, const unsigned long *lengths)
{
    apr_array_header_t *applied = baton;
    APR_ARRAY_PUSH(applied, unsigned) = (unsigned)yk_column_uint(row[0]);
}

static apr_status_t list_applied(yk_store_t *store,
                                 apr_array_header_t **applied, apr_pool_t *p)
{
    seen_t seen;
    yk_packet_t *packet;
    apr_status_t rv;

    *applied = apr_array_make(p, 8, sizeof(unsigned));
    memset(&seen, 0, sizeof(seen));
    seen.p = p;
    rv = look(store, &seen);
    if (rv != APR_SUCCESS || !seen.there[0]) {
        return rv;
    }
    packet = yk_packet_make(store);
    yk_sql_put(yk_packet_ask(packet, applied_row, *applied),
               "SELECT version FROM yoyaku_schema_version");
    return yk_packet_run(packet);
}

static int is_applied(const apr_array_header_t *applied, unsigned number)
{
    int i;

    for (i = 0; i < applied->nelts; i++) {
        if (APR_ARRAY_IDX(applied, i, unsigned) == number) {
            return 1;
        }
    }
    return 0;
}

/*
 * Two hosts may do this at once: a server runs one definition of a table at a
 * time, and each step that finds itself done is passed over. A file counts as
 * applied when all its steps have been.
 */
apr_status_t yk_setup_schema(yk_store_t *store, const char **say,
                             const char *folder, apr_pool_t *p)
{
    apr_array_header_t *files, *applied;
    int i, n = 0;
    apr_status_t rv = list_files(&files, folder, p);

    if (rv != APR_SUCCESS || files->nelts == 0) {
        *say = apr_psprintf(p, "There are no schema files in %s.", folder);
        return APR_NOTFOUND;
    }
    rv = list_applied(store, &applied, p);
    for (i = 0; i < files->nelts && rv == APR_SUCCESS; i++) {
        const char *name = APR_ARRAY_IDX(files, i, const char *);
        unsigned number = number_of(name);
        if (is_applied(applied, number)) {
            continue;
        }
        rv = apply(store, number, name, apr_pstrcat(p, folder, "/", name, NULL),
                   p);
        if (rv != APR_SUCCESS) {
            *say = apr_psprintf(p, "The schema file %s could not be applied.",
                                name);
            return rv;
        }
        n++;
    }
    if (rv != APR_SUCCESS) {
        *say = "The schema could not be read.";
        return rv;
    }
    rv = yk_schema_check(store, say, p);
    if (rv == APR_SUCCESS) {
        *say = n > 0 ? apr_psprintf(p, "Applied %d schema files.", n)
                     : "The schema is up to date.";
    }
    return rv;
}
