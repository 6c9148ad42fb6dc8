/* A job as an MPS client: its supervisor waits for the user's control daemon and keeps it
 * running as long as the job runs. */
#ifndef SHEPHERD_COMMON_MPS_CLIENT_H
#define SHEPHERD_COMMON_MPS_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sys/mps_place.h"

struct err;

/* As requested by the daemon. */
struct mps_wish {
    const char *dir;  /* the GPU's folder (sys/mps_place.h); NULL: no MPS. Borrowed */
    int64_t uid;      /* owner of the control daemon */
    int64_t since_us; /* boot clock: keeper states older than this are stale */
};

struct mps_client {
    int keeper_fd, users_fd; /* -1: none */
    struct mps_state joined; /* state of the control daemon; text is unused */
};
#define MPS_CLIENT_NONE                                                                        \
    {                                                                                          \
        .keeper_fd = -1, .users_fd = -1                                                        \
    }

/* The key "mps" of a spec. */
int mps_wish_read(const json_t *spec, struct mps_wish *out, struct err *e);

/* Waits until the control daemon is ready, at most 55 s, or until is_over returns true. -1
 * with the reason; nothing is held then. */
int mps_join(const struct mps_wish *wish, bool (*is_over)(void *ctx), void *ctx,
             struct mps_client *out, struct err *e);

/* The job is over: another user's may have the GPU. No-op if not joined. */
void mps_leave(struct mps_client *c);

/* Why the joined control daemon is gone, into out; "" if it is still there. */
void mps_lost(const struct mps_client *c, char *out, size_t size);

#endif
