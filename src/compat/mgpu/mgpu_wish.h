/* A submit request of mgpu's protocol, as it was read and checked. */
#ifndef COMPAT_MGPU_MGPU_WISH_H
#define COMPAT_MGPU_MGPU_WISH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"

struct client;
struct err;

/* What a request says. Texts are borrowed. */
struct mgpu_wish {
    const char *command, *setup;
    int64_t gpus, limit_s, priority;
    int64_t mem; /* MiB of each GPU; 0: the whole of them */
    bool has_mem, interactive;
    int ids[GPU_MAX];
    int n_ids;
};

/* Asks for the cards first. What the request says of its user is not in it: the socket says. */
int mgpu_read_wish(struct client *c, const json_t *request, struct mgpu_wish *w, struct err *e);

#endif
