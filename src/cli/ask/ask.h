/* One question to a running daemon, for the verbs that print its answer and leave. */
#ifndef CLI_ASK_ASK_H
#define CLI_ASK_ASK_H

#include <jansson.h>
#include <stdbool.h>

struct cli;
struct opt_reader;

/* Connects, asks, disconnects; says in words what went wrong. params is stolen. Returns 0
 * with *result owned by the caller, or the exit status to end with. */
int ask_daemon(const struct cli *cli, const char *method, json_t *params, json_t **result);

/* The whole of a verb that changes jobs, from its params (stolen) on: `done` and the jobs that
 * were ("requeued job 3"), or the answer as JSON. The exit status. */
int ask_change(const struct cli *cli, const char *method, json_t *params, const char *done);
/* Such a line alone, from the ids of the answer. */
int ask_put_done(const json_t *result, const char *done);

/* ["word", ...] */
json_t *ask_words(char *const *words, int n);
/* {"select": [words]} */
json_t *ask_select(char *const *words, int n);

/* Says so when no user of this machine has the name that an option gave; NULL: it gave none. */
void ask_say_no_user(const char *name);

/* What the words of r select, or with all (the option --all) every job. NULL, and said why,
 * when that is nothing or both. */
json_t *ask_select_or_all(const struct opt_reader *r, bool all, const char *nothing);

/* "job 3", "jobs 3, 4 and 5_20", at most ten named, from the list of ids under the key and
 * from KEY_tasks, which says what tasks are called. Appends. */
struct buf;
void ask_add_jobs(struct buf *out, const json_t *result, const char *key);

#endif
