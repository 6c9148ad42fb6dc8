/* The lock that keeps a second process off a front end's files, and jobs that its last run has
 * left with another daemon than the one it works with now: sent to this one too, they would run
 * twice. */
#ifndef COMPAT_ENGINE_TAKEOVER_H
#define COMPAT_ENGINE_TAKEOVER_H

struct client;
struct err;

/* Takes this lock (file_lock). The descriptor; -1 with e: these words where another process has
 * it. */
int compat_lock(const char *lock, struct err *e, const char *held_words, ...)
    __attribute__((format(printf, 3, 4)));

/* Refuses while jobs of this user wait or run with the daemon `then` (NULL: there is none) that
 * have value as, or in, this field of theirs, unless it is the same daemon as now. */
int compat_check_left(struct client *then, const struct client *now, const char *field,
                      const char *value, struct err *e);

/* The same for jobs of this file, by what the last run has noted in its lock, a descriptor; and
 * notes there whose daemon it is from now on. */
int compat_take_over(int lock, const struct client *now, const char *file, struct err *e);

/* The daemon that the lock of this name notes, if it runs: NULL otherwise. It starts none. */
struct client *compat_find_left(const char *lock);

#endif
