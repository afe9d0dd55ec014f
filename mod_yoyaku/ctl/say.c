/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <stdarg.h>
#include <stdio.h>
#include "ctl.h"

int yk_ctl_fail(yk_ctl_t *ctl, const char *format, ...)
{
    va_list more;
    const char *text;

    va_start(more, format);
    text = apr_pvsprintf(ctl->p, format, more);
    va_end(more);
    fprintf(stderr, "yoyakuctl: %s\n", text);
    return YK_CTL_FAILED;
}

int yk_ctl_usage(yk_ctl_t *ctl, const char *format, ...)
{
    va_list more;
    const char *text;

    va_start(more, format);
    text = apr_pvsprintf(ctl->p, format, more);
    va_end(more);
    fprintf(stderr, "yoyakuctl: %s\n", text);
    if (ctl->command != NULL) {
        fprintf(stderr, "usage: yoyakuctl %s%s%s\n", ctl->command,
                *ctl->synopsis != '\0' ? " " : "", ctl->synopsis);
    }
    return YK_CTL_USAGE;
}

int yk_ctl_status(yk_ctl_t *ctl, apr_status_t rv, const char *say)
{
    char text[200];

    if (rv == APR_ECONNRESET && ctl->store != NULL) {
        const char *why = yk_store_unreachable(ctl->store);

        if (*why != '\0') {
            return yk_ctl_fail(ctl,
                               "the database that %s names is out of reach: %s",
                               ctl->from, why);
        }
    }
    if (say != NULL && *say != '\0') {
        return yk_ctl_fail(ctl, "%s", say);
    }
    switch (rv) {
    case APR_TIMEUP:
    case APR_EBUSY:
        return yk_ctl_fail(ctl, "others hold these rows; nothing was changed, "
                                "try again");
    case APR_ECONNRESET:
        return yk_ctl_fail(ctl, "the line to the database broke; try again");
    case APR_INCOMPLETE:
        return yk_ctl_fail(ctl, "the line to the database broke during COMMIT; "
                                "look whether it was done");
    case APR_ENOTIMPL:
        return yk_ctl_fail(ctl, "the database is not fit; ask yoyakuctl "
                                "doctor");
    case APR_EGENERAL:
        return yk_ctl_fail(ctl, "a statement failed; is the schema there "
                                "(yoyakuctl schema)?");
    default:
        return yk_ctl_fail(ctl, "%s", apr_strerror(rv, text, sizeof(text)));
    }
}

int yk_ctl_done(yk_ctl_t *ctl, const char *sentence, json_t *object)
{
    if (ctl->json) {
        if (object == NULL) {
            object = json_pack("{s:s}", "said", sentence);
        }
        json_dumpf(object, stdout, JSON_COMPACT);
        putchar('\n');
    }
    else if (*sentence != '\0') {
        printf("%s\n", sentence);
    }
    json_decref(object);
    if (fflush(stdout) != 0) {
        return yk_ctl_fail(ctl, "what was done could not be written out");
    }
    return YK_CTL_DONE;
}
