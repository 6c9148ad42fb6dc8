/* The end of a job's log for `berth top`, read with the viewer's own rights. */
#ifndef CLI_TOP_TOP_LOG_H
#define CLI_TOP_TOP_LOG_H

#include <stdbool.h>

struct top;

struct top_log_file;

struct top_log_file *top_log_new(void);
void top_log_free(struct top_log_file *f);

/* Becomes readable when the log has grown; -1: the log cannot be watched. */
int top_log_fd(const struct top_log_file *f);

/* Loads the log of the selected job into t if it is another one or has changed. True: it was
 * loaded. */
bool top_log_update(struct top_log_file *f, struct top *t);

/* Leaves what a terminal would show of a line: removes escape sequences and overwritten text.
 * Changes s in place. */
void top_log_clean(char *s);

#endif
