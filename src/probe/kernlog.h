/* The kernel's log, where this user may read it: what the driver says there about cards, as
 * lines for the daemon. Reading it cannot hang with the driver. */
#ifndef PROBE_KERNLOG_H
#define PROBE_KERNLOG_H

#include <stdint.h>

struct buf;
struct kernlog;

/* after: the number of the newest record that the daemon knows; what came later is reported.
 * -1: it knows none, and only what comes from now on counts. Never NULL; a log that cannot be
 * read is silent. */
struct kernlog *kernlog_open(const char *path, int64_t after);
void kernlog_close(struct kernlog *k);

/* To poll for more, -1: there is nothing to wait for (none, or a plain file, which is looked
 * at with each sample). */
int kernlog_poll_fd(const struct kernlog *k);

/* The newest record's number; -1 when the log cannot be read. */
int64_t kernlog_position(const struct kernlog *k);

/* Reads what has come and appends a line of JSON for what concerns GPUs; nothing when
 * nothing does. */
void kernlog_report(struct kernlog *k, struct buf *out);

#endif
