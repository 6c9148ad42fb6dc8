/* Trouble of the machine, as against a job's: what keeps commands from being started although
 * there are GPUs for them (no process can be forked, a folder is gone, a disk or a quota is
 * full). Jobs wait meanwhile and are charged with nothing; health says what it is and since
 * when; it is tried again by itself, without a job being used for that. */
#ifndef DAEMON_ATTEMPT_MACHINE_TROUBLE_H
#define DAEMON_ATTEMPT_MACHINE_TROUBLE_H

#include <stdint.h>

struct attempts;
struct limits;

/* limits: the planner's; the users whose jobs cannot be started are named there. */
struct machine *machine_new(struct attempts *a, struct limits *limits);
void machine_close(struct machine *m); /* closes its handles; free after the loop has run */
void machine_free(struct machine *m);

/* A start has met trouble that any other would meet too: nothing is started until a trial of
 * folders and processes succeeds. */
void machine_trouble(struct attempts *a, const char *text);

/* The same of what only this user's jobs would meet; they are tried again after a while. */
void machine_trouble_of(struct attempts *a, uint32_t uid, const char *text);

/* A command of this user's has been started: the next trouble is a new one. */
void machine_started(struct attempts *a, uint32_t uid);

/* An attempt was handed to the nursery: looks in a while whether it is being looked after. */
void machine_launched(struct attempts *a);

/* Words for what keeps everything, or this user's jobs, from starting; NULL: nothing does. */
const char *machine_says(const struct attempts *a);
const char *machine_says_of(const struct attempts *a, uint32_t uid);
int64_t machine_since_us(const struct attempts *a); /* wall clock; with machine_says */

/* Each user whose jobs wait, in no order. */
typedef void (*machine_user_fn)(void *ctx, uint32_t uid, int64_t since_us, const char *text);
void machine_each_user(const struct attempts *a, machine_user_fn fn, void *ctx);

#endif
