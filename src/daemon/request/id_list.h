/* Lists of jobs' numbers: those that something was done to, as they go back to the caller,
 * with the names of those that are tasks of arrays. */
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
    struct ids_task *tasks; /* owned; those of them that are an array's, with its number */
    size_t n_tasks, cap_tasks;
    size_t n_saved, n_tasks_saved; /* of them ids_save has written, or ids_load has read */
};
void ids_add(struct ids *ids, uint32_t id);
void ids_add_job(struct ids *ids, const struct job *job);
/* KEY: [ids], and KEY_tasks: {"25": "5_20"} with what people call those that are tasks. */
void ids_write(struct jsonw *out, const char *key, const struct ids *ids);
void ids_free(struct ids *ids);

/* Sorts them, each once; their tasks are left as they are. */
void ids_put_in_order(struct ids *ids);
/* In such a list. */
bool ids_has(const struct ids *sorted, uint32_t id);

/* What was added since the last time as text, which is short where many follow each other, and
 * back: added to what is there. Returns what stands behind the text. */
void ids_save(struct ids *ids, struct buf *out);
const char *ids_load(struct ids *ids, const char *text);

#endif
