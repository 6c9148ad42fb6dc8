/* The user behind a request, and the progress of a long request (rpc/long_work.h). */
#ifndef DAEMON_COMMON_CALLER_H
#define DAEMON_COMMON_CALLER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client;

/* The caller and its request. Valid during the call of a method. */
struct caller {
    struct client *client;
    uid_t uid;   /* from the kernel */
    uid_t group; /* the group that this user belongs to (user_shares.h) */
    pid_t pid;
    bool admin;       /* may do to any job what its owner may */
    int64_t since_us; /* boot clock: time of its connection */
    const json_t *id; /* borrowed */
    const char *method;
    size_t len;        /* bytes of the request */
    const char *token; /* borrowed; of a request that must not run twice; or NULL */
    bool progress;     /* the client wants progress messages */
};

#define WORK_MORE 0
#define WORK_DONE 1

#endif
