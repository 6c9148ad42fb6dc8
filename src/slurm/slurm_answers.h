/* What Slurm's commands print, read. Pure. */
#ifndef SLURM_SLURM_ANSWERS_H
#define SLURM_SLURM_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

/* The argument of squeue's --format that slurm_read_job reads; the header line that it makes is
 * the sign that squeue succeeded, with or without jobs. Times are seconds since 1970 with
 * SLURM_TIMES in its environment. */
#define SLURM_FORMAT "%F|%K|%T|%N|%r|%S|%k"
#define SLURM_HEADER "ARRAY_JOB_ID|"
#define SLURM_TIMES  "SLURM_TIME_FORMAT=%s"
#define SLURM_MARK   "berth:" /* in front of the key, in a job's comment */

/* A job as squeue lists it. Texts point into the line, which is cut up. */
struct slurm_job {
    const char *array; /* its number, or its array's */
    int32_t index;     /* in that array; 0: it is none */
    bool is_task;
    const char *state; /* "PENDING" */
    const char *node;
    const char *reason; /* "Resources"; "None" */
    int64_t start_s;    /* wall clock: when it began, or may begin; 0: not known */
    const char *key;    /* behind SLURM_MARK */
};

/* A line of squeue without its end. False: it is not a job of ours. */
bool slurm_read_job(char *line, struct slurm_job *out);

/* What the state says of a job: it may run yet, it runs (also where it is on its way out), or
 * it will not any more. */
enum slurm_phase { SLURM_WAITS, SLURM_RUNS, SLURM_IS_OVER };
enum slurm_phase slurm_phase_of(const char *state);

/* Why a job waits, in words, after Slurm's own name for it: "Resources", "too few are free".
 * NULL: that name says it all. */
const char *slurm_reason_words(const char *reason);

/* The number that sbatch --parsable printed ("123", "123;cluster"); cut out of text. NULL: it
 * is no number. */
const char *slurm_read_id(char *text);

/* What sbatch says of a job that it did not take. */
enum slurm_refusal {
    SLURM_UNKNOWN, /* whether it was taken is not known */
    SLURM_LATER,   /* it was not; the same may be taken another time */
    SLURM_NEVER,   /* nor will it be */
};
enum slurm_refusal slurm_refusal_of(const char *words);
/* Parts of what sbatch says where the job may have been sent before something went wrong. Up to
 * NULL. */
extern const char *const slurm_unsure_words[];

/* Whether it is SLURM_LATER for a limit on this user's or account's jobs: then fewer of them
 * may be taken, and others are not concerned. */
bool slurm_is_limit(const char *words);

#endif
