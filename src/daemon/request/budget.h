/* Bounds on one request of a user who shares the daemon with others: its length, its parts,
 * the jobs in it, its answer. Within these bounds a request takes at most about 50 ms; larger
 * ones must be split. Root, and users with a daemon of their own, are limited only by the
 * machine. */
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

/* Whether this user shares the daemon with others. */
bool budget_binds(const struct budget *b, uid_t uid);

size_t budget_request_max(const struct budget *b, uid_t uid); /* bytes of a line */
size_t budget_answer_max(const struct budget *b, uid_t uid);  /* bytes of a result */
/* The error of an answer that has outgrown that; always -1. */
int budget_too_long(const struct jsonw *answer, struct err *e);

/* Whether a line may become a tree: as such its values take some hundred bytes each. Looks at
 * its bytes alone; -1 with words. */
int budget_check_line(const struct budget *b, uid_t uid, const char *line, size_t len,
                      struct err *e);

/* Whether as many jobs as this list has, with their dependencies, may come in one request. */
int budget_check_jobs(const struct budget *b, uid_t uid, const json_t *jobs, struct err *e);

/* Whether the jobs of one `submit` may have so much text: they enter in one commit. */
int budget_check_submit(const struct budget *b, uid_t uid, int64_t bytes, struct err *e);

/* Whether its words are of a length that can be kept and executed. */
int budget_check_text(const struct budget *b, uid_t uid, const struct request *r,
                      struct err *e);
/* The same of an environment, in bytes. */
int budget_check_env(const struct budget *b, uid_t uid, size_t bytes, struct err *e);

#endif
