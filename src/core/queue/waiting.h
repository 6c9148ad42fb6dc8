/* Counts for limits and fair share: pending jobs and tasks, in all and per user, and the size
 * of each user's texts and environments. Kept by queue.c. */
#ifndef CORE_QUEUE_WAITING_H
#define CORE_QUEUE_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct waiting_user {
    uint32_t uid;
    int64_t n;
    int64_t text; /* bytes (request_text_bytes) of all jobs in the queue, also running ones */
    int64_t envs; /* bytes of their environments, each distinct one counted once */
};

struct waiting_env; /* an environment of some of a user's jobs */

struct waiting {
    struct waiting_user *users; /* owned; all users who ever had a job, sorted by uid */
    size_t n_users, cap_users;
    struct waiting_env *envs; /* owned; a hash table */
    int64_t total, held;      /* pending in all; how many of them are held */
};

void waiting_free(struct waiting *w); /* frees the contents */

/* Adds n, which may be negative. */
void waiting_add(struct waiting *w, uint32_t uid, int64_t n, bool held);
void waiting_add_text(struct waiting *w, uint32_t uid, int64_t bytes);
/* One more, or one fewer, of the user's jobs has this environment of this many bytes. */
void waiting_add_env(struct waiting *w, uint32_t uid, int64_t env, int64_t bytes);
void waiting_drop_env(struct waiting *w, uint32_t uid, int64_t env);
int64_t waiting_envs_of(const struct waiting *w, uint32_t uid);
bool waiting_has_env(const struct waiting *w, uint32_t uid, int64_t env);
int64_t waiting_of(const struct waiting *w, uint32_t uid);
int64_t waiting_text_of(const struct waiting *w, uint32_t uid);

#endif
