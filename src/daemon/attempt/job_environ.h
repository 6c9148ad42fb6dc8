/* The environment of a job: the submitter's, with Berth's own variables. */
#ifndef DAEMON_ATTEMPT_JOB_ENVIRON_H
#define DAEMON_ATTEMPT_JOB_ENVIRON_H

#include <stdbool.h>

struct attempts;
struct buf;
struct err;
struct job;

/* Appends the whole environment of job->run: "K=V", each with a NUL behind it. The first
 * *captured of them are what the submitter's shell had. */
int environ_add(struct attempts *a, const struct job *job, const char *mark, struct buf *out,
                int *captured, struct err *e);

/* A hook of a job. */
struct hook_environ {
    const struct job *job;
    const char *hook; /* its kind */
    const char *line; /* the event: its whole object */
    bool apart;       /* nothing of the submitter's is to be in it */
};

/* Its environment: what the event says, on top of the submitter's; apart: on top of a clean
 * one, which has only the proxies that the daemon itself was started with. */
int environ_add_hook(struct attempts *a, const struct hook_environ *x, struct buf *out,
                     struct err *e);

#endif
