/* One request to a running daemon, for verbs that print its answer and exit. */
#ifndef CLI_ASK_ASK_H
#define CLI_ASK_ASK_H

#include <jansson.h>
#include <stdbool.h>

struct cli;
struct opt_reader;

/* Connects, sends the request, disconnects; prints errors. params is stolen. Returns 0 with
 * *result owned by the caller, or the exit status. */
int ask_daemon(const struct cli *cli, const char *method, json_t *params, json_t **result);

/* Runs a verb that changes jobs, given its params (stolen): prints `done` and the affected
 * jobs ("requeued job 3"), or the answer as JSON. Returns the exit status. */
int ask_change(const struct cli *cli, const char *method, json_t *params, const char *done);
/* Prints only that line, from the ids of the answer. */
int ask_put_done(const json_t *result, const char *done);

/* ["word", ...] */
json_t *ask_words(char *const *words, int n);
/* {"select": [words]} */
json_t *ask_select(char *const *words, int n);

/* Prints a warning if no user of this machine has this name, the value of an option; NULL: the
 * option was not given. */
void ask_say_no_user(const char *name);

/* The selection by the words of r, or by the option --all (all). NULL, with an error printed,
 * if there is neither or both. */
json_t *ask_select_or_all(const struct opt_reader *r, bool all, const char *nothing);

/* Appends "job 3", "jobs 3, 4 and 5_20", naming at most ten, from the list of ids under key
 * and from KEY_tasks, which has the ids of tasks. */
struct buf;
void ask_add_jobs(struct buf *out, const json_t *result, const char *key);

#endif
