/* What the files of the drop-in cudaq share. cudaq.c reads the options and loops;
 * cudaq_config.c has the settings; cudaq_jobs.c the jobs file (jobs.jsonl), which is the
 * user's too, and the commands; cudaq_record.c one line of it; cudaq_old.c the files that ours
 * have replaced; cudaq_queue.c sends the daemon what waits; cudaq_events.c takes what the
 * daemon says; cudaq_status.c prints. */
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
    uint64_t gpus; /* bits; 0: all */
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

/* --- cudaq_record.c --- */

#define CQ_KEY_SIZE 48 /* whole: with its digest cut, a command would count as another */

enum cq_status { CQ_PENDING, CQ_RUNNING, CQ_COMPLETED, CQ_FAILED, CQ_UNKNOWN, CQ_STATUSES };

/* A line of the jobs file. Its key names one wish that the command run: it is in the record
 * before the daemon hears of it, so that nothing runs twice, no matter what dies when. Setting
 * the record back to pending is a new wish, and so is another command in one that waits: its
 * key ends with a digest of the command, for nobody may be there when it is changed. */
struct cq_job {
    /* As the file has it, without the end of the line; NULL: none yet, or no more. */
    char *text;
    size_t text_len;
    char *command; /* NULL: this is no record; the line is kept as it stands */
    char key[CQ_KEY_SIZE];
    enum cq_status status;
    enum cq_status noted; /* what its history says last; CQ_STATUSES: nothing */
    bool dirty;           /* we know more than the text says */
    bool unsure;          /* it was running when it was read: does it, and whose is it? */
    bool foreign;         /* it runs without the daemon: begun by the original */
    bool gone;            /* its line was removed while it ran */
    bool in_file;         /* so it was when the file was last read or written */
    bool in_pass;         /* found, while the file is read */
    int64_t id;           /* the daemon's; 0: none */
    int64_t pid;          /* 0: none */
    int64_t gpu;          /* -1: none */
    int64_t began_us;     /* what the record says of that; 0: nothing */
    int64_t start_us;     /* what the daemon says of it; 0: has not started */
    int64_t exit_code;
    bool exit_known;
    char *log;       /* below log_dir, else by its whole name; NULL: not chosen yet */
    json_t *changes; /* what its history gets */
    UT_hash_handle by_text, by_key;
};

struct cudaq;

/* What a line says; says so, once, when that is no record. */
struct cq_job *cq_job_read(const struct cudaq *q, const char *line, size_t n);
struct cq_job *cq_job_new(const char *command);
/* Its line with what we know; the caller frees it. */
char *cq_job_render(const struct cudaq *q, const struct cq_job *job);
/* Its history has it from that time on. */
void cq_job_set(struct cudaq *q, struct cq_job *job, enum cq_status status, int64_t at_us);
void cq_job_changed(struct cudaq *q, struct cq_job *job); /* it is to be written */
void cq_job_forget_run(struct cudaq *q, struct cq_job *job);
void cq_job_free(struct cq_job *job);
/* A key that none has yet, for the command that it has. */
void cq_job_name(struct cudaq *q, struct cq_job *job);
/* It has the key of another command. */
bool cq_job_is_renamed(const struct cq_job *job);

/* --- cudaq_jobs.c, cudaq_old.c --- */

#define CQ_OLD_MAX    16
#define CQ_OLD_BEFORE 64

/* A file that ours has replaced; a program that had it open may still write into it. */
struct cq_old {
    int fd;
    off_t read_to;              /* what lies before is in ours */
    char before[CQ_OLD_BEFORE]; /* the last bytes of that */
    size_t n_before;
    int64_t since_us;
};

struct cudaq {
    struct cq_config config;
    struct compat_session session;
    struct cq_job **lines; /* in the file's order; new ones behind; owned */
    size_t n, cap;
    size_t count[CQ_STATUSES];
    struct cq_job *texts, *keys;
    json_t *commands; /* of records and of the commands file that have been seen */
    size_t tail_len;  /* of an incomplete last line, which is left to its writer */
    struct stat mark; /* of the file as it was read */
    struct stat commands_mark;
    struct cq_old old[CQ_OLD_MAX];
    int n_old;
    char *log_root, *jobs_path; /* absolute */
    int64_t key_base;
    unsigned n_keys;
    struct compat_cards cards;
    bool dirty, sync_due, leaving;
    bool assigned;    /* something was, since it was last said that nothing can be */
    int64_t dirty_us; /* since when it is */
    int64_t save_due_us, save_pause_us, say_due_us, old_due_us, round_due_us,
        retry_us;       /* 0: not due */
    char *complaint;    /* the last, which is not repeated */
    int64_t log_second; /* of the last name of a log, and how many it has given */
    int n_in_second;
};

/* Reads the file if it has changed; what we know and it does not yet, stays. */
int cq_jobs_load(struct cudaq *q, struct err *e);
/* Merges what is dirty into the file as it is now, and replaces it. */
int cq_jobs_save(struct cudaq *q, struct err *e);
/* Commands that are seen for the first time and that no record has become records that wait. */
int cq_commands_load(struct cudaq *q, struct err *e);
void cq_jobs_free(struct cudaq *q);

/* Lines that have come by another way; they are to be written. */
void cq_jobs_add(struct cudaq *q, const char *text, size_t n);

/* From here to the end, appended to out. */
int cq_read_from(int fd, off_t from, struct buf *out);
/* Takes over fd, of a file whose first read_to bytes are in ours. */
void cq_old_keep(struct cudaq *q, int fd, off_t read_to);
/* Carries over what has been written into them since. */
void cq_old_look(struct cudaq *q);

/* --- cudaq_queue.c --- */

void cq_find_places(struct cudaq *q); /* their whole names */
/* As struct compat_front calls them. */
bool cq_fill_request(void *cudaq, void *cq_job, struct request *r);
enum compat_found cq_found(void *cudaq, void *cq_job, const char *state);
void cq_known(void *cudaq, void *cq_job, const char *state);
int cq_sync(struct cudaq *q, struct err *e); /* sends the daemon what waits */
/* Asks it about what was running (unsure) when its record was read or the daemon was heard of
 * last. */
int cq_recall(struct cudaq *q, struct err *e);
void cq_doubt(struct cudaq *q); /* there may be another daemon, to which all is sent again */
void cq_look_at_foreign(struct cudaq *q); /* processes that the original began */
bool cq_has_cards(const struct cudaq *q);
bool cq_fits_somewhere(const struct cudaq *q);
int cq_stop(void *cudaq, struct err *e); /* takes out what waits, ends what runs */
bool cq_any_running(const void *cudaq);

/* --- cudaq_events.c --- */

void cq_take_events(void *cudaq);
/* The job as it is now. A job with another key is not the record's any more. */
void cq_take_object(void *cudaq, void *cq_job, const json_t *object);

/* --- cudaq_status.c --- */

/* Prints it; the exit status. -1 with e. */
int cq_status(struct cudaq *q, struct err *e);

#endif
