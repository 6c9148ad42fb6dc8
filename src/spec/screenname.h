/* The name of a job's screen session. Pure. */
#ifndef SPEC_SCREENNAME_H
#define SPEC_SCREENNAME_H

#include <stdint.h>

struct buf;
struct request;

#define SCREEN_NAME_MAX 60 /* bytes; with pid, folder and user it names a socket */

/* Appends gpujob_GPUS_MODE_ID: the indices of its GPUs, ascending (none: "cpu"); the value of
 * --mode in its command, else its name, else "unknown", with unsuitable characters removed;
 * its job id, which is never truncated. */
void screen_name(const struct request *r, uint64_t cards, uint32_t job, struct buf *out);

#endif
