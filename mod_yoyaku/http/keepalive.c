/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <ap_mpm.h>

/*
 * Where a kept connection owns a worker (prefork, worker), somebody who reads
 * a page keeps others out. While fewer than a tenth of the workers are idle,
 * responses say that the connection ends. Workers not yet started are idle.
 */
void yk_http_keepalive_decide(request_rec *r)
{
    const yk_http_measure_server_t *conf =
        yk_http_server(r->server, YK_HTTP_MEASURE);
    uint32_t busy, most;
    int is_async = 0;

    if (conf->adaptive != 1 || r->connection->keepalive == AP_CONN_CLOSE) {
        return;
    }
    ap_mpm_query(AP_MPMQ_IS_ASYNC, &is_async);
    if (is_async) {
        return;
    }
    yk_http_measure_busy(&busy, &most);
    if (busy < most && (most - busy) * 10 >= most) {
        return;
    }
    r->connection->keepalive = AP_CONN_CLOSE;
    yk_stats_add(yk_http_measure_stats(), YK_TOTAL_KEEPALIVE_CLOSED, 1);
}
