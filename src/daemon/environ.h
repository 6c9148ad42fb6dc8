/* The environment of a job: the submitter's, with what Berth tells it. */
#ifndef DAEMON_ENVIRON_H
#define DAEMON_ENVIRON_H

struct daemon;
struct err;
struct job;
struct jsonw;

/* Writes the whole environment of job->run as an array of "K=V". */
int environ_write(struct daemon *d, const struct job *job, const char *mark, struct jsonw *w,
                  struct err *e);

#endif
