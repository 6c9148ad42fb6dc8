/* What jobs of one call have in common: cwd, umask, environment and limits of the client. */
#ifndef DAEMON_REQUEST_REQUEST_CONTEXT_H
#define DAEMON_REQUEST_REQUEST_CONTEXT_H

#include <jansson.h>
#include <stdint.h>

#include "sys/rlimits.h"

struct daemon;
struct err;
struct job;

/* Where and as which user jobs of one call run: cwd, umask and environment of the client. */
struct reqcontext {
    const char *cwd; /* borrowed from params */
    int32_t umask_bits;
    int64_t env, env_bytes;
    char rlimits[RLIMITS_TEXT_MAX]; /* of the process that asks, as the kernel has them */
};
int reqcontext_read(struct daemon *d, const json_t *params, struct reqcontext *out,
                    struct err *e);
/* Whether its environment may still be kept with those of the user's jobs. */
int reqcontext_check_room(const struct daemon *d, const struct reqcontext *ctx, struct err *e);
void reqcontext_apply(const struct reqcontext *ctx, struct job *job);

#endif
