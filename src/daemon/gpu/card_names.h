/* GPUs as people name them: by number, or by UUID or the beginning of one. */
#ifndef DAEMON_GPU_CARD_NAMES_H
#define DAEMON_GPU_CARD_NAMES_H

#include <stdint.h>

struct err;
struct instance;
struct request;

uint64_t cardnames_present(const struct instance *inst); /* all that are not gone, a bit each */

/* The GPU whose UUID begins so; -1 with e, which says what there is. */
int cardnames_find(const struct instance *inst, const char *word, struct err *e);
/* -1: no GPU is called so, and what there is. */
int cardnames_refuse(const struct instance *inst, const char *word, struct err *e);

/* The numbers of the GPUs that the request names by UUID. 0 or -1. */
int cardnames_resolve(const struct instance *inst, struct request *r, struct err *e);

#endif
