/* Lists of job ids: see id_list.h. */
#include "daemon/request/id_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ids.h"
#include "base/jsonw.h"
#include "core/queue/job.h"

void
ids_add(struct ids *ids, uint32_t id)
{
    ids->v = xgrow(ids->v, ids->n, &ids->cap, sizeof *ids->v);
    ids->v[ids->n++] = id;
}

struct ids_task {
    uint32_t id, array;
    int32_t task;
};

static void
add_task(struct ids *ids, uint32_t id, uint32_t array, int32_t task)
{
    ids->tasks = xgrow(ids->tasks, ids->n_tasks, &ids->cap_tasks, sizeof *ids->tasks);
    ids->tasks[ids->n_tasks++] = (struct ids_task){.id = id, .array = array, .task = task};
}

void
ids_add_job(struct ids *ids, const struct job *job)
{
    ids_add(ids, job->id);
    if (job->array)
        add_task(ids, job->id, job->array, job->task);
}

static void
write_tasks(struct jsonw *out, const char *key, const struct ids *ids)
{
    char name[40], number[16];
    snprintf(name, sizeof name, "%s_tasks", key);
    jsonw_kobject(out, name);
    for (size_t i = 0; i < ids->n_tasks; i++) {
        const struct ids_task *t = &ids->tasks[i];
        snprintf(number, sizeof number, "%" PRIu32, t->id);
        snprintf(name, sizeof name, "%" PRIu32 "_%" PRId32, t->array, t->task);
        jsonw_kstr(out, number, name);
    }
    jsonw_end_object(out);
}

void
ids_write(struct jsonw *out, const char *key, const struct ids *ids)
{
    jsonw_karray(out, key);
    for (size_t i = 0; i < ids->n; i++)
        jsonw_int(out, ids->v[i]);
    jsonw_end_array(out);
    if (ids->n_tasks > 0)
        write_tasks(out, key, ids);
}

void
ids_free(struct ids *ids)
{
    free(ids->v);
    free(ids->tasks);
    *ids = (struct ids){0};
}

void
ids_put_in_order(struct ids *ids)
{
    size_t n = 0;
    if (ids->n > 0)
        qsort(ids->v, ids->n, sizeof *ids->v, ids_compare);
    for (size_t i = 0; i < ids->n; i++)
        if (i == 0 || ids->v[i] != ids->v[n - 1])
            ids->v[n++] = ids->v[i];
    ids->n = n;
}

bool
ids_has(const struct ids *sorted, uint32_t id)
{
    return sorted->n > 0 && bsearch(&id, sorted->v, sorted->n, sizeof id, ids_compare);
}

/* --- as text: 1-500,502;25=5_20; --- */

void
ids_save(struct ids *ids, struct buf *out)
{
    for (size_t i = ids->n_saved, end; i < ids->n; i = end) {
        for (end = i + 1; end < ids->n && ids->v[end] == ids->v[end - 1] + 1;)
            end++;
        buf_addf(out, "%s%" PRIu32, i > ids->n_saved ? "," : "", ids->v[i]);
        if (end > i + 1)
            buf_addf(out, "-%" PRIu32, ids->v[end - 1]);
    }
    buf_addc(out, ';');
    for (size_t i = ids->n_tasks_saved; i < ids->n_tasks; i++) {
        const struct ids_task *t = &ids->tasks[i];
        buf_addf(out, "%s%" PRIu32 "=%" PRIu32 "_%" PRId32, i > ids->n_tasks_saved ? "," : "",
                 t->id, t->array, t->task);
    }
    buf_addc(out, ';');
    ids->n_saved = ids->n;
    ids->n_tasks_saved = ids->n_tasks;
}

/* Reads a number. *stop: the character after it, which is skipped too. */
static uint32_t
take_number(const char **at, char *stop)
{
    uint32_t n = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        n = n * 10 + (uint32_t)(**at - '0');
    *stop = **at;
    *at += **at != 0;
    return n;
}

const char *
ids_load(struct ids *ids, const char *text)
{
    char stop = *text == ';' ? *text++ : ',';
    while (stop == ',') {
        uint32_t first = take_number(&text, &stop), last = first;
        if (stop == '-')
            last = take_number(&text, &stop);
        for (uint32_t id = first; id <= last && id > 0; id++)
            ids_add(ids, id);
    }
    stop = *text == ';' ? *text++ : ',';
    while (stop == ',') {
        uint32_t id = take_number(&text, &stop);
        uint32_t array = take_number(&text, &stop);
        add_task(ids, id, array, (int32_t)take_number(&text, &stop));
    }
    ids->n_saved = ids->n;
    ids->n_tasks_saved = ids->n_tasks;
    return text;
}
