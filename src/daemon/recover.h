/* Taking up where a daemon before this one left off. */
#ifndef DAEMON_RECOVER_H
#define DAEMON_RECOVER_H

#include <stddef.h>

struct daemon;
struct err;

/* Reads every job that has not ended into the table. Before the cards are known. */
int recover_load(struct daemon *d, struct err *e);

/* With the cards known: books what runs, connects to living shepherds, settles the rest, and
 * removes folders that belong to nothing. */
int recover_attempts(struct daemon *d, struct err *e);

#endif
