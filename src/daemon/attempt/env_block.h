/* An environment as one block: "K=V" after "K=V", each with a NUL behind it. */
#ifndef DAEMON_ATTEMPT_ENV_BLOCK_H
#define DAEMON_ATTEMPT_ENV_BLOCK_H

#include <stdint.h>

struct buf;

void envblock_put(struct buf *out, const char *name, const char *value); /* appends */
void envblock_put_int(struct buf *out, const char *name, int64_t value);

/* The value of the first variable of that name, in the block; NULL: there is none. */
const char *envblock_find(const struct buf *block, const char *name);

#endif
