/* The stored format of the tally: JSON with names instead of positions, so that a version with
 * other states or outcomes can read what it has in common. See counters.h. */
#include "daemon/common/counters_note.h"

#include <jansson.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "core/learn/histogram.h"
#include "core/queue/job.h"
#include "daemon/common/counters.h"

typedef const char *(*name_fn)(int i);

static const char *
state_name_at(int i)
{
    return job_state_name((enum job_state)i);
}

static const char *
outcome_name_at(int i)
{
    return outcome_name((enum outcome)i);
}

const char *
again_name(enum again a)
{
    static const char *const names[] = {
        [AGAIN_OOM] = "oom",   [AGAIN_FAILURE] = "failure",     [AGAIN_TIMEOUT] = "timeout",
        [AGAIN_LOST] = "lost", [AGAIN_PREEMPTED] = "preempted", [AGAIN_ASKED] = "asked",
    };
    return names[a];
}

static const char *
again_name_at(int i)
{
    return again_name((enum again)i);
}

static void
write_counts(struct jsonw *w, const char *key, const uint64_t *counts, int n, name_fn name)
{
    jsonw_kobject(w, key);
    for (int i = 0; i < n; i++)
        if (counts[i] > 0)
            jsonw_kint(w, name(i), (int64_t)counts[i]);
    jsonw_end_object(w);
}

static void
write_histogram(struct jsonw *w, const char *key, const struct histogram *h)
{
    jsonw_kobject(w, key);
    jsonw_kint(w, "sum_us", h->sum_us);
    jsonw_karray(w, "counts");
    for (int i = 0; i <= h->n; i++)
        jsonw_int(w, (int64_t)h->counts[i]);
    jsonw_end_array(w);
    jsonw_end_object(w);
}

void
tally_note_write(const struct tally_jobs *j, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kint(&w, "submitted", (int64_t)j->submitted);
    jsonw_kint(&w, "started", (int64_t)j->started);
    write_counts(&w, "ended", j->ended, JOB_STATES, state_name_at);
    write_counts(&w, "outcomes", j->outcomes, OUTCOMES, outcome_name_at);
    write_counts(&w, "again", j->again, AGAINS, again_name_at);
    write_histogram(&w, "waits", &j->waits);
    write_histogram(&w, "runs", &j->runs);
    jsonw_end_object(&w);
}

static uint64_t
count_of(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v)
                                                           : 0;
}

static void
read_counts(const json_t *object, uint64_t *counts, int n, name_fn name)
{
    for (int i = 0; i < n; i++)
        counts[i] = count_of(json_object_get(object, name(i)));
}

/* A histogram with other bounds than ours starts from zero. */
static void
read_histogram(const json_t *object, struct histogram *h)
{
    const json_t *counts = json_object_get(object, "counts");
    if (json_array_size(counts) != (size_t)h->n + 1)
        return;
    for (int i = 0; i <= h->n; i++)
        h->counts[i] = count_of(json_array_get(counts, (size_t)i));
    h->sum_us = (int64_t)count_of(json_object_get(object, "sum_us"));
}

int
tally_note_read(const char *text, struct tally_jobs *j)
{
    json_t *root = json_loads(text, 0, NULL);
    if (!json_is_object(root)) {
        json_decref(root);
        return -1;
    }
    j->submitted = count_of(json_object_get(root, "submitted"));
    j->started = count_of(json_object_get(root, "started"));
    read_counts(json_object_get(root, "ended"), j->ended, JOB_STATES, state_name_at);
    read_counts(json_object_get(root, "outcomes"), j->outcomes, OUTCOMES, outcome_name_at);
    read_counts(json_object_get(root, "again"), j->again, AGAINS, again_name_at);
    read_histogram(json_object_get(root, "waits"), &j->waits);
    read_histogram(json_object_get(root, "runs"), &j->runs);
    json_decref(root);
    return 0;
}
