/* What jobs of one call have in common: cwd, umask, environment and limits of the client. */
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

/* Where and as which user jobs of one call run: cwd, umask and environment of the client. */
struct reqcontext {
    const char *cwd;  /* borrowed from params */
    const char *user; /* borrowed, and for one piece of the request; NULL: not known yet */
    int32_t umask_bits;
    int64_t env, env_bytes;
    char rlimits[RLIMITS_TEXT_MAX]; /* of the process that asks, as the kernel has them */
};
int reqcontext_read(const struct admission *a, const struct caller *c, const json_t *params,
                    struct reqcontext *out, struct err *e);
/* Whether its environment may still be kept with those of the user's jobs. */
int reqcontext_check_room(const struct admission *a, uid_t uid, const struct reqcontext *ctx,
                          struct err *e);
void reqcontext_apply(const struct reqcontext *ctx, struct job *job);

#endif
