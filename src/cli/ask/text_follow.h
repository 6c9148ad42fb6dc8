/* A file that grows, shown on standard output: a job's log, the daemon's. */
#ifndef CLI_ASK_TEXT_FOLLOW_H
#define CLI_ASK_TEXT_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct textfile {
    const char *path; /* borrowed */
    const char *user; /* borrowed; root reads it with this user's rights; NULL: with its own */
    int fd;           /* -1: it is not there yet */
    off_t at;         /* shown so far */
    bool broken;      /* standard output is gone */
};
#define TEXTFILE_INIT(name)                                                                    \
    {                                                                                          \
        .path = (name), .fd = -1                                                               \
    }
#define auto_textfile __attribute__((cleanup(textfile_close)))
void textfile_close(struct textfile *f);

/* 0 also when there is no such file yet. tail > 0: only its last `tail` lines will be
 * shown. */
int textfile_open(struct textfile *f, int64_t tail, struct err *e);

/* Shows what has come since. */
int textfile_copy(struct textfile *f, struct err *e);

/* Whether another file has taken its name; then this one is at its end once it is copied. */
bool textfile_is_replaced(const struct textfile *f);

/* A descriptor of inotify for the folder that it lies in, the caller's; -1. */
int textfile_watch(const char *path, struct err *e);
void textfile_drain(int watch); /* discards pending notifications */

#endif
