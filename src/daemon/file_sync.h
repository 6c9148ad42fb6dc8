/* A jobs file beside what is known of it: what method_file.c (which changes the queue) and
 * method_file_plan.c (which only looks) share. */
#ifndef DAEMON_FILE_SYNC_H
#define DAEMON_FILE_SYNC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "base/err.h"
#include "base/request.h"
#include "core/job.h"
#include "daemon/reqcontext.h"

struct caller;
struct daemon;

/* What is known of a key: a live job, or how one ended. */
struct known {
    char key[64];
    uint32_t job;
    enum job_state state;
    int exit_status; /* -1: has not ended */
    bool in_file;
    UT_hash_handle hh;
};

struct line {
    char *key; /* owned */
    int32_t number;
    bool again; /* runs once more when it has ended */
    struct request req;
    struct known *known; /* NULL: new */
    struct job *job;     /* live, after it was looked up or made */
    char *refused;       /* why it can never start */
    char *over;          /* fits: more than a single job may ask for; the words */
    bool is_left;        /* there is no room for it in the queue now */
    int32_t *links;      /* owned; for each dependency the line that it means, or -1 */
};

struct sync {
    struct daemon *daemon;
    struct caller *caller;
    uint32_t file;
    const char *path;
    struct line *lines;
    size_t n, cap;
    bool is_part;    /* of the file: lines that are not told stay as they are */
    bool fits;       /* a limit leaves single lines out, and does not refuse them all */
    struct err full; /* which limit did, if any */
    struct known *known;
    struct reqcontext context;
    int n_new, n_updated;
    uint32_t *removed;
    size_t n_removed;
};

void file_sync_free(struct sync *s); /* what it owns */

/* The request's lines, behind those that are there. */
int file_read_lines(struct sync *s, const json_t *params, struct err *e);
void file_forget_known(struct sync *s); /* of keys */
/* What has become of their keys; s->file says which file. */
int file_load_known(struct sync *s, struct err *e);
/* Whether the line becomes a job: it is new, or one that never could start and has been changed
 * so that it can, or one that has ended and is to run again. */
bool file_is_new(const struct sync *s, const struct line *line);
/* Names of other lines, and of jobs outside. */
int file_resolve_deps(struct sync *s, struct err *e);

/* file_same.c: but for the command, which is the line's key. */
bool file_same_request(const struct request *a, const struct request *b);
bool file_same_begin(const struct request *a, const struct request *b);
bool file_same_deps(const struct request *a, const struct request *b);

#endif
