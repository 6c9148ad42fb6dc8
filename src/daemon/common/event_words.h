/* JSON about jobs that events and answers share. */
#ifndef DAEMON_COMMON_EVENT_WORDS_H
#define DAEMON_COMMON_EVENT_WORDS_H

#include <stddef.h>

struct attempt;
struct job;
struct jsonw;

/* The largest number of bytes, up to n and max (<= 0: no maximum), that ends at a
 * character boundary. */
size_t events_cut(const char *s, size_t n, int max);

/* Writes the command as one string; max > 0: cut as by events_cut. */
void events_write_command(struct jsonw *w, const struct job *job, int max);
/* "peak_mib": {"0": n, ...} */
void events_write_peaks(struct jsonw *w, const struct attempt *run);
/* "gpus": [indices] */
void events_write_gpus(struct jsonw *w, const struct attempt *run);

#endif
