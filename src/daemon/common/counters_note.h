/* How counters.c's counts are kept in the store. */
#ifndef DAEMON_COMMON_COUNTERS_NOTE_H
#define DAEMON_COMMON_COUNTERS_NOTE_H

struct buf;
struct tally_jobs;

void tally_note_write(const struct tally_jobs *j, struct buf *out); /* appends */
/* Into counts whose histograms have been given their bounds; -1 when it makes no sense. */
int tally_note_read(const char *text, struct tally_jobs *j);

#endif
