/* What `status`, `daemon status` and bare `berth` share. */
#ifndef CLI_VERBS_STATUS_VERB_H
#define CLI_VERBS_STATUS_VERB_H

#include <jansson.h>

struct buf;

/* "daemon    pid 4711, version .., user mode, up 2h03m" and the counts. Appends. */
void status_add_daemon(const json_t *status, struct buf *out);
/* "3 running, 12 pending (GpuBusy), 1 held", "no jobs". reason: why those wait whose turn it
 * is; NULL: nothing is said of that. Appends. */
void status_add_counts(const json_t *status, const char *reason, struct buf *out);

#endif
