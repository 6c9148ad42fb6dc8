/* The environment of a job: the submitter's, plus Berth's own variables. */
#ifndef DAEMON_ATTEMPT_JOB_ENVIRON_H
#define DAEMON_ATTEMPT_JOB_ENVIRON_H

#include <stdbool.h>

struct attempts;
struct buf;
struct err;
struct job;

/* Appends the whole environment of job->run: "K=V", each terminated by a NUL. The first
 * *captured variables come from the submitter's shell. */
int environ_add(struct attempts *a, const struct job *job, const char *mark, struct buf *out,
                int *captured, struct err *e);

/* The hook of a job, for its environment. */
struct hook_environ {
    const struct job *job;
    const char *hook; /* its type */
    const char *line; /* the whole event object */
    bool apart;       /* contains nothing from the submitter */
};

/* Appends a hook's environment: the event's variables on top of the submitter's environment.
 * apart: on top of a clean one, with only the proxy variables that the daemon was
 * started with. */
int environ_add_hook(struct attempts *a, const struct hook_environ *x, struct buf *out,
                     struct err *e);

#endif
