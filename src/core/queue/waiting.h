/* How many jobs and tasks wait, in all and of each user, and how much text each user's jobs
 * keep: what limits and the fair share ask. queue.c keeps it. */
#ifndef CORE_QUEUE_WAITING_H
#define CORE_QUEUE_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct waiting_user {
    uint32_t uid;
    int64_t n;
    int64_t text; /* bytes (request_text_bytes) of all in the queue, also of those that run */
    int64_t envs; /* bytes of their environments, each distinct one counted once */
};

struct waiting_env; /* one that some of a user's jobs have */

struct waiting {
    struct waiting_user *users; /* owned; all users who ever had some, by uid, ascending */
    size_t n_users, cap_users;
    struct waiting_env *envs; /* owned; a table */
    int64_t total, held;      /* of the first, how many are held */
};

void waiting_free(struct waiting *w); /* what it owns */

/* n more, or less. */
void waiting_add(struct waiting *w, uint32_t uid, int64_t n, bool held);
void waiting_add_text(struct waiting *w, uint32_t uid, int64_t bytes);
/* One more, or one fewer, of the user's jobs has this environment, which has this many
 * bytes. */
void waiting_add_env(struct waiting *w, uint32_t uid, int64_t env, int64_t bytes);
void waiting_drop_env(struct waiting *w, uint32_t uid, int64_t env);
int64_t waiting_envs_of(const struct waiting *w, uint32_t uid);
bool waiting_has_env(const struct waiting *w, uint32_t uid, int64_t env);
int64_t waiting_of(const struct waiting *w, uint32_t uid);
int64_t waiting_text_of(const struct waiting *w, uint32_t uid);

#endif
