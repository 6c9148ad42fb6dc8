/* What script.c and the files of sbatch share. No other file includes it. */
#ifndef SPEC_SCRIPT_PRIV_H
#define SPEC_SCRIPT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"
#include "spec/script.h"

/* In which way memory was said last. */
enum sbatch_memory { MEMORY_UNSAID, MEMORY_OF_JOB, MEMORY_PER_CPU, MEMORY_PER_GPU };

/* What #SBATCH lines say together, or what is to be settled once all are read. */
struct sbatch {
    struct request *r;
    const struct request *over; /* what overrides it in the end; NULL: nothing */
    struct script *out;
    const struct when_clock *clock;
    enum sbatch_memory memory;
    int64_t mem_per_cpu, mem_per_gpu;                   /* MiB; 0: not said */
    int64_t cpus_per_gpu, cpus_per_task, gpus_per_task; /* 0: not said, also of tasks */
    int64_t gpus_of_job;                                /* of --gpus; 0: not said */
    int64_t ntasks, ntasks_per_node;
    int mem_line, cpus_line, tasks_line, each_line;
    int line, row;                 /* that is being read */
    bool is_variable;              /* it is in the environment instead */
    int type_row;                  /* of the option that named a type of GPU last */
    char constraint[GPU_TYPE_MAX]; /* of --constraint, a type of GPU; "": none */
    int constraint_line, exclusive_line;
    const char *host; /* this machine's name; NULL: not known */
    bool cpus_of_job; /* said outright, not by the task */
    bool exclusive;   /* was said, and is to be settled */
    bool bare;        /* without a word for GPUs it has none */
};

/* 0; -1 with e: the value is bad; 1 with e: it cannot be honoured, and why. */
int sbatch_apply(struct sbatch *s, int i, const char *value, int line, struct err *e);

/* An attribute was said outright, and replaces what was said by the core, GPU or task. */
void sbatch_replace(struct sbatch *s, const char *attr);

/* After the last line (sbatch_finish.c). *line: where it was said. As sbatch_apply; is called
 * until it is 0. */
int sbatch_finish(struct sbatch *s, int *line, const char **what, struct err *e);

/* Why something cannot be honoured. Returns 1. */
int sbatch_refuse(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* An attribute's value, as it is. 0, or -1 with e. */
int sbatch_set(struct sbatch *s, const char *attr, const char *value, struct err *e);

/* Values of options (sbatch_values.c); as sbatch_apply. */
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

/* afterok:12:13_2,afterany:14 in the place of what the job waited for; as sbatch_apply. */
int sbatch_set_deps(struct sbatch *s, const char *value, struct err *e);

/* For messages: a note about a line, and an ignored option; one line names all of those. */
void script_note(struct script *s, int line, const char *words);
void script_ignore(struct script *s, const char *option);
void script_add_variable(struct script *s, char *entry); /* takes it over */

#endif
