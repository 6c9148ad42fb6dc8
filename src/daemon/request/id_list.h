/* Lists of job ids: the jobs that a request has changed, as returned to the caller, with the
 * names of those that are array tasks. */
#ifndef DAEMON_REQUEST_ID_LIST_H
#define DAEMON_REQUEST_ID_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct job;
struct jsonw;

struct ids {
    uint32_t *v; /* owned */
    size_t n, cap;
    struct ids_task *tasks; /* owned; the array and task number of those that are tasks */
    size_t n_tasks, cap_tasks;
    size_t n_saved, n_tasks_saved; /* written by ids_save, or read by ids_load */
};
void ids_add(struct ids *ids, uint32_t id);
void ids_add_job(struct ids *ids, const struct job *job);
/* Writes KEY: [ids], and KEY_tasks: {"25": "5_20"} with the names of those that are tasks. */
void ids_write(struct jsonw *out, const char *key, const struct ids *ids);
void ids_free(struct ids *ids);

/* Sorts the ids and removes duplicates; leaves the tasks as they are. */
void ids_put_in_order(struct ids *ids);
/* For a list sorted by ids_put_in_order. */
bool ids_has(const struct ids *sorted, uint32_t id);

/* Save and load as text, compact for consecutive ids. ids_save appends what was added since
 * the last save; ids_load adds to the list and returns the position after the text. */
void ids_save(struct ids *ids, struct buf *out);
const char *ids_load(struct ids *ids, const char *text);

#endif
