/* A job as a client of MPS: its supervisor waits until the user's control daemon is there, and
 * keeps it for as long as the job runs. */
#ifndef SHEPHERD_COMMON_MPS_CLIENT_H
#define SHEPHERD_COMMON_MPS_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sys/mps_place.h"

struct err;

/* As the daemon asked for it. */
struct mps_wish {
    const char *dir;  /* the card's folder (sys/mps_place.h); NULL: no MPS. Borrowed */
    int64_t uid;      /* whose control daemon it is to be */
    int64_t since_us; /* boot clock: what keepers said before is old */
};

struct mps_client {
    int keeper_fd, users_fd; /* -1: none */
    struct mps_state joined; /* the control daemon; text unused */
};
#define MPS_CLIENT_NONE                                                                        \
    {                                                                                          \
        .keeper_fd = -1, .users_fd = -1                                                        \
    }

/* The key "mps" of a spec. */
int mps_wish_read(const json_t *spec, struct mps_wish *out, struct err *e);

/* Waits until it can be used, 55 s at most, or until is_over says again and again that nobody
 * wants it any more. -1 with the reason; then nothing is held. */
int mps_join(const struct mps_wish *wish, bool (*is_over)(void *ctx), void *ctx,
             struct mps_client *out, struct err *e);

/* The job is over: another user's may have the card. Joined or not. */
void mps_leave(struct mps_client *c);

/* Why the control daemon that was joined is no longer there, into out; "" while it is. */
void mps_lost(const struct mps_client *c, char *out, size_t size);

#endif
