/* mgpu: mgpu_scheduler_server, mgpu_srun, mgpu_queue and mgpu_cancel, and the protocol between
 * them, which clients of the original speak too: one JSON object a connection on a UNIX
 * socket. mgpu_server.c listens, at a name that mgpu_listener.c keeps, and gives each
 * connection a process of its own that becomes the user who connected; mgpu_peer.c answers
 * there, asking berthd as that user, with mgpu_jobs.c for the queue. mgpu_submit.c makes a job
 * of a submit request, mgpu_stream.c brings its output. mgpu_clients.c is the clients' end of
 * the connection. Where no server runs but a daemon does, they have mgpu_peer.c in a process of
 * their own. */
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
#define MGPU_TAG      "mgpu"                     /* what its jobs are known by */
#define MGPU_TAG_MEM  "mgpu:mem"                 /* of those that said how much */
#define MGPU_ID_LEN   8
#define MGPU_UMASK    022 /* of jobs whose client has gone before it was asked for its own */
#define MGPU_MAX_JSON (16 << 20)

const char *mgpu_socket(void);

/* --- the server's end --- */

struct mgpu_listener {
    const char *path;
    int fd;    /* this and watch: -1 until it is open */
    int watch; /* of inotify, on the socket; readable: look after the name; -1: look often */
    dev_t dev; /* of the name */
    ino_t ino;
};
int mgpu_listener_open(struct mgpu_listener *l, struct err *e);
/* Makes the name again where it is gone. -1: it is not to be had now. */
int mgpu_listener_keep(struct mgpu_listener *l, struct err *e);
void mgpu_listener_close(struct mgpu_listener *l);

struct mgpu_service {
    char daemon[108];   /* berthd's socket */
    int64_t max_job_ms; /* the limit of jobs that name none; 0: none */
};

/* The socket at which c's daemon listens. */
int mgpu_service_of(struct mgpu_service *s, struct client *c, struct err *e);

/* One connection, to its end, in a process that has just been forked for it and ends with it:
 * in a session of its own, which no Ctrl-C reaches, with nothing of its parent's. as_peer:
 * forked by root's server, it becomes the user at the other end first; else only its own user
 * is served. */
_Noreturn void mgpu_serve_apart(int fd, const struct mgpu_service *s, bool as_peer);

/* The served user, as the accounts have it. */
struct mgpu_user {
    mode_t umask_bits;
    char *name, *home, *shell; /* owned */
};

/* Where the output of the client's job goes; the caller's. */
char *mgpu_log_path(const struct mgpu_user *u, const char *id);

/* Checks a submit request and makes a job of it. */
struct mgpu_submitted {
    char id[MGPU_ID_LEN + 1];
    bool interactive;
    int64_t job; /* berthd's number of it */
    char *log;   /* its output's file; the caller's */
    int64_t priority;
    char note[160]; /* why that is another than was asked for; else empty */
};
int mgpu_submit(struct client *c, const struct mgpu_service *s, const struct mgpu_user *u,
                const json_t *request, struct mgpu_submitted *out, struct err *e);

/* Answers of their requests; NULL with words. ours: jobs as lists of what mgpu_queue shows,
 * in its order: 100,000 of them are to be read again there. */
json_t *mgpu_answer_queue(struct client *c, bool ours, struct err *e);
json_t *mgpu_answer_cancel(struct client *c, const struct mgpu_user *u, const json_t *request,
                           struct err *e);

struct mgpu_stream {
    int fd;
    const struct mgpu_service *service;
    const struct mgpu_submitted *job;
    bool bytes; /* output goes as bytes, in pieces; else as lines of text */
};
/* The output and the end of a job, until the client leaves or the job is over. */
void mgpu_stream(const struct mgpu_stream *what, struct client *c);

/* A reply. 0; -1: the client has gone. */
int mgpu_send(int fd, const json_t *reply, bool newline);

/* --- the clients' end --- */

/* A connection to the server, or to what serves in its stead. -1: said. */
int mgpu_connect(const char *name);
/* Sends the request, which is stolen, with the mark of these programs in it, and waits for its
 * first answer; NULL: said. What comes behind that is left in `in`. */
json_t *mgpu_ask(const char *name, int fd, json_t *request, struct frame *in);
/* The next object of what has come into in; NULL: none is whole. */
json_t *mgpu_next(struct frame *in);
/* Reads once, waiting. False: the server has gone. */
bool mgpu_read(int fd, struct frame *in);
/* Connects and asks, for a request of one answer; NULL: said. */
json_t *mgpu_ask_once(const char *name, json_t *request);

#endif
