/* Which jobs the lines of a jobs file wait for: names mean lines of that very file first,
 * before or behind, then jobs of the same user. */
#ifndef DAEMON_REQUEST_FILE_DEPS_H
#define DAEMON_REQUEST_FILE_DEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct request;
struct state;

/* One line of the file, as it is asked for. */
struct file_dep_line {
    struct request *req; /* borrowed; ids of jobs outside the file are filled in */
    int32_t number;      /* for messages */
    int32_t *links;      /* owned; for each dep the line that it means, -1: a job; or NULL */
    uint32_t job;        /* that it is; 0: it is new, and will have a number behind those */
    bool has_ended;      /* that job has */
};

/* Fills in links to other lines. False: no line waits for anything. */
bool file_deps_link(struct file_dep_line *lines, size_t n);
/* What is not in the file must be a job: -1 with e where it is none. Not of a line that has
 * ended; nor where its job waits for one that has been forgotten since. */
int file_deps_resolve(struct state *s, uid_t uid, struct file_dep_line *line, struct err *e);
/* *order is all lines, each behind those that it waits for and otherwise as they stand; the
 * caller frees it. -1 with e where lines would wait for themselves; a singleton waits for those
 * of its name that were submitted earlier. */
int file_deps_put_in_order(const struct file_dep_line *lines, size_t n, int32_t **order,
                           struct err *e);

#endif
