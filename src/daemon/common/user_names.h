/* Names of users, by number. A directory service may take long to answer, so the loop does not
 * ask it: a thread does, and what it answers is kept. So for the users that the settings name,
 * but at the start, when it is asked for those and for admin_group (roles.c) at once. The loop
 * waits a quarter of a second for it, and when that was not enough, not again for a minute;
 * daemon_user_name says uid:N meanwhile. */
#ifndef DAEMON_COMMON_USER_NAMES_H
#define DAEMON_COMMON_USER_NAMES_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct job;

/* Called when names have come, and with true when users that the settings name have other
 * numbers than was known. */
typedef void (*users_answered_fn)(void *arg, bool uids_differ);

/* Before the first name is wanted. */
void users_start(uv_loop_t *loop, users_answered_fn answered, void *arg);
void users_close(void); /* its handle; a thread that still waits ends with us */

/* Whether a user's requests can be served: its name is known, there is none, or to ask has
 * taken longer than people wait. Else it is being asked for. */
bool users_is_settled(uid_t uid);

/* The uid of a user that the settings name, as it was found last: 1; 0: there is none; -1: that
 * has not been answered yet. ask: has it looked up, and rules_take called when all that were
 * asked for are answered and something is new. find: looks it up at once. */
int users_uid(const char *name, uid_t *uid);
void users_ask_uid(const char *name);
void users_find_uid(const char *name);

/* NULL where it is not known, or not yet. */
const char *users_name(uid_t uid);

/* The name of a user, from the cache; "uid:N" when there is none. Borrowed. */
const char *daemon_user_name(uid_t uid);
/* The same; where it is not known, as of a user whose account has been removed, the one that
 * was kept with a job of that user, if there is one. */
const char *daemon_name_of(uid_t uid, const char *kept);
const char *daemon_owner_name(const struct job *job);

#endif
