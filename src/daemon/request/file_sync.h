/* A jobs file beside what is known of it: what method_file.c and file_apply.c (which change the
 * queue, a piece at a time) and method_file_plan.c (which only looks) share. */
#ifndef DAEMON_REQUEST_FILE_SYNC_H
#define DAEMON_REQUEST_FILE_SYNC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "base/err.h"
#include "base/request.h"
#include "core/queue/job.h"
#include "daemon/request/id_list.h"
#include "daemon/request/request_context.h"
#include "store/store.h"

struct admission;
struct client;
struct state;

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
    uint32_t job;        /* what it has become, or (with place) will; 0: not yet */
    uint64_t place;      /* of a new one in a file with dependencies, where lines become jobs in
                            another order than they stand; 0: as they come */
    enum job_state state; /* of its job, when it had been applied */
    int exit_status;      /* -1: has not ended then */
    char *refused;        /* why it can never start */
    char *over;           /* fits: more than a single job may ask for; the words */
    bool is_left;         /* there is no room for it in the queue now */
    int32_t *links;       /* owned; for each dependency the line that it means, or -1 */
};

struct sync {
    struct admission *admission; /* borrowed, as are these */
    struct state *state;
    struct store *store;
    uid_t uid; /* whose it is */
    uint32_t file;
    const char *path;
    struct line *lines;
    size_t n, cap;
    const struct client *client; /* file_upload.c: whose lines it reads; may be gone */
    uint64_t number;             /* of the request, among those of its kind */
    bool is_first;               /* it begins the file, whatever came of it before */
    bool has_more;               /* the rest of the file comes in other requests */
    bool is_kept_for_rest;       /* its lines are kept for those */
    bool reads;                  /* it has begun to */
    size_t n_read;               /* lines of the request */
    size_t n_kept;               /* lines in front of those, of earlier requests */
    int32_t *order;  /* owned: each line behind those it waits for; NULL: as they stand */
    bool is_part;    /* of the file: lines that are not sent stay as they are */
    bool fits;       /* a limit leaves single lines out, and does not refuse them all */
    struct err full; /* which limit did, if any */
    struct known *known;
    struct store_keys_at loaded;
    bool all_loaded;
    size_t n_matched;
    struct file_dep_line *deps; /* owned; NULL before their names are looked up */
    size_t n_resolved;
    struct reqcontext context;
    int n_new, n_updated;
    struct ids removed;

    /* Of one that is applied in pieces; see method_file.c. */
    struct sync *next; /* of those that are under way, in the order in which they came */
    bool is_fresh;     /* what had ended before it counts no more */
    int phase;
    size_t at;               /* in the phase */
    int n_changed;           /* in this piece */
    bool has_forgotten_some; /* in this piece: the store has changed, and no job */
    const json_t *params;    /* borrowed; they stay while it lasts */
    uint32_t first_job;      /* the file's jobs from this one on are of this request, also those
                                that an earlier daemon made for it; 0: it waits for its turn */
    uint32_t forget_at;      /* fresh: the last job that was looked at for that */
    bool has_forgotten;      /* fresh: that has been done */
    bool is_resumed;         /* an earlier daemon has done some of it */
    bool is_kept;            /* something of it is written down */
    bool walks_gone;         /* gone_next has begun */
    int64_t seq;             /* of the newest event before it */
    int64_t n_new_lines, new_text; /* what its lines are, and bytes that they add */
    int64_t n_more, more_text;     /* of those, what has been let in and is still to come */
    int64_t room;                  /* fits: for how many more jobs there is */
    struct known *gone_next;
    struct ranked *ranked; /* file_apply.c */
    size_t n_ranked;
};

void file_sync_free(struct sync *s); /* what it owns */
/* Gives up the lines in pieces, the last of a long request: WORK_MORE or WORK_DONE. */
int file_sync_clear(struct sync *s, int64_t until_us);

/* What has become of their keys; s->file says which file. Until the boot clock says until_us,
 * or a piece of it: WORK_MORE, WORK_DONE, or -1 with e. Between two calls nothing may be
 * pruned. */
int file_load_known(struct sync *s, int64_t until_us, struct err *e);
/* Bytes that the line adds to what is kept of the user's jobs. */
int64_t file_more_text(const struct sync *s, const struct line *line);
/* Whether the line becomes a job: it is new, or one that never could start and has been changed
 * so that it can, or one that has ended and is to run again. */
bool file_is_new(const struct sync *s, const struct line *line);
/* Names of other lines, and of jobs outside; in pieces as well. */
int file_resolve_deps(struct sync *s, int64_t until_us, struct err *e);

/* file_same.c: but for the command, which is the line's key. */
bool file_same_request(const struct request *a, const struct request *b);
bool file_same_begin(const struct request *a, const struct request *b);
bool file_same_deps(const struct request *a, const struct request *b);

#endif
