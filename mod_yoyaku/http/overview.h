/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_OVERVIEW_H
#define YK_HTTP_OVERVIEW_H

#include <jansson.h>
#include "http.h"

/**
 * @file overview.h
 * @brief Handlers `yoyaku-status`, `yoyaku-metrics`, `yoyaku-health`, and our
 *        lines in mod_status's page: one tree, written in four ways.
 *
 *   yoyaku-status           a page from a template, without script
 *   yoyaku-status?json      the tree
 *   yoyaku-status?auto      "Key: value" lines
 *   yoyaku-status?history=24h&step=60   with sums, each `step` minutes
 *   yoyaku-metrics          Prometheus text
 *   yoyaku-health           ready or degraded (200), draining (503)
 *
 * None of them asks the database or waits for a lock longer than 100 ms.
 */

#endif
