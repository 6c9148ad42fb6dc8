/* Stored format of the counts in counters.c. */
#ifndef DAEMON_COMMON_COUNTERS_NOTE_H
#define DAEMON_COMMON_COUNTERS_NOTE_H

struct buf;
struct tally_jobs;

void tally_note_write(const struct tally_jobs *j, struct buf *out); /* appends */
/* Reads into counts whose histograms have their bounds set; -1 if the text is invalid. */
int tally_note_read(const char *text, struct tally_jobs *j);

#endif
