/* mgpu: mgpu_scheduler_server, mgpu_srun, mgpu_queue and mgpu_cancel, and their protocol,
 * which clients of the original speak too: one JSON request per connection on a UNIX socket.
 * mgpu_server.c listens at a socket that mgpu_listener.c maintains, and forks a process per
 * connection, which becomes the connecting user; there mgpu_peer.c answers, asking berthd as
 * that user, with mgpu_jobs.c for queue and cancel. mgpu_submit.c turns a submit request into
 * a job, mgpu_stream.c forwards its output. mgpu_clients.c is the clients' end. Without a
 * server but with a running daemon, clients fork a process of their own that runs
 * mgpu_peer.c. */
#ifndef COMPAT_MGPU_MGPU_H
#define COMPAT_MGPU_MGPU_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/request.h"

struct client;
struct err;
struct frame;

#define MGPU_SOCKET   "/tmp/mgpu_scheduler.sock" /* MGPU_SCHEDULER_SOCKET names another */
#define MGPU_TAG      "mgpu"                     /* tag of all its jobs */
#define MGPU_TAG_MEM  "mgpu:mem"                 /* of jobs with an explicit mem */
#define MGPU_ID_LEN   8
#define MGPU_UMASK    022 /* if the client has gone before its umask was read */
#define MGPU_MAX_JSON (16 << 20)

const char *mgpu_socket(void);

/* --- the server's end --- */

struct mgpu_listener {
    const char *path;
    int fd;    /* fd and watch are -1 until open */
    int watch; /* inotify on the socket; readable: check the name; -1: poll */
    dev_t dev; /* device and inode of the socket's name */
    ino_t ino;
};
int mgpu_listener_open(struct mgpu_listener *l, struct err *e);
/* Create the socket's name again if it is gone. -1: not possible now. */
int mgpu_listener_keep(struct mgpu_listener *l, struct err *e);
void mgpu_listener_close(struct mgpu_listener *l);

struct mgpu_service {
    char daemon[108];   /* berthd's socket */
    int64_t max_job_ms; /* limit of jobs that request none; 0: none */
};

/* Set s->daemon to the socket of c's daemon. */
int mgpu_service_of(struct mgpu_service *s, struct client *c, struct err *e);

/* Serve one connection in a just forked process, then exit. The process leaves its parent's
 * session, so that Ctrl-C does not reach it, and drops everything inherited. as_peer (forked
 * by root's server): first become the user at the other end; otherwise only the own user is
 * served. */
_Noreturn void mgpu_serve_apart(int fd, const struct mgpu_service *s, bool as_peer);

/* The served user, from the account database. */
struct mgpu_user {
    mode_t umask_bits;
    char *name, *home, *shell; /* owned */
};

/* The log of the user's job id. The caller frees. */
char *mgpu_log_path(const struct mgpu_user *u, const char *id);

/* The result of a submit request: it is checked and submitted as a job. */
struct mgpu_submitted {
    char id[MGPU_ID_LEN + 1];
    bool interactive;
    int64_t job; /* berthd's id of the job */
    char *log;   /* file of its output; the caller frees */
    int64_t priority;
    char note[160]; /* why the priority differs from the requested one; or empty */
};
int mgpu_submit(struct client *c, const struct mgpu_service *s, const struct mgpu_user *u,
                const json_t *request, struct mgpu_submitted *out, struct err *e);

/* Answer requests; NULL with e. ours: jobs as arrays of the columns of mgpu_queue, in its
 * order, since clients may have to parse 100,000 of them. */
json_t *mgpu_answer_queue(struct client *c, bool ours, struct err *e);
json_t *mgpu_answer_cancel(struct client *c, const struct mgpu_user *u, const json_t *request,
                           struct err *e);

struct mgpu_stream {
    int fd;
    const struct mgpu_service *service;
    const struct mgpu_submitted *job;
    bool bytes; /* forward raw bytes in chunks; else lines of text */
};
/* Forward a job's output and end until the client leaves or the job has ended. */
void mgpu_stream(const struct mgpu_stream *what, struct client *c);

/* Send a reply. 0; -1: the client has gone. */
int mgpu_send(int fd, const json_t *reply, bool newline);

/* --- the clients' end --- */

/* Connect to the server, or to a process of our own that replaces it. -1: reported. */
int mgpu_connect(const char *name);
/* Send the request (stolen), marked as from these programs, and wait for the first answer;
 * NULL: reported. Anything received after it is left in `in`. */
json_t *mgpu_ask(const char *name, int fd, json_t *request, struct frame *in);
/* The next complete object in `in`; NULL: none. */
json_t *mgpu_next(struct frame *in);
/* Read once, blocking. False: the server has gone. */
bool mgpu_read(int fd, struct frame *in);
/* Connect and send a request that has one answer; NULL: reported. */
json_t *mgpu_ask_once(const char *name, json_t *request);

#endif
