/* The order of a delivery, and the program that carries it out. */
#ifndef SHEPHERD_NURSERY_HOOK_COMMAND_H
#define SHEPHERD_NURSERY_HOOK_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "shepherd/common/groups.h"

struct err;

/* The order as written by the daemon. Strings live as long as the order. */
struct order {
    json_t *root;
    char *block; /* the environment */
    char **env;
    const char *id, *kind, *target, *cwd, *log, *sendmail, *rlimits, *user, *pam;
    const char *account; /* comma-separated: runs as the first that exists; NULL: uid */
    uint32_t job;
    int64_t uid; /* -1: our own */
    int64_t limit_ms;
    int umask;
    bool log_mkdir, locked_runs, no_new_privs;
    int64_t drop_caps;
    const json_t *event;
    struct groups_wish groups;
};

int order_read(int fd, struct order *out, struct err *e);
void order_free(struct order *o);

/* The program that carries out the order. */
#define ORDER_ARGS_MAX 64
struct order_run {
    const char *argv[ORDER_ARGS_MAX]; /* strings: of the order, static, or in text */
    char *text;                       /* owned */
    struct buf input;                 /* its standard input */
    struct buf extra;                 /* content of its descriptor ORDER_EXTRA_FD */
};
#define ORDER_EXTRA_FD 3

/* -1: this machine cannot deliver it. */
int order_prepare(const struct order *o, struct order_run *out, struct err *e);
void order_run_free(struct order_run *r);

/* "done", "failed", or "again" if a retry may help. status: the program's exit status, or 128
 * plus the signal's number; text: from order_explain. */
const char *order_judge(const struct order *o, int status, const char *text);
/* A summary of the output for people: its last line; for a webhook, the response or why there
 * was none. */
void order_explain(const struct order *o, const struct buf *output, char *text, size_t size);

#endif
