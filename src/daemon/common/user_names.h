/* Names of users by uid. A directory service may answer slowly, so a thread queries it and the
 * answers are cached. The same holds for the users and the group named in the settings, except
 * at start-up, when they are looked up synchronously (settings_names.c). The loop waits a
 * quarter of a second for a name; after a timeout it does not wait again for a minute, and
 * daemon_user_name returns uid:N meanwhile. */
#ifndef DAEMON_COMMON_USER_NAMES_H
#define DAEMON_COMMON_USER_NAMES_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct job;

/* Called when answers have arrived. ids_differ: users or groups named in the settings have
 * other ids than before. */
typedef void (*users_answered_fn)(void *arg, bool ids_differ);

/* Call before any other function here. */
void users_start(uv_loop_t *loop, users_answered_fn answered, void *arg);
void users_close(void); /* its handle; a thread that still waits ends with the process */

/* True if a user's requests can be served: the name is known or does not exist, or the lookup
 * takes longer than people wait. Otherwise the lookup is under way. */
bool users_is_settled(uid_t uid);

/* users_uid: the last known uid of a user named in the settings. 1: found; 0: no such user;
 * -1: not answered yet. users_ask_uid: starts a lookup; rules_take is called when all lookups
 * are answered and something has changed. users_find_uid: looks the name up synchronously. */
int users_uid(const char *name, uid_t *uid);
void users_ask_uid(const char *name);
void users_find_uid(const char *name);

/* The same for a group. users_gid: false: there is none, or it is not known yet. */
bool users_gid(const char *name, gid_t *gid);
void users_ask_gid(const char *name);
void users_find_gid(const char *name);

/* NULL: unknown, or not known yet. */
const char *users_name(uid_t uid);

/* The cached name of a user; "uid:N" if there is none. Borrowed. */
const char *daemon_user_name(uid_t uid);
/* The same, but an unknown name (such as of a removed account) is replaced by the one kept
 * with a job of that user, if any. */
const char *daemon_name_of(uid_t uid, const char *kept);
const char *daemon_owner_name(const struct job *job);

#endif
