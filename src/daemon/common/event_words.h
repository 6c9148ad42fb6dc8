/* What events and answers have in common: writers of JSON about jobs. */
#ifndef DAEMON_COMMON_EVENT_WORDS_H
#define DAEMON_COMMON_EVENT_WORDS_H

#include <stddef.h>

struct attempt;
struct buf;
struct job;
struct jsonw;
struct store_event;

/* How many of these n bytes there are up to max (<= 0: all), at a character's border. */
size_t events_cut(const char *s, size_t n, int max);

/* The command as one string; max > 0 cuts it there, at a character's border. */
void events_write_command(struct jsonw *w, const struct job *job, int max);
/* "peak_mib": {"0": n, ...} */
void events_write_peaks(struct jsonw *w, const struct attempt *run);
/* "gpus": [indices] */
void events_write_gpus(struct jsonw *w, const struct attempt *run);

/* The whole line of a stored event: its object with seq, at_us, kind and job in front. */
void event_line(const struct store_event *row, struct buf *out);

#endif
