/* Requests as they go over the socket: docs/protocol.md section 2, "A job in a request".
 * Written straight into a buffer: a file of 10,000 lines is one such text. */
#ifndef CLI_JOBREQ_H
#define CLI_JOBREQ_H

#include <stdbool.h>

struct jobsfile;
struct jsonw;
struct request;

/* The fields of one job, into an open object. */
void jobreq_add_fields(struct jsonw *w, const struct request *r);

/* "cwd", "umask" and "env" of this process, into an open object. cwd NULL: the current
 * folder. set: NULL-terminated "K=V" that override or add to the environment; may be NULL. */
void jobreq_add_context(struct jsonw *w, const char *cwd, char *const *set);

/* "jobs" of a whole file with key, line and cancel, into an open object. */
void jobreq_add_lines(struct jsonw *w, const struct jobsfile *f);

#endif
