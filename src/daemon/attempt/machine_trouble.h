/* Trouble of the machine rather than of a job: what prevents commands from starting although
 * GPUs are free (no process can be forked, a folder is missing, a disk or quota is full). Jobs
 * wait and are not charged; health reports the cause and since when. Recovery is tested by
 * trials, not with jobs. */
#ifndef DAEMON_ATTEMPT_MACHINE_TROUBLE_H
#define DAEMON_ATTEMPT_MACHINE_TROUBLE_H

#include <stdbool.h>
#include <stdint.h>

struct attempts;
struct limits;

/* limits: the planner's; receive the users whose jobs cannot be started. */
struct machine *machine_new(struct attempts *a, struct limits *limits);
void machine_close(struct machine *m); /* closes handles; free after the loop has run */
void machine_free(struct machine *m);

/* A start met trouble that any other start would meet: no job starts until a trial of folders
 * and processes succeeds. */
void machine_trouble(struct attempts *a, const char *text);

/* The same for trouble that affects only this user's jobs; they may try again after
 * a pause. */
void machine_trouble_of(struct attempts *a, uint32_t uid, const char *text);

/* The user's account was not found. False: counts as such trouble, because the user directory
 * may be away. True: no start in ten minutes has found it, without a long pause between any
 * two; its jobs fail. */
bool machine_account_is_gone(struct attempts *a, uint32_t uid, const char *text);

/* A command of this user has started: the next trouble counts as a new one. */
void machine_started(struct attempts *a, uint32_t uid);

/* An attempt was handed to the nursery: checks after a while that it is supervised. */
void machine_launched(struct attempts *a);

/* What prevents all starts, or this user's; NULL: nothing. */
const char *machine_says(const struct attempts *a);
const char *machine_says_of(const struct attempts *a, uint32_t uid);
int64_t machine_since_us(const struct attempts *a); /* wall clock; valid if machine_says */

/* Calls fn for each user whose jobs must wait, in no particular order. */
typedef void (*machine_user_fn)(void *ctx, uint32_t uid, int64_t since_us, const char *text);
void machine_each_user(const struct attempts *a, machine_user_fn fn, void *ctx);

#endif
