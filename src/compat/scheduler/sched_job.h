/* The process around a job's script (sched_job.c) and its log (sched_joblog.c). */
#ifndef COMPAT_SCHEDULER_SCHED_JOB_H
#define COMPAT_SCHEDULER_SCHED_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "compat/scheduler/scheduler.h"
#include "compat/scheduler/x10_memory.h"

enum {
    JOB_ARG_NEED,
    JOB_ARG_HASH,
    JOB_ARG_LINE,
    JOB_ARG_CONDA,
    JOB_ARG_CUDA,
    JOB_ARG_SCREEN,
    JOB_ARG_MODE,
    JOB_ARG_MEMORY,
    JOB_ARGS
};

struct sched_run {
    const char *said[JOB_ARGS]; /* NULL: not */
    char **allowed;             /* NULL-terminated */
    char **words;               /* script and arguments */
    char *gpus;                 /* "0,1", ascending */
    struct sched_spec spec;
    bool piped;
    int out, err; /* read ends; -1: at their end */
    int last;     /* the stream that wrote last */
    bool in_line;
    pid_t pid;
    struct memory_watch memory;
};

/* What it is, and what it was given. */
void joblog_head(const struct sched_run *j);
/* How it ended: waitpid's status. */
void joblog_foot(const struct sched_run *j, int status);
/* The name by which the original wrote it, for users who look for that. */
void joblog_link(const struct sched_run *j);
/* What is in this pipe (0: standard output's, 1: errors'), up to 64 KiB. False: nothing more
 * now. */
bool joblog_copy_some(struct sched_run *j, int stream, int *fd);

#endif
