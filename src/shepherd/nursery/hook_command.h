/* What is to be delivered, and by which program. */
#ifndef SHEPHERD_NURSERY_HOOK_COMMAND_H
#define SHEPHERD_NURSERY_HOOK_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "shepherd/common/groups.h"

struct err;

/* As the daemon wrote it. Strings live as long as it does. */
struct order {
    json_t *root;
    char *block; /* the environment */
    char **env;
    const char *id, *kind, *target, *cwd, *log, *sendmail, *rlimits, *user, *pam;
    const char *account; /* names, with commas: the first one there is runs it; NULL: uid */
    uint32_t job;
    int64_t uid; /* -1: ourselves */
    int64_t limit_ms;
    int umask;
    bool log_mkdir, locked_runs, no_new_privs;
    int64_t drop_caps;
    const json_t *event;
    struct groups_wish groups;
};

int order_read(int fd, struct order *out, struct err *e);
void order_free(struct order *o);

/* The program that delivers it. */
#define ORDER_ARGS_MAX 64
struct order_run {
    const char *argv[ORDER_ARGS_MAX]; /* the strings are the order's, static or in text */
    char *text;                       /* owned */
    struct buf input;                 /* what it reads */
    struct buf extra;                 /* what it finds at descriptor ORDER_EXTRA_FD */
};
#define ORDER_EXTRA_FD 3

/* -1: it cannot be delivered on this machine. */
int order_prepare(const struct order *o, struct order_run *out, struct err *e);
void order_run_free(struct order_run *r);

/* "done", "failed", or "again" when another try may help. status: the program's exit status,
 * 128 and the signal's number; text: what order_explain made of its
 * output. */
const char *order_judge(const struct order *o, int status, const char *text);
/* What people see of it: the last line; of a post the answer, or why there was none. */
void order_explain(const struct order *o, const struct buf *output, char *text, size_t size);

#endif
