/* The words of the event stream and of answers: writers of JSON about jobs. */
#ifndef DAEMON_TURN_EVENT_TEXT_H
#define DAEMON_TURN_EVENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attempt;
struct buf;
struct daemon;
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

void event_submitted(struct daemon *d, const struct job *job);
void event_started(struct daemon *d, const struct job *job);
void event_ended(struct daemon *d, const struct job *job);
void event_requeued(struct daemon *d, const struct job *job, int32_t vram_mib_old);
/* It was sent its warning signal, so long before its limit. */
void event_warned(struct daemon *d, const struct job *job);
/* Somebody sent it a signal. */
void event_signalled(struct daemon *d, const struct job *job, int sig, const char *by);
/* Somebody is attached to it, or no longer. */
void event_attached(struct daemon *d, const struct job *job, bool came, uint32_t uid,
                    bool types);
/* held, released, updated, removed, cancelled: a kind and perhaps who */
void event_plain(struct daemon *d, const char *kind, const struct job *job, const char *by);
/* Not stored: its command has been executed, and as which process, for followers. */
void event_launched(struct daemon *d, const struct job *job, int64_t at_us);
/* Not stored: why a new job waits, for followers. */
void event_waiting(struct daemon *d, const struct job *job);

/* The whole line of a stored event: its object with seq, at_us, kind and job in front. */
void event_line(const struct store_event *row, struct buf *out);

#endif
