/* One line a fact: "2026-03-01T14:02:10.123Z info job=12 event=started gpu=0". To stderr
 * until log_open names a file. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

struct err;

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

int log_open(const char *path, struct err *e); /* appends; O_CLOEXEC */
void log_set_level(enum log_level level);
void log_set_program(const char *name); /* goes in front of every line on stderr */

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
