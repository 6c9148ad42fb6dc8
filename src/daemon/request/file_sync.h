/* A jobs file matched with the jobs known from it. Shared by method_file.c and file_apply.c,
 * which change the queue piece by piece, and method_file_plan.c, which only reads. */
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
struct attempts;
struct client;
struct state;

/* The job known for a key: live, or how it ended. */
struct known {
    char key[64];
    uint32_t job;
    enum job_state state;
    int exit_status; /* -1: not ended */
    bool in_file;
    UT_hash_handle hh;
};

struct line {
    char *key; /* owned */
    int32_t number;
    bool again; /* run once more if it has ended */
    struct request req;
    struct known *known;  /* NULL: new */
    uint32_t job;         /* its job, or (with place) its future one; 0: not yet known */
    uint64_t place;       /* its place in the queue, if a file with dependencies becomes jobs in
                           * another order than its lines; 0: in order of creation */
    enum job_state state; /* of its job, when it was applied */
    int exit_status;      /* -1: had not ended then */
    char *refused;        /* why the job can never start */
    char *over;           /* fits: why a limit on single jobs is exceeded */
    bool is_left;         /* left out: no room in the queue now */
    int32_t *links;       /* owned; for each dependency its line, or -1 */
};

struct sync {
    struct admission *admission; /* borrowed, like the next two */
    struct state *state;
    struct store *store;
    const struct attempts *attempts; /* borrowed; only for file.sync */
    uid_t uid;                       /* owner of the file */
    uint32_t file;
    const char *path;
    struct line *lines;
    size_t n, cap;
    const struct client *client; /* file_upload.c: sender; may be gone */
    uint64_t number;             /* sequence number of the request among those with files */
    bool is_first;               /* starts the file anew, whatever was sent of it before */
    bool has_more;               /* further requests have the rest of the file */
    bool is_kept_for_rest;       /* its lines are kept for those */
    bool reads;                  /* reading has begun */
    size_t n_read;               /* lines read from the request */
    size_t n_kept;               /* lines in front of those, from earlier requests */
    int32_t *order;              /* owned: dependencies first; NULL: file order */
    bool is_part;                /* only part of the file: lines not sent stay as they are */
    bool fits;       /* at a limit, leave out single lines instead of refusing all */
    struct err full; /* the limit that left lines out, if any */
    struct known *known;
    struct store_keys_at loaded;
    bool all_loaded;
    size_t n_matched;
    struct file_dep_line *deps; /* owned; NULL before names are resolved */
    size_t n_resolved;
    struct reqcontext context;
    int n_new, n_updated;
    struct ids removed;

    /* For a file that is applied in pieces; see method_file.c. */
    struct sync *next; /* next file under way, in order of arrival */
    bool is_fresh;     /* ignore what had ended before it */
    int phase;
    size_t at;               /* position in the phase */
    int n_changed;           /* in this piece */
    bool has_forgotten_some; /* in this piece: changed the store but no job */
    const json_t *params;    /* borrowed; valid while this lasts */
    uint32_t first_job;      /* the file's jobs from this id on belong to this request, even if
                              * an earlier daemon made them; 0: it waits for its turn */
    uint32_t forget_at;      /* fresh: last job examined for that */
    bool has_forgotten;      /* fresh: that is done */
    bool is_resumed;         /* an earlier daemon did part of it */
    bool is_kept;            /* progress on it is stored */
    bool walks_gone;         /* gone_next is set */
    int64_t seq;             /* newest event before it */
    int64_t n_new_lines, new_text; /* new jobs, and bytes they add */
    int64_t n_more, more_text;     /* the part of those still to come */
    int64_t room;                  /* fits: room for this many more jobs */
    struct known *gone_next;
    char *note;            /* owned: about what new lines request and cannot have; or NULL */
    struct ranked *ranked; /* file_apply.c */
    size_t n_ranked;
};

void file_sync_free(struct sync *s); /* frees only what it owns */
/* Frees the lines in pieces, as the last step of a long request: WORK_MORE or WORK_DONE. */
int file_sync_clear(struct sync *s, int64_t until_us);

/* Loads what is known of the keys of s->file, until the boot clock reaches until_us or for one
 * piece: WORK_MORE, WORK_DONE, or -1 with e. No job may be pruned between two calls. */
int file_load_known(struct sync *s, int64_t until_us, struct err *e);
/* Bytes that the line adds to the text kept for the user's jobs. */
int64_t file_more_text(const struct sync *s, const struct line *line);
/* True if the line becomes a new job: it has none, or its job could never start and now could,
 * or its job has ended and is to run again. */
bool file_is_new(const struct sync *s, const struct line *line);
/* Resolves names of other lines and of jobs outside the file, in pieces as well. */
int file_resolve_deps(struct sync *s, int64_t until_us, struct err *e);

/* file_same.c: compare all but the command, which is part of the line's key. */
bool file_same_request(const struct request *a, const struct request *b);
bool file_same_begin(const struct request *a, const struct request *b);
bool file_same_deps(const struct request *a, const struct request *b);

#endif
