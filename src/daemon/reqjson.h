/* A job as it stands in a JSON request: checked strictly, because a client may be anybody's
 * script. */
#ifndef DAEMON_REQJSON_H
#define DAEMON_REQJSON_H

#include <jansson.h>
#include <stdint.h>

#include "sys/rlimits.h"

struct buf;
struct daemon;
struct err;
struct job;
struct models;
struct request;

/* Fills *out (request_init'ed here; the caller frees it, also after an error). extra: names
 * of further members that the caller reads itself, NULL-terminated; any other unknown
 * member is an error. models: for commands with --llm NAME; may be NULL. */
int reqjson_read(const json_t *j, const char *const *extra, const struct models *models,
                 struct request *out, struct err *e);

/* Where and as whom jobs of one call run: cwd, umask and environment of the client. */
struct reqjson_context {
    const char *cwd; /* borrowed from params */
    int32_t umask_bits;
    int64_t env;
    char rlimits[RLIMITS_TEXT_MAX]; /* of the process that asks, as the kernel has them */
};
int reqjson_context(struct daemon *d, const json_t *params, struct reqjson_context *out,
                    struct err *e);
void reqjson_apply(const struct reqjson_context *ctx, struct job *job);

#endif
