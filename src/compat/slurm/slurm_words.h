/* Times, durations and other words as Slurm writes them. Pure but for the local time zone. */
#ifndef COMPAT_SLURM_SLURM_WORDS_H
#define COMPAT_SLURM_SLURM_WORDS_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

#define SLURM_TIME 32 /* bytes of a time or a duration as text */

/* "2026-03-01T14:02:10", in local time. Returns out. */
char *slurm_time(int64_t wall_us, char out[SLURM_TIME]);
/* The same, or otherwise for 0. Appends. */
void slurm_add_time(struct buf *out, int64_t wall_us, const char *otherwise);
/* "1:02", "3:00:01", "2-00:00:00": squeue. Returns out. */
char *slurm_short_duration(int64_t ms, char out[SLURM_TIME]);
/* "00:01:02", "2-00:00:00": sacct and scontrol. Returns out. */
char *slurm_duration(int64_t ms, char out[SLURM_TIME]);
/* "8000M", "4G": a size as it was meant. */
void slurm_add_mib(struct buf *out, int64_t mib);

/* "Mon Nov 23 06:59:55 2026", a line: it stands above the long form of tables. */
void slurm_add_date(struct buf *out);

/* Whether word is one of a list with commas. */
bool slurm_is_listed(const char *list, const char *word);
bool slurm_is_listed_anyhow(const char *list, const char *word); /* in any case */

/* Whether the value of a variable for an option without one, SBATCH_WAIT, sets that: "", "yes",
 * a number other than 0. */
bool slurm_is_yes(const char *value);

/* "now", "now-2hours", "today", "noon", "16:00", "11/23", "2026-11-23", "2026-11-23T14:00" as
 * sacct takes them: wall time in microseconds. ERR_USAGE. */
int slurm_read_time(const char *text, int64_t *out_us, struct err *e);

#endif
