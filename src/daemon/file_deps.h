/* Whom the lines of a jobs file wait for: names mean lines of that very file first, before or
 * behind, then jobs of the same user. */
#ifndef DAEMON_FILE_DEPS_H
#define DAEMON_FILE_DEPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon;
struct err;
struct request;

/* One line of the file, as it is asked for. */
struct file_dep_line {
    struct request *req; /* borrowed; ids of jobs outside the file are filled in */
    int32_t number;      /* for messages */
    int32_t *links;      /* owned; for each dep the line that it means, -1: a job; or NULL */
};

/* Fills in links. Refuses names that are nowhere and lines that wait for themselves. *order is
 * all lines, each behind those it waits for and otherwise as they stand; the caller frees it,
 * NULL: no line waits for another. */
int file_deps_resolve(struct daemon *d, uid_t uid, struct file_dep_line *lines, size_t n,
                      int32_t **order, struct err *e);

#endif
