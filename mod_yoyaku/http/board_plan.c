/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include <apr_strings.h>
#include <string.h>
#include <yoyaku/pool.h>

/*
 * The drawing never changes, so it is written to a file once, beside the plan
 * it is made from, and sent from there: no worker holds it in memory of its
 * own. A section alone is made when it is asked for.
 */

#define CACHE "max-age=31536000, immutable"

/** @return APR_SUCCESS, the file is open and its size known */
static apr_status_t file_open(apr_file_t **file, apr_off_t *size,
                              const char *path, apr_pool_t *p)
{
    apr_finfo_t info;
    apr_status_t rv =
        apr_file_open(file, path, APR_FOPEN_READ | APR_FOPEN_BINARY, 0, p);

    if (rv == APR_SUCCESS) {
        rv = apr_file_info_get(&info, APR_FINFO_SIZE, *file);
        *size = info.size;
    }
    return rv;
}

/** Once in the life of a hall; what it takes is not kept for the next one. */
static apr_status_t drawing_write(const yk_plan_t *plan, const char *path,
                                  apr_pool_t *p)
{
    apr_pool_t *ptemp;
    apr_status_t rv = yk_pool_apart(&ptemp, p);

    if (rv == APR_SUCCESS) {
        rv = yk_plan_save(plan, path, ptemp);
        yk_pool_apart_end(ptemp);
    }
    return rv;
}

static apr_status_t drawing_open(apr_file_t **file, apr_off_t *size,
                                 yk_http_call_t *call, const yk_slot_t *slot,
                                 int is_gzip)
{
    apr_pool_t *p = call->r->pool;
    const char *folder = yk_http_desk_plans(call->r->server, p);
    const char *path;
    apr_status_t rv;

    if (folder == NULL) {
        return APR_ECONNRESET;
    }
    path = apr_psprintf(p, "%s/hall-%" APR_UINT64_T_FMT ".json", folder,
                        (apr_uint64_t)slot->hall_id);
    rv = file_open(file, size,
                   is_gzip ? apr_pstrcat(p, path, ".gz", NULL) : path, p);
    if (APR_STATUS_IS_ENOENT(rv)) {
        rv = drawing_write(slot->plan, path, p);
        if (rv == APR_SUCCESS) {
            rv = file_open(file, size,
                           is_gzip ? apr_pstrcat(p, path, ".gz", NULL) : path,
                           p);
        }
    }
    if (rv != APR_SUCCESS) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, call->r,
                      "YK0443: board: the drawing of a hall cannot be written "
                      "to %s",
                      folder);
    }
    return rv;
}

static int drawing_send(yk_http_call_t *call, const yk_slot_t *slot)
{
    request_rec *r = call->r;
    int is_gzip = yk_http_accept_gzip(r);
    apr_file_t *file = NULL;
    apr_off_t size = 0;
    apr_size_t sent;

    if (drawing_open(&file, &size, call, slot, is_gzip) != APR_SUCCESS) {
        return yk_http_reply_status(call, APR_EGENERAL);
    }
    if (is_gzip) {
        const char *tag = apr_table_get(r->headers_out, "ETag");

        apr_table_setn(r->headers_out, "Content-Encoding", "gzip");
        apr_table_setn(
            r->headers_out, "ETag",
            apr_psprintf(r->pool, "%.*s-gz\"", (int)strlen(tag) - 1, tag));
    }
    ap_set_content_type(r, "application/json");
    ap_set_content_length(r, size);
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    if (!r->header_only) {
        ap_send_fd(file, r, 0, (apr_size_t)size, &sent);
    }
    return OK;
}

/** ?section=NAME. @return APR_EINVAL: no such section */
static apr_status_t section_read(yk_http_call_t *call, const char **section)
{
    yk_body_t *query = NULL;
    const char *args = call->r->args != NULL ? call->r->args : "";
    apr_status_t rv = yk_body_parse_form(&query, &call->fault, args,
                                         strlen(args), call->r->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *section = yk_body_text(query, "section", 0, YK_TEXT_NAME);
    if (*section != NULL && **section == '\0') {
        *section = NULL;
    }
    return yk_body_check(query, &call->fault);
}

static apr_status_t slot_read(yk_http_call_t *call, const yk_slot_t **slot)
{
    yk_board_source_t source;

    yk_http_board_source(&source, call);
    return source.slot(call, slot, 0);
}

static int section_send(yk_http_call_t *call, const yk_slot_t *slot,
                        uint32_t section_no)
{
    const char *json = NULL;
    apr_size_t len = 0;
    apr_pool_t *ptemp;
    int sent;

    if (yk_pool_apart(&ptemp, call->r->pool) != APR_SUCCESS) {
        return yk_http_reply_status(call, APR_ENOMEM);
    }
    yk_plan_document(slot->plan, &json, &len, section_no, ptemp);
    sent = yk_http_reply_bytes(call, HTTP_OK, "application/json", json, len);
    apr_pool_destroy(ptemp); /* what is not on its way yet was copied */
    return sent;
}

int yk_http_board_plan(yk_http_call_t *call)
{
    request_rec *r = call->r;
    const yk_slot_t *slot = NULL;
    const char *section = NULL, *etag;
    uint32_t section_no = YK_PLAN_NONE;
    apr_status_t rv = section_read(call, &section);

    if (rv != APR_SUCCESS) {
        return yk_http_reply_fault(call);
    }
    rv = slot_read(call, &slot);
    if (rv != APR_SUCCESS) {
        return yk_http_board_refuse(call, rv);
    }
    if (slot->plan != NULL && section != NULL) {
        section_no = yk_plan_find_section(slot->plan, section);
    }
    if (slot->plan == NULL || (section != NULL && section_no == YK_PLAN_NONE)) {
        yk_http_call_fault(call, YK_ANSWER_UNKNOWN,
                           slot->plan != NULL ? "section" : NULL, NULL,
                           slot->plan != NULL
                               ? "The hall has no such section."
                               : "This slot has no hall, only pools.");
        return yk_http_reply_fault(call);
    }
    yk_http_call_rest(call);
    etag =
        yk_text_hex(yk_plan_digest(slot->plan)->bytes, YK_HASH_BYTES, r->pool);
    if (section != NULL) {
        etag = apr_psprintf(r->pool, "%s-s%u", etag, section_no);
    }
    if (section == NULL) {
        apr_table_setn(r->subprocess_env, "no-gzip", "1");
        apr_table_setn(r->subprocess_env, "no-brotli", "1");
    }
    if (yk_http_reply_public(call, etag, CACHE) == OK) {
        return OK;
    }
    return section != NULL ? section_send(call, slot, section_no)
                           : drawing_send(call, slot);
}
