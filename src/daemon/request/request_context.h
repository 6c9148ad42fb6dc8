/* What the jobs of one request share: cwd, umask, environment and resource limits of
 * the client. */
#ifndef DAEMON_REQUEST_REQUEST_CONTEXT_H
#define DAEMON_REQUEST_REQUEST_CONTEXT_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/rlimits.h"

struct admission;
struct caller;
struct err;
struct job;

/* Where and as which user the jobs of one request run. */
struct reqcontext {
    const char *cwd;  /* borrowed from params */
    const char *user; /* borrowed, for one piece of the request; NULL: not known yet */
    int32_t umask_bits;
    int64_t env, env_bytes;
    char rlimits[RLIMITS_TEXT_MAX]; /* of the calling process, read from the kernel */
};
int reqcontext_read(const struct admission *a, const struct caller *c, const json_t *params,
                    struct reqcontext *out, struct err *e);
/* Refuses the environment if the user's jobs have too many already. */
int reqcontext_check_room(const struct admission *a, uid_t uid, const struct reqcontext *ctx,
                          struct err *e);
void reqcontext_apply(const struct reqcontext *ctx, struct job *job);

#endif
