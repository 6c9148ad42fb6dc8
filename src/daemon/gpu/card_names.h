/* GPUs as users name them: by number, or by UUID or its beginning. */
#ifndef DAEMON_GPU_CARD_NAMES_H
#define DAEMON_GPU_CARD_NAMES_H

#include <stdint.h>

struct err;
struct instance;
struct request;

uint64_t cardnames_present(const struct instance *inst); /* bits of GPUs not gone */

/* The GPU whose UUID begins with word; -1 with e, which lists the valid names. */
int cardnames_find(const struct instance *inst, const char *word, struct err *e);
/* Always -1: fills e with "no such GPU" and the valid names. */
int cardnames_refuse(const struct instance *inst, const char *word, struct err *e);

/* Resolves the names in the request's gpu-ids to numbers. 0 or -1. */
int cardnames_resolve(const struct instance *inst, struct request *r, struct err *e);

#endif
