/* Parses the output of Slurm's commands. Pure. */
#ifndef SLURM_SLURM_ANSWERS_H
#define SLURM_SLURM_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

/* The --format of squeue that slurm_read_job parses; its header line shows that squeue
 * succeeded, with or without jobs. With SLURM_TIMES in its environment, squeue prints times in
 * seconds since 1970. */
#define SLURM_FORMAT "%F|%K|%T|%N|%r|%S|%k"
#define SLURM_HEADER "ARRAY_JOB_ID|"
#define SLURM_TIMES  "SLURM_TIME_FORMAT=%s"
#define SLURM_MARK   "berth:" /* prefix of the key in a job's comment */

/* A job as squeue lists it. The strings point into the line, which is modified. */
struct slurm_job {
    const char *array; /* its id, or its array's */
    int32_t index;     /* task number in the array; 0: not a task */
    bool is_task;
    const char *state; /* "PENDING" */
    const char *node;
    const char *reason; /* "Resources"; "None" */
    int64_t start_s;    /* wall clock: actual or expected start; 0: unknown */
    const char *key;    /* the text after SLURM_MARK */
};

/* Parses a line of squeue without newline, in place. False: not a job of ours. */
bool slurm_read_job(char *line, struct slurm_job *out);

/* Phase of a job by its state: it may still run, it runs (or is ending), or it will not run
 * any more. */
enum slurm_phase { SLURM_WAITS, SLURM_RUNS, SLURM_IS_OVER };
enum slurm_phase slurm_phase_of(const char *state);

/* Explains Slurm's name for why a job waits: "Resources" becomes "too few are free". NULL: the
 * name needs no explanation. */
const char *slurm_reason_words(const char *reason);

/* Extracts, in place, the id printed by sbatch --parsable ("123", "123;cluster"). NULL: not a
 * number. */
const char *slurm_read_id(char *text);

/* How sbatch failed. */
enum slurm_refusal {
    SLURM_UNKNOWN, /* the job may have been accepted */
    SLURM_LATER,   /* not accepted; the same request may succeed later */
    SLURM_NEVER,   /* not accepted, now or later */
};
enum slurm_refusal slurm_refusal_of(const char *words);
/* Error messages, or parts, after which the job may have been accepted. NULL-terminated. */
extern const char *const slurm_unsure_words[];

/* True if the error is a limit on this user's or account's jobs (SLURM_LATER): a smaller
 * number may be accepted, and other users are not affected. */
bool slurm_is_limit(const char *words);

#endif
