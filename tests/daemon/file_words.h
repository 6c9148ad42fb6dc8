/* Jobs files in words, and what becomes of them in a daemon_world.h: a line is its key, of
 * which its command is made ("run KEY") and which is its name, and behind that marks for what
 * it asks for:
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

/* What the answer says of the lines, and what has become of those that are gone. */
struct answer {
    char said[512]; /* "a 1 PENDING, b 2 INFEASIBLE 1 (why), c left" */
    int n_new, n_updated;
    uint32_t removed[8];
    size_t n_removed;
};

/* *s, of which the caller may have set what the request says of the whole file, with these
 * lines; nothing is changed yet. */
void file_begin(struct door *d, struct sync *s, const char *words);
/* The phases of file.sync that change something, and those before them. WORK_DONE: all of it;
 * until_us 0: one change of one phase. */
int file_go_on(struct sync *s, int64_t until_us);
/* The answer; frees what *s owns. */
struct answer file_end(struct sync *s);

/* The whole file at once; then a commit. */
struct answer sync_file(struct door *d, const char *words);

struct job *job_of_line(const struct door *d, const char *key); /* NULL: not in the table */
/* Its job runs and ends, and that is committed. */
void line_ends(struct door *d, uint32_t id, int code);
/* The waiting jobs in the order of the queue, by their keys; static. */
const char *waiting_lines(const struct door *d);

#endif
