/* What a job's screen session is called. Pure. */
#ifndef SPEC_SCREENNAME_H
#define SPEC_SCREENNAME_H

#include <stdint.h>

struct buf;
struct request;

#define SCREEN_NAME_MAX 60 /* bytes; with pid, folder and user it is the name of a socket */

/* Appends gpujob_GPUS_MODE_ID: the indices of its cards, ascending (none: "cpu"); the value of
 * --mode in its command, else its name, else "unknown", without what a name should not hold;
 * its number, which is never cut. */
void screen_name(const struct request *r, uint64_t cards, uint32_t job, struct buf *out);

#endif
