/* What users' clients see of the machine's daemon while its socket does not answer. */
#ifndef DAEMON_SERVICE_START_NOTE_H
#define DAEMON_SERVICE_START_NOTE_H

struct places;

/* All of these do nothing for a user's daemon, or one with --dir. */

/* The daemon is starting, until one of the functions below is called with the descriptor
 * returned, or this process ends. -1: clients are not told. */
int startnote_begin(const struct places *p);
/* The socket answers. */
void startnote_serving(const struct places *p, int fd);
/* The daemon leaves in order. fd -1: it was serving. */
void startnote_stopped(const struct places *p, int fd);
/* It could not start. */
void startnote_failed(const struct places *p, int fd);

#endif
