/* Jobs for scancel: see cancel_ids.h. scancel makes a call for each argument, so the tasks of
 * an array are combined. It must not get --state then: Slurm 22.05 takes a task that it finds
 * by its state for the whole array, and cancels all of it. */
#include "slurm/cancel_ids.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"

bool
cancel_id_read(const char *text, struct cancel_id *out)
{
    char array[24];
    const char *task = strchr(text, '_');
    size_t len = task ? (size_t)(task - text) : strlen(text);
    int64_t number = -1;
    struct err e;
    if (len == 0 || len >= sizeof array)
        return false;
    memcpy(array, text, len);
    array[len] = '\0';
    if (parse_int(array, 1, INT64_MAX, &out->array, &e) < 0 ||
        (task && parse_int(task + 1, 0, INT32_MAX, &number, &e) < 0))
        return false;
    out->task = (int32_t)number;
    return true;
}

static int
by_number(const void *a, const void *b)
{
    const struct cancel_id *x = a, *y = b;
    if (x->array != y->array)
        return x->array < y->array ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

/* The number of ids, from the first on, that form one argument. */
static size_t
count_together(const struct cancel_id *ids, size_t n)
{
    size_t i = 1;
    while (i < n && ids[i].array == ids[0].array && ids[0].task >= 0)
        i++;
    return i;
}

static void
add_tasks(const struct cancel_id *ids, size_t n, struct buf *out)
{
    buf_addf(out, "%" PRId64 "_[", ids[0].array);
    for (size_t i = 0; i < n; i++) {
        size_t first = i;
        while (i + 1 < n && ids[i + 1].task <= ids[i].task + 1)
            i++;
        buf_addf(out, i > first ? "%s%d-%d" : "%s%d", first ? "," : "", ids[first].task,
                 ids[i].task);
    }
    buf_addc(out, ']');
}

size_t
cancel_ids_add(struct cancel_id *ids, size_t n, int most, struct buf *out)
{
    size_t done = 0;
    if (n > 0)
        qsort(ids, n, sizeof *ids, by_number);
    for (; done < n && most > 0; most--) {
        size_t together = count_together(ids + done, n - done);
        if (ids[done].task < 0)
            buf_addf(out, "%" PRId64, ids[done].array);
        else
            add_tasks(ids + done, together, out);
        buf_addc(out, '\0');
        done += together;
    }
    return done;
}
