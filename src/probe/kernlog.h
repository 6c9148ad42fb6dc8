/* The kernel's log, if this user may read it: passes what the driver logs about GPUs to the
 * daemon. Reading it cannot hang with the driver. */
#ifndef PROBE_KERNLOG_H
#define PROBE_KERNLOG_H

#include <stdint.h>

struct buf;
struct kernlog;

/* after: number of the newest record known to the daemon; later ones are reported. -1: none is
 * known, and only records from now on count. Never returns NULL; a log that cannot be read
 * yields nothing. */
struct kernlog *kernlog_open(const char *path, int64_t after);
void kernlog_close(struct kernlog *k);

/* For poll; -1: nothing to wait for (no log, or a plain file, which is read with each
 * sample). */
int kernlog_poll_fd(const struct kernlog *k);

/* The newest record's number; -1 if the log cannot be read. */
int64_t kernlog_position(const struct kernlog *k);

/* Reads new records and appends JSON lines for those that concern GPUs; nothing if there are
 * none. */
void kernlog_report(struct kernlog *k, struct buf *out);

#endif
