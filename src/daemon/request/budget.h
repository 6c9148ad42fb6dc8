/* Bounds on one request of a user who shares the daemon with others: its length, parts, jobs
 * and answer. Within the bounds a request takes at most about 50 ms; larger ones must be
 * split. Root, and users with a daemon of their own, are limited only by the machine. */
#ifndef DAEMON_REQUEST_BUDGET_H
#define DAEMON_REQUEST_BUDGET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/request.h"

#define UNREAD_MAX ((size_t)256 << 20) /* bytes a client may leave unread */

struct config;
struct err;
struct jsonw;

struct budget {
    const struct config *config; /* borrowed */
    bool system;                 /* one daemon for all users of the machine */
};

/* True if this user shares the daemon with others. */
bool budget_binds(const struct budget *b, uid_t uid);

size_t budget_request_max(const struct budget *b, uid_t uid); /* bytes of a line */
size_t budget_answer_max(const struct budget *b, uid_t uid);  /* bytes of a result */
/* Sets the error for an answer above budget_answer_max; always -1. */
int budget_too_long(const struct jsonw *answer, struct err *e);

/* Refuses a line that would make too large a JSON tree, in which each value takes some hundred
 * bytes. Looks only at the bytes; -1 with e. */
int budget_check_line(const struct budget *b, uid_t uid, const char *line, size_t len,
                      struct err *e);

/* Refuses a list of jobs with too many jobs or dependencies for one request. */
int budget_check_jobs(const struct budget *b, uid_t uid, const json_t *jobs, struct err *e);

/* Refuses too much text in the jobs of one `submit`, because they enter in one commit. */
int budget_check_submit(const struct budget *b, uid_t uid, int64_t bytes, struct err *e);

/* Refuses text of a job that is too long to be stored and executed. */
int budget_check_text(const struct budget *b, uid_t uid, const struct request *r,
                      struct err *e);
/* The same for an environment of this many bytes. */
int budget_check_env(const struct budget *b, uid_t uid, size_t bytes, struct err *e);

#endif
