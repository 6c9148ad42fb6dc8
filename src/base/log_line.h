/* Formats a log line in each of the log's formats, from the caller's text. */
#ifndef BASE_LOG_LINE_H
#define BASE_LOG_LINE_H

#include <stddef.h>
#include <stdint.h>

struct buf;

/* Attributes of a line besides its text. */
struct log_stamp {
    int64_t at_us;
    const char *level;
    const char *program; /* "": omitted */
    int priority;        /* syslog's: 3 (error) to 7 (debug) */
};

/* "2026-03-01T14:02:10.123Z info job=12 event=started\n" */
void log_line_text(const struct log_stamp *s, const char *words, size_t n, struct buf *out);
/* {"time":"...","level":"info","job":12,"event":"started","text":"the sentence"}\n */
void log_line_json(const struct log_stamp *s, const char *words, size_t n, struct buf *out);
/* A journal datagram: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, and one BERTH_KEY field per key.
 * See https://systemd.io/JOURNAL_NATIVE_PROTOCOL. */
void log_line_journal(const struct log_stamp *s, const char *words, size_t n, struct buf *out);

#endif
