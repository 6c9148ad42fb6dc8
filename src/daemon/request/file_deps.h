/* Resolves the dependencies of a jobs file: a name means a line of the same file first, before
 * or after, then a job of the same user. */
#ifndef DAEMON_REQUEST_FILE_DEPS_H
#define DAEMON_REQUEST_FILE_DEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct request;
struct state;

/* One line of the file as requested. */
struct file_dep_line {
    struct request *req; /* borrowed; ids of jobs outside the file are filled in */
    int32_t number;      /* for messages */
    int32_t *links;      /* owned; for each dependency its line, -1: a job; or NULL */
    uint32_t job;        /* the line's job; 0: new, with an id above all existing ones */
    bool has_ended;      /* the job has ended */
};

/* Fills in links to other lines. False: no line has dependencies. */
bool file_deps_link(struct file_dep_line *lines, size_t n);
/* Resolves dependencies outside the file to jobs; -1 with e if there is no such job. Skips
 * lines that have ended, and dependencies of an existing job that has been pruned since. */
int file_deps_resolve(struct state *s, uid_t uid, struct file_dep_line *line, struct err *e);
/* *order: all lines, each after those that it waits for, otherwise in file order; the caller
 * frees. -1 with e if lines would wait for themselves. A singleton waits for those of its name
 * that were submitted earlier. */
int file_deps_put_in_order(const struct file_dep_line *lines, size_t n, int32_t **order,
                           struct err *e);

#endif
