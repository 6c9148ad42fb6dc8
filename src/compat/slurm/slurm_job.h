/* A Berth job as Slurm's commands see it, and lists of such jobs. */
#ifndef COMPAT_SLURM_SLURM_JOB_H
#define COMPAT_SLURM_SLURM_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct client;
struct err;

/* A Slurm state. Several Berth states may map to the same one. */
struct slurm_state {
    const char *berth, *name, *code; /* "HELD", "PENDING", "PD" */
    bool ended;
};

/* True if word is the state's long or short name, ignoring case. */
bool slurm_state_is(const struct slurm_state *s, const char *word);
/* Compare by Slurm's state number; different Berth states may be equal. */
int slurm_states_compare(const struct slurm_state *a, const struct slurm_state *b);
/* True if the comma-separated list contains the state or "all". */
bool slurm_state_is_listed(const struct slurm_state *s, const char *list);
/* True if Slurm has a state of this name. */
bool slurm_is_state(const char *word);
/* True if the comma-separated list contains "all" or a state of ended jobs. */
bool slurm_names_ended(const char *list);
/* Append all names: "PENDING,RUNNING,...". */
void slurm_add_states(struct buf *out);

struct slurm_job {
    json_t *json; /* owned; the daemon's object */
    const struct slurm_state *state;
    int64_t id;
    bool is_array; /* an array row, for its tasks that are not jobs of their own */
    int64_t array; /* 0: neither an array nor a task */
    int32_t task;  /* -1: not a task */
    char *tasks;   /* owned; pending tasks of an array: "2-9%2" */
    int64_t submitted_us, started_us, ended_us; /* 0: not yet */
    int64_t run_ms, limit_ms;                   /* 0: has not run; no limit */
};

struct slurm_jobs {
    struct slurm_job *at; /* owned */
    size_t n, cap;
};

#define auto_slurm_jobs __attribute__((cleanup(slurm_jobs_free)))
void slurm_jobs_free(struct slurm_jobs *list);

/* How many fields are requested per job. */
enum slurm_detail {
    SLURM_BRIEF, /* the default columns of squeue */
    SLURM_WHOLE,
    SLURM_FORECAST, /* also expected starts of pending jobs */
};

struct slurm_wish {
    json_t *select;   /* borrowed; list of selectors; NULL: all jobs */
    bool ended;       /* also ended jobs */
    int64_t since_us; /* only jobs that ended at or after this time; 0: all kept */
    enum slurm_detail detail;
};

/* Fetch jobs; each array with pending tasks is one entry. -1 with e: ERR_NO_JOB if no selected
 * job exists. */
int slurm_jobs_ask(struct client *c, const struct slurm_wish *wish, struct slurm_jobs *out,
                   struct err *e);

/* Remove jobs for which keep returns false. */
void slurm_jobs_keep(struct slurm_jobs *list,
                     bool (*keep)(const struct slurm_job *job, const void *arg),
                     const void *arg);
/* Replace each array's entry by one job per pending task. */
void slurm_jobs_split(struct slurm_jobs *list);
/* Sort by number, tasks after their array. */
void slurm_jobs_sort(struct slurm_jobs *list);

/* Parse comma-separated ids in Slurm's form (12, 12_3, 12_[1-4], 12.batch): adds the selectors
 * to ids and, unless steps is NULL, the step name after the dot ("batch" or null) to steps. -1
 * with ERR_USAGE. */
int slurm_read_ids(const char *text, json_t *ids, json_t *steps, struct err *e);
/* True if a selector means this job, by its number or its array's. */
bool slurm_is_named(const struct slurm_job *job, const char *word);

#endif
