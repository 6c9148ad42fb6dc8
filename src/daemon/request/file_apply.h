/* What a jobs file changes, in pieces. Each goes on until the boot clock says until_us, or
 * enough has been changed for one commit, and says WORK_MORE or WORK_DONE (long_work.h). */
#ifndef DAEMON_REQUEST_FILE_APPLY_H
#define DAEMON_REQUEST_FILE_APPLY_H

#include <stdint.h>

struct sync;

/* Lines that are gone take their pending jobs with them. */
int file_apply_removed(struct sync *s, int64_t until_us);
/* Lines become jobs, or change those that they are: each behind those that it waits for, so
 * that nothing can start before them however little of the file is there yet. */
int file_apply_lines(struct sync *s, int64_t until_us);
/* The order of the file's waiting jobs is that of its lines. */
int file_apply_order(struct sync *s, int64_t until_us);

#endif
