/* SPDX-License-Identifier: Apache-2.0 */
#include "hall_draft.h"

#include <apr_strings.h>
#include <string.h>
#include "yoyaku/text.h"

#define BYTES_MAX (256 * 1024 * 1024) /* 200,000 places take a tenth of it */

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

apr_status_t yk_hall_parse(yk_hall_t **phall, const char **errors,
                           const char *bytes, apr_size_t len, const char *name,
                           apr_pool_t *p)
{
    yk_hall_draft_t *draft = yk_hall_draft_make(name, p);
    apr_size_t at = 0;

    if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        bytes += 3;
        len -= 3;
    }
    while (at < len && is_blank(bytes[at])) {
        at++;
    }
    if (at == len) {
        yk_hall_fault(draft, "the file is empty");
    }
    else if (len > BYTES_MAX) {
        yk_hall_fault(draft, "the file is larger than %d MB",
                      BYTES_MAX / 1024 / 1024);
    }
    else if (!yk_text_is_utf8(bytes, len)) {
        yk_hall_fault(draft, "the file is not UTF-8");
    }
    else if (bytes[at] == '{' || bytes[at] == '[') {
        yk_hall_parse_json(draft, bytes, len);
    }
    else {
        yk_hall_parse_csv(draft, bytes, len);
    }
    return yk_hall_draft_end(draft, phall, errors);
}
