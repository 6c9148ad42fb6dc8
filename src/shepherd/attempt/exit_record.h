/* Writes the exit record to disk. */
#ifndef SHEPHERD_ATTEMPT_EXIT_RECORD_H
#define SHEPHERD_ATTEMPT_EXIT_RECORD_H

#include <stdbool.h>

struct err;
struct exitrec;

/* Appends the record to the attempt's lock file, as a line `ended {...}`, in one write; a
 * restarted daemon finds it there as well as in the file. 0 or -1 (then write the file). */
int record_note(int lock_fd, const struct exitrec *r);

/* Writes `exit` in the folder (temporary file, rename). Not durable before record_sync.
 * synced: syncs the text before the rename, for a reader on another machine. */
int record_write(int dirfd, const struct exitrec *r, bool synced, struct err *e);

/* Makes the file and its name durable. */
int record_sync(int dirfd, struct err *e);

#endif
