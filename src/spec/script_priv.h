/* Shared by script.c and the sbatch files. No other file includes it. */
#ifndef SPEC_SCRIPT_PRIV_H
#define SPEC_SCRIPT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"
#include "spec/script.h"

/* How memory was last specified. */
enum sbatch_memory { MEMORY_UNSAID, MEMORY_OF_JOB, MEMORY_PER_CPU, MEMORY_PER_GPU };

/* State collected from #SBATCH lines, including what can be settled only after all of them. */
struct sbatch {
    struct request *r;
    const struct request *over; /* what will override *r in the end; NULL: nothing */
    struct script *out;
    const struct when_clock *clock;
    enum sbatch_memory memory;
    int64_t mem_per_cpu, mem_per_gpu;                   /* MiB; 0: not set */
    int64_t cpus_per_gpu, cpus_per_task, gpus_per_task; /* 0: not set; the same for tasks */
    int64_t gpus_of_job;                                /* of --gpus; 0: not set */
    int64_t ntasks, ntasks_per_node;
    int mem_line, cpus_line, tasks_line, each_line;
    int line, row;                 /* being read */
    bool is_variable;              /* the option comes from the environment instead */
    int type_row;                  /* row of the option that last named a type of GPU */
    char constraint[GPU_TYPE_MAX]; /* a type of GPU named by --constraint; "": none */
    int constraint_line, exclusive_line;
    const char *host; /* this machine's name; NULL: unknown */
    bool cpus_of_job; /* set for the whole job, not per task */
    bool exclusive;   /* --exclusive was given and must be settled */
    bool bare;        /* a job that does not request GPUs gets none */
};

/* 0; -1 with e: the value is invalid; 1 with e: it cannot be honoured, and why. */
int sbatch_apply(struct sbatch *s, int i, const char *value, int line, struct err *e);

/* Drops values set per core, GPU or task, which an attribute set for the whole job
 * replaces. */
void sbatch_replace(struct sbatch *s, const char *attr);

/* Settles combined options after the last line (sbatch_finish.c). *line: the line of the
 * option. Returns as sbatch_apply; called until it returns 0. */
int sbatch_finish(struct sbatch *s, int *line, const char **what, struct err *e);

/* Sets why something cannot be honoured. Returns 1. */
int sbatch_refuse(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets an attribute to value unchanged. 0, or -1 with e. */
int sbatch_set(struct sbatch *s, const char *attr, const char *value, struct err *e);

/* Values of options (sbatch_values.c). Return as sbatch_apply. */
int sbatch_set_time(struct sbatch *s, const char *value, struct err *e);
int sbatch_set_name(struct sbatch *s, const char *value, struct err *e);
int sbatch_set_comment(struct sbatch *s, const char *value, struct err *e);
int sbatch_set_array(struct sbatch *s, const char *value, struct err *e);
int sbatch_set_nodes_by_name(struct sbatch *s, const char *value, struct err *e);
int sbatch_set_excluded(struct sbatch *s, const char *value, struct err *e);
int sbatch_set_clusters(struct sbatch *s, const char *value, struct err *e);
int sbatch_set_output(struct sbatch *s, const char *value, struct err *e);
int sbatch_set_error(struct sbatch *s, const char *value, struct err *e);
int sbatch_set_input(struct sbatch *s, const char *value, struct err *e);

/* afterok:12:13_2,afterany:14 replaces the job's earlier dependencies. Returns as
 * sbatch_apply. */
int sbatch_set_deps(struct sbatch *s, const char *value, struct err *e);

/* Messages: a note about a line, and an ignored option; one line names all ignored options. */
void script_note(struct script *s, int line, const char *words);
void script_ignore(struct script *s, const char *option);
void script_add_variable(struct script *s, char *entry); /* takes ownership of entry */

#endif
