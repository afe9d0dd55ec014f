/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../mod_yoyaku/store/schema.h"
#include <apr_file_info.h>
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>
#include "store.h"

static const char *folder(void)
{
    const char *tail = strstr(__FILE__, "t/unit/store/");

    ck_assert_ptr_nonnull(tail);
    return apr_pstrcat(
        pool, apr_pstrmemdup(pool, __FILE__, (apr_size_t)(tail - __FILE__)),
        "mod_yoyaku/schema", NULL);
}

/* All schema files, one after the other; their number in *n. */
static const char *all_text(unsigned *n)
{
    const char *text = "";

    for (*n = 0;; (*n)++) {
        apr_dir_t *dir;
        apr_finfo_t info;
        const char *start = apr_psprintf(pool, "%04u-", *n + 1);
        char bytes[65536];
        size_t got = 0;

        ck_assert_int_eq(apr_dir_open(&dir, folder(), pool), APR_SUCCESS);
        while (apr_dir_read(&info, APR_FINFO_NAME, dir) == APR_SUCCESS) {
            if (strncmp(info.name, start, 5) == 0) {
                FILE *file = fopen(
                    apr_pstrcat(pool, folder(), "/", info.name, NULL), "r");
                ck_assert_ptr_nonnull(file);
                got = fread(bytes, 1, sizeof(bytes) - 1, file);
                fclose(file);
            }
        }
        apr_dir_close(dir);
        if (got == 0) {
            return text;
        }
        bytes[got] = '\0';
        text = apr_pstrcat(pool, text, bytes, NULL);
    }
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (text = strstr(text, what); text != NULL;
         text = strstr(text + 1, what)) {
        n++;
    }
    return n;
}

START_TEST(the_list_of_tables_is_the_schemas)
{
    static const char *const tables[] = {
#define TABLE(name) "CREATE TABLE IF NOT EXISTS yoyaku_" #name " (",
        YK_TABLES(TABLE)
#undef TABLE
    };
    unsigned files, i, all = sizeof(tables) / sizeof(tables[0]);
    const char *text = all_text(&files);

    ck_assert_uint_eq(files, YK_SCHEMA_VERSION);
    for (i = 0; i < all; i++) {
        ck_assert_msg(count(text, tables[i]) == 1, "%s", tables[i]);
    }
    ck_assert_uint_eq(count(text, "CREATE TABLE"), all);
    ck_assert_uint_eq(count(text, "ENGINE=InnoDB"), all);
    ck_assert_uint_eq(count(text, "PRIMARY KEY ("), all);
}
END_TEST

START_TEST(no_table_has_what_a_hold_could_wait_for)
{
    unsigned files;
    const char *text = all_text(&files);

    ck_assert_uint_eq(count(text, "AUTO_INCREMENT"), 0);
    ck_assert_uint_eq(count(text, "FOREIGN KEY"), 0);
    ck_assert_uint_eq(count(text, "TRIGGER"), 0);
    ck_assert_uint_eq(count(text, " DATETIME"), 0);
    ck_assert_uint_eq(count(text, " VARCHAR"), 0);
}
END_TEST

TCase *schema_case(void)
{
    TCase *tc = store_case("schema");

    tcase_add_test(tc, the_list_of_tables_is_the_schemas);
    tcase_add_test(tc, no_table_has_what_a_hold_could_wait_for);
    return tc;
}
