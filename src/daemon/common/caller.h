/* The user behind a request, and how far a long request has come (rpc/long_work.h). */
#ifndef DAEMON_COMMON_CALLER_H
#define DAEMON_COMMON_CALLER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client;

/* The caller and its request: lives as long as the call of a method. */
struct caller {
    struct client *client;
    uid_t uid;   /* from the kernel */
    uid_t group; /* the group that this user counts in (user_shares.h) */
    pid_t pid;
    bool admin;       /* may do to any job what its owner may */
    int64_t since_us; /* boot clock: when it connected */
    const json_t *id; /* borrowed */
    const char *method;
    size_t len;        /* bytes of the request */
    const char *token; /* borrowed; of a request that is not to be carried out twice, or NULL */
    bool progress;     /* the client wants signs while the request is carried out */
};

#define WORK_MORE 0
#define WORK_DONE 1

#endif
