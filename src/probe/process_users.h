/* Whose process is it? Names for user ids, looked up once each. */
#ifndef PROBE_PROCESS_USERS_H
#define PROBE_PROCESS_USERS_H

#include <stdint.h>

struct users;

struct users *process_users_new(void);
void process_users_free(struct users *u); /* NULL is fine */

/* A message_user_fn over a struct users: the name of the process's user, the bare number
 * for a user without a name, NULL when the process is gone or hidden. Borrowed. */
const char *process_users_of_process(void *users, int32_t pid);

#endif
