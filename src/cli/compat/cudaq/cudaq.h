/* What the files of the drop-in cudaq share. cudaq.c reads the options and loops;
 * config.c its settings; jobs.c the jobs file (jobs.jsonl), which is the user's
 * too: records are read again whenever it changes, and what we know of each is merged into it;
 * queue.c tells the daemon what waits and takes what the daemon tells; status.c
 * prints. */
#ifndef CLI_COMPAT_CUDAQ_CUDAQ_H
#define CLI_COMPAT_CUDAQ_CUDAQ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/request.h"
#include "cli/compat/cards.h"
#include "cli/compat/lines.h"
#include "cli/compat/records.h"
#include "cli/compat/session.h"

struct err;

#define CQ_KEY_SIZE 32

/* --------------------------------------------------------------- config.c */

struct cq_config {
    uint64_t gpus; /* bits; 0: all */
    bool gpus_said;
    double min_free_mib;
    double poll_s;
    char *poll_text; /* as it is written in lines; owned, as are those below */
    char *commands_file, *log_dir, *jobs_file;
};

void cq_config_init(struct cq_config *c);
/* A flat YAML mapping over what is there; keys that are not cudaq's do not count. */
int cq_config_read(struct cq_config *c, const char *name, const char *text, size_t n,
                   struct err *e);
/* One key from text, as the command line has it. */
int cq_config_set(struct cq_config *c, const char *key, const char *value, struct err *e);
void cq_config_free(struct cq_config *c);

/* ----------------------------------------------------------------- jobs.c */

enum cq_status { CQ_PENDING, CQ_RUNNING, CQ_COMPLETED, CQ_FAILED, CQ_UNKNOWN };

/* A record, by its command and which of its equals it is. */
struct cq_job {
    char key[CQ_KEY_SIZE];
    char *command;
    enum cq_status status;
    bool dirty; /* newer than the file */
    bool in_file;
    bool was_started; /* it has a start time */
    int64_t order;    /* of its record */
    int64_t id;       /* the daemon's; 0: none */
    int64_t noted_id; /* what its record says of that */
    int64_t pid;      /* 0: none */
    int64_t gpu;      /* -1: none */
    int64_t began_us; /* what its record says of that; 0: nothing */
    int64_t start_us; /* 0: has not started, as far as we know */
    int64_t exit_code;
    bool exit_known;
    bool foreign;    /* runs, or ran, without the daemon: begun by the original */
    char *log_name;  /* below log_dir; NULL: not chosen yet */
    json_t *changes; /* of its status since the file was written: its history's new items */
    UT_hash_handle hh;
};

struct cudaq {
    struct cq_config config;
    struct compat_session session;
    struct cq_job *jobs;
    struct buf warned; /* bad lines that have been said, a line each */
    char *log_root, *sync_path;
    json_t *new_commands; /* to be appended to the file */
    struct compat_cards cards;
    bool dirty, sync_due, leaving;
    bool assigned; /* something was, since it was last said that nothing can be */
    bool idle_said;
    int64_t save_due_us, say_due_us, round_due_us;
    int64_t log_second; /* of the last name of a log, and how many it has given */
    int n_in_second;
};

/* Reads the file into q->jobs; what is dirty there is newer and stays. */
int cq_jobs_load(struct cudaq *q, struct err *e);
/* Merges what is dirty and the new commands into the file as it is now, and replaces it. */
int cq_jobs_save(struct cudaq *q, struct err *e);
/* Commands that no record has become records that wait. */
int cq_commands_load(struct cudaq *q, struct err *e);
void cq_job_set(struct cudaq *q, struct cq_job *job, enum cq_status status);
size_t cq_count(const struct cudaq *q, enum cq_status status); /* of those in the file */
void cq_jobs_free(struct cudaq *q);
const char *cq_status_name(enum cq_status status);

/* --------------------------------------------------------------- recall.c */

int cq_recall(struct cudaq *q, struct err *e); /* what the daemon knows from before */
/* The object of a job that we were not told of: it runs, or is settled with its true end. */
void cq_adopt(void *cudaq, void *job, const json_t *object);
void cq_take_exit(struct cq_job *job, const json_t *ended);

/* ------------------------------------------------------ queue.c, events.c */

int cq_sync(struct cudaq *q, struct err *e); /* tells it what waits */
void cq_take_events(void *cudaq);
struct compat_file cq_file(struct cudaq *q); /* what lines.h is to know of all this */
void cq_look_at_foreign(struct cudaq *q);    /* processes that the original began */
int cq_count_cards(const struct cudaq *q);   /* that may be used */
int cq_stop(struct cudaq *q, struct err *e); /* takes out what waits, ends what runs */
bool cq_any_running(const void *cudaq);
size_t cq_sendable(const struct cudaq *q); /* records that wait and fit some card */

/* --------------------------------------------------------------- status.c */

int cq_status(const struct cq_config *c);

#endif
