/* Times, durations and other texts in Slurm's form. Pure except for the local time zone. */
#ifndef COMPAT_SLURM_SLURM_WORDS_H
#define COMPAT_SLURM_SLURM_WORDS_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

#define SLURM_TIME 32 /* buffer size for a time or a duration */

/* "2026-03-01T14:02:10" in local time. Returns out. */
char *slurm_time(int64_t wall_us, char out[SLURM_TIME]);
/* Append the same, or `otherwise` if wall_us is 0. */
void slurm_add_time(struct buf *out, int64_t wall_us, const char *otherwise);
/* "1:02", "3:00:01", "2-00:00:00", as in squeue. Returns out. */
char *slurm_short_duration(int64_t ms, char out[SLURM_TIME]);
/* "00:01:02", "2-00:00:00", as in sacct and scontrol. Returns out. */
char *slurm_duration(int64_t ms, char out[SLURM_TIME]);
/* "8000M", "4G": in the largest unit that keeps it exact. */
void slurm_add_mib(struct buf *out, int64_t mib);

/* "Mon Nov 23 06:59:55 2026": the line above long tables. */
void slurm_add_date(struct buf *out);

/* True if the comma-separated list contains word. */
bool slurm_is_listed(const char *list, const char *word);
bool slurm_is_listed_anyhow(const char *list, const char *word); /* ignoring case */

/* True if a flag's variable, such as SBATCH_WAIT, is set by this value: "", "yes", or a number
 * other than 0. */
bool slurm_is_yes(const char *value);

/* Parse sacct's forms "now", "now-2hours", "today", "noon", "16:00", "11/23", "2026-11-23",
 * "2026-11-23T14:00" into wall time in microseconds. ERR_USAGE. */
int slurm_read_time(const char *text, int64_t *out_us, struct err *e);

#endif
