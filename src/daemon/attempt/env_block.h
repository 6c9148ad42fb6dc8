/* An environment as one block: "K=V" strings, each terminated by a NUL. */
#ifndef DAEMON_ATTEMPT_ENV_BLOCK_H
#define DAEMON_ATTEMPT_ENV_BLOCK_H

#include <stdint.h>

struct buf;

void envblock_put(struct buf *out, const char *name, const char *value); /* appends */
void envblock_put_int(struct buf *out, const char *name, int64_t value);

/* The value of the first variable of that name, a pointer into the block; NULL: not set. */
const char *envblock_find(const struct buf *block, const char *name);

#endif
