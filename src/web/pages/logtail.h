/* The end of a job's log, read with this process's own rights in a thread of its own (a file
 * server may not respond), and cleaned for display. Only a regular file owned by the job's
 * user is read, because a job can name any path as its log. */
#ifndef WEB_PAGES_LOGTAIL_H
#define WEB_PAGES_LOGTAIL_H

#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

struct buf;
struct reading;
struct reply;

struct logtail {
    uv_loop_t *loop;
    int n_reading;
};

/* reply: borrowed. Called once, in the loop. */
typedef void (*logtail_fn)(void *ctx, struct reply *reply);

/* NULL: too many reads are in progress, and fn will not be called. */
struct reading *logtail_read(struct logtail *t, const char *path, uid_t owner, size_t bytes,
                             logtail_fn fn, void *ctx);
/* The visitor has left; fn will not be called. */
void logtail_forget(struct reading *r);

/* Text as a terminal would show it: without colours and other sequences, with only the last
 * state of a line that was overwritten; control bytes and invalid UTF-8 become U+FFFD. */
void logtail_clean(const char *s, size_t n, struct buf *out);

#endif
