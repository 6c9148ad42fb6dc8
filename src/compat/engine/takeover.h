/* Keeps a second process off a front end's files, and finds jobs that its last run left with
 * another daemon than the current one: sent again, they would run twice. */
#ifndef COMPAT_ENGINE_TAKEOVER_H
#define COMPAT_ENGINE_TAKEOVER_H

struct client;
struct err;

/* Take the lock (file_lock). Returns the descriptor; -1 with e, which has held_words if
 * another process holds it. */
int compat_lock(const char *lock, struct err *e, const char *held_words, ...)
    __attribute__((format(printf, 3, 4)));

/* Fail if this user has pending or running jobs with the daemon `then` (NULL: none) whose
 * field is, or contains, value. Succeeds if then and now are the same daemon. */
int compat_check_left(struct client *then, const struct client *now, const char *field,
                      const char *value, struct err *e);

/* The same for the jobs of this file, with the daemon noted in the lock (a descriptor); then
 * note the current daemon there. */
int compat_take_over(int lock, const struct client *now, const char *file, struct err *e);

/* The daemon noted in the lock at this path, if it is running; otherwise NULL. Starts none. */
struct client *compat_find_left(const char *lock);

#endif
