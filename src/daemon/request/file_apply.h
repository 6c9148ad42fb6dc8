/* Applies a jobs file in pieces. Each function continues until the boot clock reaches until_us
 * or enough has changed for one commit, and returns WORK_MORE or WORK_DONE (long_work.h). */
#ifndef DAEMON_REQUEST_FILE_APPLY_H
#define DAEMON_REQUEST_FILE_APPLY_H

#include <stdint.h>

struct sync;

/* Cancels the pending jobs of lines that are gone. */
int file_apply_removed(struct sync *s, int64_t until_us);
/* Turns lines into jobs, or updates the jobs that they are. Each line comes after those that
 * it waits for, so that no job can start before its dependencies even while the file is only
 * partly applied. */
int file_apply_lines(struct sync *s, int64_t until_us);
/* Puts the file's waiting jobs in the order of its lines. */
int file_apply_order(struct sync *s, int64_t until_us);

#endif
