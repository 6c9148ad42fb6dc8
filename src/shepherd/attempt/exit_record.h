/* Putting the exit record on the disk. */
#ifndef SHEPHERD_ATTEMPT_EXIT_RECORD_H
#define SHEPHERD_ATTEMPT_EXIT_RECORD_H

#include <stdbool.h>

struct err;
struct exitrec;

/* Appends the record to the attempt's lock file, as a line `ended {...}`: one write, which a
 * daemon that is killed finds as well as the file. 0 or -1 (then write the file). */
int record_note(int lock_fd, const struct exitrec *r);

/* Writes `exit` in the folder (temp, rename). Not durable before record_sync. synced: its text
 * is on the disk before its name is there, for a reader on another machine. */
int record_write(int dirfd, const struct exitrec *r, bool synced, struct err *e);

/* Makes it, and its name in the folder, survive power loss. */
int record_sync(int dirfd, struct err *e);

#endif
