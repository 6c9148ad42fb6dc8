/* Shared by the files of the drop-in cudaq. cudaq.c reads the options and has the main loop;
 * cudaq_config.c has the settings; cudaq_jobs.c the jobs file (jobs.jsonl), which users edit
 * too, and the commands file; cudaq_record.c one line of the jobs file; cudaq_old.c replaced
 * versions of it; cudaq_queue.c sends pending jobs to the daemon; cudaq_events.c takes its
 * events; cudaq_status.c prints the status. */
#ifndef COMPAT_CUDAQ_CUDAQ_H
#define COMPAT_CUDAQ_CUDAQ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/request.h"
#include "compat/engine/compat_cards.h"
#include "compat/engine/compat_session.h"
#include "compat/engine/sent_lines.h"

struct err;

/* --- cudaq_config.c --- */

struct cq_config {
    uint64_t gpus; /* bit set; 0: all */
    double min_free_mib;
    double poll_s;
    char *poll_text; /* as shown in messages; owned, like the members below */
    char *commands_file, *log_dir, *jobs_file;
};

void cq_config_init(struct cq_config *c);
/* Read a flat YAML mapping over the present values; unknown keys are ignored. */
int cq_config_read(struct cq_config *c, const char *name, const char *text, size_t n,
                   struct err *e);
/* Set one key from text, as on the command line. */
int cq_config_set(struct cq_config *c, const char *key, const char *value, struct err *e);
void cq_config_free(struct cq_config *c);

/* --- cudaq_record.c --- */

#define CQ_KEY_SIZE 48 /* never truncated: a cut digest would not match */

enum cq_status { CQ_PENDING, CQ_RUNNING, CQ_COMPLETED, CQ_FAILED, CQ_UNKNOWN, CQ_STATUSES };

/* A line of the jobs file. Its key stands for one request to run the command and is written to
 * the file before the daemon gets the job, so that nothing runs twice, whichever process dies.
 * Setting a record back to pending is a new request, and so is changing the command of a
 * pending one: the key ends with a digest of the command, to detect changes made while no
 * dispatcher ran. */
struct cq_job {
    /* The line in the file without its newline; NULL: not, or no longer, in the file. */
    char *text;
    size_t text_len;
    char *command; /* NULL: not a record; the line is kept as it is */
    char key[CQ_KEY_SIZE];
    enum cq_status status;
    enum cq_status noted; /* last status in its history; CQ_STATUSES: none */
    bool dirty;           /* we know more than text says */
    bool unsure;          /* read as running: not yet known whether it is, and under which
                             program */
    bool foreign;         /* running outside the daemon: started by the original */
    bool gone;            /* its line was removed while it ran */
    bool in_file;         /* in the file when last read or written */
    bool in_pass;         /* seen in the present read of the file */
    int64_t id;           /* the daemon's id; 0: none */
    int64_t pid;          /* 0: none */
    int64_t gpu;          /* -1: none */
    int64_t began_us;     /* start time in the record; 0: none */
    int64_t start_us;     /* start time in the daemon; 0: not started */
    int64_t exit_code;
    bool exit_known;
    char *log;       /* relative to log_dir, or absolute; NULL: not chosen yet */
    json_t *changes; /* new items of its history */
    UT_hash_handle by_text, by_key;
};

struct cudaq;

/* Parse a line; one that is not a record is reported once. */
struct cq_job *cq_job_read(const struct cudaq *q, const char *line, size_t n);
struct cq_job *cq_job_new(const char *command);
/* The line with what we know; the caller frees. */
char *cq_job_render(const struct cudaq *q, const struct cq_job *job);
/* Set the status, with this time in the history. */
void cq_job_set(struct cudaq *q, struct cq_job *job, enum cq_status status, int64_t at_us);
void cq_job_changed(struct cudaq *q, struct cq_job *job); /* mark as to be written */
void cq_job_forget_run(struct cudaq *q, struct cq_job *job);
void cq_job_free(struct cq_job *job);
/* Assign a new, unique key for its command. */
void cq_job_name(struct cudaq *q, struct cq_job *job);
/* True if the key belongs to another command. */
bool cq_job_is_renamed(const struct cq_job *job);

/* --- cudaq_jobs.c, cudaq_old.c --- */

#define CQ_OLD_MAX    16
#define CQ_OLD_BEFORE 64

/* A replaced version of the jobs file, into which a program that had it open may still
 * write. */
struct cq_old {
    int fd;
    off_t read_to;              /* bytes up to here are in the present file */
    char before[CQ_OLD_BEFORE]; /* last bytes before read_to */
    size_t n_before;
    int64_t since_us;
};

struct cudaq {
    struct cq_config config;
    struct compat_session session;
    struct cq_job **lines; /* in file order, new ones last; owned */
    size_t n, cap;
    size_t count[CQ_STATUSES];
    struct cq_job *texts, *keys;
    json_t *commands; /* commands seen in records and in the commands file */
    size_t tail_len;  /* incomplete last line, left to its writer */
    struct stat mark; /* stat of the file as last read */
    struct stat commands_mark;
    struct cq_old old[CQ_OLD_MAX];
    int n_old;
    char *log_root, *jobs_path; /* absolute */
    int64_t key_base;
    unsigned n_keys;
    struct compat_cards cards;
    bool dirty, sync_due, leaving;
    bool assigned;    /* a job was assigned since "Unable to dispatch" was printed */
    int64_t dirty_us; /* boot time since which it is */
    int64_t save_due_us, save_pause_us, say_due_us, old_due_us, round_due_us,
        retry_us;       /* 0: not due */
    char *complaint;    /* the last warning, not repeated */
    int64_t log_second; /* second of the last log name, and number of names in it */
    int n_in_second;
};

/* Read the file if it changed, keeping what we know beyond it. */
int cq_jobs_load(struct cudaq *q, struct err *e);
/* Merge dirty records into the present file and replace it. */
int cq_jobs_save(struct cudaq *q, struct err *e);
/* Turn new commands that no record has into pending records. */
int cq_commands_load(struct cudaq *q, struct err *e);
void cq_jobs_free(struct cudaq *q);

/* Add lines that arrived in another way, to be written. */
void cq_jobs_add(struct cudaq *q, const char *text, size_t n);

/* Append the file's content from this offset on to out. */
int cq_read_from(int fd, off_t from, struct buf *out);
/* Take over fd of a replaced file, whose first read_to bytes are in the present one. */
void cq_old_keep(struct cudaq *q, int fd, off_t read_to);
/* Carry over what was appended to replaced files since. */
void cq_old_look(struct cudaq *q);

/* --- cudaq_queue.c --- */

void cq_find_places(struct cudaq *q); /* make paths absolute */
/* Callbacks of struct compat_front. */
bool cq_fill_request(void *cudaq, void *cq_job, struct request *r);
enum compat_found cq_found(void *cudaq, void *cq_job, const char *state);
void cq_known(void *cudaq, void *cq_job, const char *state);
int cq_sync(struct cudaq *q, struct err *e); /* sends pending jobs */
/* Ask the daemon about unsure jobs: those running when read, or when the daemon was lost. */
int cq_recall(struct cudaq *q, struct err *e);
void cq_doubt(struct cudaq *q);           /* after a reconnect, perhaps to another daemon: send
                                             everything again */
void cq_look_at_foreign(struct cudaq *q); /* check processes that the original started */
bool cq_has_cards(const struct cudaq *q);
bool cq_fits_somewhere(const struct cudaq *q);
int cq_stop(void *cudaq, struct err *e); /* removes pending jobs, ends running ones */
bool cq_any_running(const void *cudaq);

/* --- cudaq_events.c --- */

void cq_take_events(void *cudaq);
/* Update the job from its object. An object with another key is ignored. */
void cq_take_object(void *cudaq, void *cq_job, const json_t *object);

/* --- cudaq_status.c --- */

/* Print the status. Returns the exit status; -1 with e. */
int cq_status(struct cudaq *q, struct err *e);

#endif
