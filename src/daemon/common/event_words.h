/* What events and answers have in common: writers of JSON about jobs. */
#ifndef DAEMON_COMMON_EVENT_WORDS_H
#define DAEMON_COMMON_EVENT_WORDS_H

#include <stddef.h>

struct attempt;
struct job;
struct jsonw;

/* How many of these n bytes there are up to max (<= 0: all), at a character's border. */
size_t events_cut(const char *s, size_t n, int max);

/* The command as one string; max > 0 cuts it there, at a character's border. */
void events_write_command(struct jsonw *w, const struct job *job, int max);
/* "peak_mib": {"0": n, ...} */
void events_write_peaks(struct jsonw *w, const struct attempt *run);
/* "gpus": [indices] */
void events_write_gpus(struct jsonw *w, const struct attempt *run);

#endif
