/* Prints a growing file to standard output: a job's log, the daemon's. */
#ifndef CLI_ASK_TEXT_FOLLOW_H
#define CLI_ASK_TEXT_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct textfile {
    const char *path; /* borrowed */
    const char *user; /* borrowed; root reads with this user's rights; NULL: with its own */
    int fd;           /* -1: the file does not exist yet */
    off_t at;         /* offset up to which it has been printed */
    char shown[64];   /* the last n_shown bytes printed */
    size_t n_shown;
    int64_t unclear_us; /* since when the content differs, unexplained; 0: it matches */
    bool is_final;      /* nothing more will be written, so no explanation will come */
    bool is_watched;    /* every change is notified */
    bool broken;        /* standard output is closed */
};
#define TEXTFILE_INIT(name)                                                                    \
    {                                                                                          \
        .path = (name), .fd = -1                                                               \
    }
#define auto_textfile __attribute__((cleanup(textfile_close)))
void textfile_close(struct textfile *f);

/* 0 also if the file does not exist yet. tail > 0: prints only its last `tail` lines. */
int textfile_open(struct textfile *f, int64_t tail, struct err *e);

/* Prints what was added since. If the log's middle was cut out, continues after the cut; if
 * the log was restarted, prints it from the beginning. */
int textfile_copy(struct textfile *f, struct err *e);

/* Call before reading the open file from `at` on: if the file no longer matches what was
 * printed, sets `at` to where to continue, after the cut or else at the beginning. False: the
 * reason is not known yet, so do not read now; call again a second later, or with is_final. */
bool textfile_place(struct textfile *f);
/* Records that these n > 0 bytes, from `at` on, have been printed. */
void textfile_shown(struct textfile *f, const char *bytes, size_t n);

/* True if another file has replaced it by name; then this one ends once it is copied. */
bool textfile_is_replaced(const struct textfile *f);

/* An inotify descriptor, owned by the caller; -1. */
int textfile_notify(const struct textfile *f, struct err *e);
/* Watches the folder that contains the file; call it before each look at the file. */
void textfile_watch(struct textfile *f, int notify);
/* How long the last look remains valid, in ms. -1: until a notification; a timeout where
 * changes are not notified: the folder does not exist yet or is not on this machine, or the
 * reason of a mismatch is still unknown. */
int textfile_wait_ms(const struct textfile *f);
void textfile_drain(int notify); /* discards pending notifications */

#endif
