/* A short notation for jobs files, and their synchronisation in a daemon_world.h: a line is its
 * key, from which its command is made ("run KEY") and which is also its name, followed by
 * marks:
 *
 *   <NAME  runs after           #N  GPUs            :MIB  on each        &  MIB as learned
 *   @NAME  its name             /DIR  its folder    *N  priority         =  unique
 *   ^S  seconds at most         +S  not before      %  held              -  cancelled
 *   !  runs again               ~  the only one of its name (singleton) */
#ifndef TESTS_DAEMON_FILE_WORDS_H
#define TESTS_DAEMON_FILE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/request/file_sync.h"
#include "daemon_door.h"

/* The answer's text about the lines, and what happened to jobs whose lines are gone. */
struct answer {
    char said[512]; /* "a 1 PENDING, b 2 INFEASIBLE 1 (why), c left" */
    int n_new, n_updated;
    uint32_t removed[8];
    size_t n_removed;
};

/* Starts a sync of these lines into *s, in which the caller may have set the options for the
 * whole file; changes nothing yet. */
void file_begin(struct door *d, struct sync *s, const char *words);
/* Runs the phases of file.sync, those that change something included. WORK_DONE: all done;
 * until_us 0: does one change of one phase. */
int file_go_on(struct sync *s, int64_t until_us);
/* Returns the answer; frees what *s owns. */
struct answer file_end(struct sync *s);

/* Syncs the whole file in one go, then commits. */
struct answer sync_file(struct door *d, const char *words);

struct job *job_of_line(const struct door *d, const char *key); /* NULL: not in the table */
/* The line's job runs and ends, and the end is committed. */
void line_ends(struct door *d, uint32_t id, int code);
/* Keys of the pending jobs in queue order; the string is static. */
const char *waiting_lines(const struct door *d);

#endif
