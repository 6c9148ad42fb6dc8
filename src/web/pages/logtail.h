/* The end of a job's log, read with this process's own rights on a thread of its own (a file
 * server may be away), and made fit to be shown. Only a plain file that belongs to the job's
 * user is read: what a job calls its log may be any path. */
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

/* NULL: too many are being read, nothing will be called. */
struct reading *logtail_read(struct logtail *t, const char *path, uid_t owner, size_t bytes,
                             logtail_fn fn, void *ctx);
/* The visitor that asked has gone. */
void logtail_forget(struct reading *r);

/* Text as a terminal would have left it: colours and other sequences away, of a line that
 * was drawn over again and again the last state, control bytes and what is not UTF-8 as
 * U+FFFD. */
void logtail_clean(const char *s, size_t n, struct buf *out);

#endif
