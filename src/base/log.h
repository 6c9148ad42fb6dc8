/* The log: one fact per line, as key=value words followed by a sentence where needed: "job=12
 * event=started gpu=0". It goes to stderr until log_open names a file or log_use_journal finds
 * the journal; as text, or as one JSON object per line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct err;

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* Appends to the file; O_CLOEXEC. If stderr is the same file, it follows later reopens and
 * rotations. */
int log_open(const char *path, struct err *e);
/* Reopens the same path after the file was moved away. No-op without log_open. */
int log_reopen(struct err *e);
const char *log_path(void); /* NULL: logging to stderr or the journal */

/* When the file reaches max_bytes (0: never) it becomes PATH.1, the previous PATH.1 becomes
 * PATH.2, and so on up to `keep` files; the oldest is removed. */
void log_set_rotation(int64_t max_bytes, int keep);

/* If JOURNAL_STREAM says that stderr is connected to the journal, sends lines to the journal's
 * socket instead, with fields, and returns true. */
bool log_use_journal(const char *socket_path);

void log_set_level(enum log_level level);
enum log_level log_get_level(void);
const char *log_level_name(enum log_level level);
int log_level_from_name(const char *name, enum log_level *level); /* 0 or -1 */
void log_set_format(enum log_format format);
void log_set_program(const char *name); /* prefix of every line on stderr */

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
