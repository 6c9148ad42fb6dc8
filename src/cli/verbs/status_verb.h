/* Shared by `status`, `daemon status` and bare `berth`. */
#ifndef CLI_VERBS_STATUS_VERB_H
#define CLI_VERBS_STATUS_VERB_H

#include <jansson.h>

struct buf;

/* Appends "daemon    pid 4711, version .., user mode, up 2h03m" and the counts. */
void status_add_daemon(const json_t *status, struct buf *out);
/* Appends "3 running, 12 pending (GpuBusy), 1 held" or "no jobs". reason: why the first
 * pending jobs wait; NULL: omit it. */
void status_add_counts(const json_t *status, const char *reason, struct buf *out);

#endif
