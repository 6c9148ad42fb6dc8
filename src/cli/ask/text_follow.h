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
    char shown[64];   /* the end of that, n_shown bytes of it */
    size_t n_shown;
    int64_t unclear_us; /* 0, or since when it is not what was shown, without saying why */
    bool is_final;      /* nothing more will be written, so it will not say so later either */
    bool is_watched;    /* every change is notified */
    bool broken;        /* standard output is gone */
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

/* Shows what has come since. Of a log out of which its middle was cut, what stands behind the
 * cut; one that was begun anew is shown from its beginning. */
int textfile_copy(struct textfile *f, struct err *e);

/* Before the open file is read from `at` on: where it is no longer what was shown, sets `at` to
 * where to go on, behind what was cut out of it, else at the beginning. False: it does not say
 * why yet, so nothing is to be read now; a call a second later or with is_final decides. */
bool textfile_place(struct textfile *f);
/* These n > 0 bytes, from `at` on, have been shown. */
void textfile_shown(struct textfile *f, const char *bytes, size_t n);

/* Whether another file has taken its name; then this one is at its end once it is copied. */
bool textfile_is_replaced(const struct textfile *f);

/* A descriptor of inotify, the caller's; -1. */
int textfile_notify(const struct textfile *f, struct err *e);
/* Has changes in the folder that it lies in notified there; to be called before each look at
 * it. */
void textfile_watch(struct textfile *f, int notify);
/* How long the last look at it will do, in ms: -1, until there is a notification, or less where
 * what happens is not notified: there is no such folder yet, it is not on this machine, or that
 * look left open why the file is no longer what was shown. */
int textfile_wait_ms(const struct textfile *f);
void textfile_drain(int notify); /* discards pending notifications */

#endif
