/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_TEMPLATE_H
#define YOYAKU_TEMPLATE_H

#include <apr_pools.h>
#include <jansson.h>

/**
 * @file template.h
 * @brief Pages: what stands in mod_yoyaku/page/ is built in, and its gaps are
 *        filled from a JSON tree.
 *
 *   {{name}} {{a.b}}      the value as text, fit for HTML
 *   {{#name}}..{{/name}}  once for each of a list (its members first, then
 *                         those around it); once when true or an object
 *   {{^name}}..{{/name}}  when missing, false, null or empty
 *
 * There is no way to write a value without making it fit for HTML.
 */

/** A file of mod_yoyaku/page/ by name. @return NULL: there is none */
const char *yk_page_find(apr_size_t *len, const char *name);

/** Fill a template. Unclosed sections end with the text. */
const char *yk_template_fill(apr_size_t *len, const char *text,
                             const json_t *values, apr_pool_t *p);

#endif
