/* A job of Berth's as Slurm's commands see it, and lists of them. */
#ifndef COMPAT_SLURM_SLURM_JOB_H
#define COMPAT_SLURM_SLURM_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct client;
struct err;

/* A state in Slurm's words. Several of Berth's states may be one of Slurm's. */
struct slurm_state {
    const char *berth, *name, *code; /* "HELD", "PENDING", "PD" */
    bool ended;
};

/* Whether word is a state's long or short name, in any case, of Slurm. */
bool slurm_state_is(const struct slurm_state *s, const char *word);
/* In the order of Slurm's numbers; several of Berth's states may be equal. */
int slurm_states_compare(const struct slurm_state *a, const struct slurm_state *b);
/* Whether a list with commas names it, or all states. */
bool slurm_state_is_listed(const struct slurm_state *s, const char *list);
/* Whether Slurm has such a state. */
bool slurm_is_state(const char *word);
/* Whether a list with commas names all states, or one that ended jobs have. */
bool slurm_names_ended(const char *list);
/* All of them, "PENDING,RUNNING,...". */
void slurm_add_states(struct buf *out);

struct slurm_job {
    json_t *json; /* owned: what the daemon says of it */
    const struct slurm_state *state;
    int64_t id;
    bool is_array; /* and stands for those of its tasks that are no jobs of their own */
    int64_t array; /* 0: neither an array nor a task of one */
    int32_t task;  /* -1: it is not a task */
    char *tasks;   /* owned; "2-9%2": an array's tasks that wait */
    int64_t submitted_us, started_us, ended_us; /* 0: not yet */
    int64_t run_ms, limit_ms;                   /* 0: not yet, no limit */
};

struct slurm_jobs {
    struct slurm_job *at; /* owned */
    size_t n, cap;
};

#define auto_slurm_jobs __attribute__((cleanup(slurm_jobs_free)))
void slurm_jobs_free(struct slurm_jobs *list);

/* How much is asked of each job. */
enum slurm_detail {
    SLURM_BRIEF, /* what squeue shows where nothing is said */
    SLURM_WHOLE,
    SLURM_FORECAST, /* and when those that wait are expected to start */
};

struct slurm_wish {
    json_t *select;   /* borrowed; words of selectors; NULL: all jobs */
    bool ended;       /* ended ones too */
    int64_t since_us; /* those that ended then or later; 0: all that are kept */
    enum slurm_detail detail;
};

/* Asks for jobs; each array with tasks that wait is one job among them. -1 with e, ERR_NO_JOB
 * when none of those that were selected by number is known. */
int slurm_jobs_ask(struct client *c, const struct slurm_wish *wish, struct slurm_jobs *out,
                   struct err *e);

/* Drops those that keep does not want. */
void slurm_jobs_keep(struct slurm_jobs *list,
                     bool (*keep)(const struct slurm_job *job, const void *arg),
                     const void *arg);
/* In place of each array's waiting tasks a job for each of them. */
void slurm_jobs_split(struct slurm_jobs *list);
/* Arrays and jobs by number, and tasks behind their array. */
void slurm_jobs_sort(struct slurm_jobs *list);

/* Words of a selector: ids as Slurm writes them (12, 12_3, 12_[1-4], 12.batch), separated by
 * commas, into a JSON list; and what stands behind their dots, "batch" or null, into another
 * (NULL: that does not count). ERR_USAGE. */
int slurm_read_ids(const char *text, json_t *ids, json_t *steps, struct err *e);
/* Whether a word of such a list means this job, by its number or that of its array. */
bool slurm_is_named(const struct slurm_job *job, const char *word);

#endif
