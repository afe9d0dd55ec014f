/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"
#ifdef MARIADB_PACKAGE_VERSION_ID
#include <ma_pvio.h>
#endif

/* mysql_options() counts only before a line is opened; what is open keeps its
 * time-outs in milliseconds, -1 for ever, in its pvio. */
void yk_store_patience_set(void *data, apr_interval_time_t patience)
{
#ifdef MARIADB_PACKAGE_VERSION_ID
    MYSQL *line = data;

    if (line->net.pvio != NULL) {
        line->net.pvio->timeout[PVIO_READ_TIMEOUT] =
            (int)apr_time_as_msec(patience);
        line->net.pvio->timeout[PVIO_WRITE_TIMEOUT] =
            (int)apr_time_as_msec(patience);
    }
#else
    (void)data;
    (void)patience;
#endif
}
