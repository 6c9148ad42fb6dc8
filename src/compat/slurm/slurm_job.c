/* Berth's jobs in Slurm's terms; see slurm_job.h. All states are in one table. */
#include "compat/slurm/slurm_job.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ids.h"
#include "base/request.h"
#include "cli/ask/answer.h"
#include "cli/ask/answer_pages.h"
#include "spec/value.h"
#include "wire/client.h"

/* --- states --- */

/* In the order of Slurm's state numbers. INFEASIBLE maps to Slurm's FAILED with reason
 * BadConstraints, LOST to a failed node. Berth has no jobs in states whose first column is
 * empty. */
static const struct slurm_state states[] = {
    {"PENDING", "PENDING", "PD", false},
    {"HELD", "PENDING", "PD", false},
    {"STARTING", "RUNNING", "R", false},
    {"RUNNING", "RUNNING", "R", false},
    {"SUSPENDED", "SUSPENDED", "S", false},
    {"COMPLETED", "COMPLETED", "CD", true},
    {"CANCELLED", "CANCELLED", "CA", true},
    {"FAILED", "FAILED", "F", true},
    {"INFEASIBLE", "FAILED", "F", true},
    {"TIMEOUT", "TIMEOUT", "TO", true},
    {"LOST", "NODE_FAIL", "NF", true},
    {"PREEMPTED", "PREEMPTED", "PR", true},
    {"", "BOOT_FAIL", "BF", true},
    {"", "DEADLINE", "DL", true},
    {"OUT_OF_MEMORY", "OUT_OF_MEMORY", "OOM", true},
    {"COMPLETING", "COMPLETING", "CG", false},
    {"", "CONFIGURING", "CF", false},
    {"", "RESIZING", "RS", false},
    {"", "RESV_DEL_HOLD", "RD", false},
    {"", "REQUEUED", "RQ", false},
    {"", "REQUEUE_FED", "RF", false},
    {"", "REQUEUE_HOLD", "RH", false},
    {"", "REVOKED", "RV", true},
    {"", "SIGNALING", "SI", false},
    {"", "SPECIAL_EXIT", "SE", false},
    {"", "STAGE_OUT", "SO", false},
    {"", "STOPPED", "ST", false},
};
#define STATES (sizeof states / sizeof states[0])

/* Look up Berth's state name; an unknown one counts as pending. */
static const struct slurm_state *
state_of(const char *berth)
{
    for (size_t i = 0; i < STATES; i++)
        if (strcmp(states[i].berth, berth) == 0)
            return &states[i];
    return &states[0];
}

bool
slurm_state_is(const struct slurm_state *s, const char *word)
{
    return strcasecmp(s->name, word) == 0 || strcasecmp(s->code, word) == 0;
}

int
slurm_states_compare(const struct slurm_state *a, const struct slurm_state *b)
{
    return strcmp(a->code, b->code) == 0 ? 0 : a > b ? 1 : -1;
}

bool
slurm_state_is_listed(const struct slurm_state *s, const char *list)
{
    auto_free char *copy = xstrdup(list);
    char *rest = copy, *piece;

    while ((piece = strsep(&rest, ",")))
        if (strcasecmp(piece, "all") == 0 || slurm_state_is(s, piece))
            return true;
    return false;
}

bool
slurm_is_state(const char *word)
{
    for (size_t i = 0; i < STATES; i++)
        if (slurm_state_is(&states[i], word))
            return true;
    return false;
}

bool
slurm_names_ended(const char *list)
{
    for (size_t i = 0; i < STATES; i++)
        if (states[i].ended && slurm_state_is_listed(&states[i], list))
            return true;
    return false;
}

void
slurm_add_states(struct buf *out)
{
    for (size_t i = 0; i < STATES; i++)
        if (i == 0 || strcmp(states[i].name, states[i - 1].name) != 0)
            buf_addf(out, "%s%s", i ? "," : "", states[i].name);
}

/* --- one job --- */

static void
job_free(struct slurm_job *job)
{
    json_decref(job->json);
    free(job->tasks);
}

/* "2-9%2": pending tasks and throttle of an array; NULL: none pending. */
static char *
waiting_tasks(const json_t *array)
{
    const char *pending = answer_str(array, "pending");
    int64_t max = answer_int(array, "max", 0);

    if (!pending[0])
        return NULL;
    return max > 0 ? xasprintf("%s%%%lld", pending, (long long)max) : xstrdup(pending);
}

/* Convert the daemon's object of a job. Takes over json. */
static void
job_from(json_t *json, struct slurm_job *out)
{
    const json_t *array = json_object_get(json, "array");

    *out = (struct slurm_job){
        .json = json,
        .state = state_of(answer_str(json, "state")),
        .id = answer_int(json, "id", 0),
        .array = answer_int(json, "array_job", 0),
        .is_array = json_is_object(array),
        .task = (int32_t)answer_int(json, "array_task", -1),
        .submitted_us = answer_time_us(json, "submitted"),
        .started_us = answer_time_us(json, "started"),
        .ended_us = answer_time_us(json, "ended"),
        .run_ms = answer_int(json, "run_ms", 0),
        .limit_ms = answer_int(json, "limit_ms", 0),
    };
    if (out->is_array) {
        out->array = out->id;
        out->tasks = waiting_tasks(array);
    }
    /* To Slurm a STARTING job is running, so it needs a start time. */
    if (!out->started_us && strcmp(answer_str(json, "state"), "STARTING") == 0)
        out->started_us = clock_wall_us();
}

/* --- lists --- */

void
slurm_jobs_free(struct slurm_jobs *list)
{
    for (size_t i = 0; i < list->n; i++)
        job_free(&list->at[i]);
    free(list->at);
    *list = (struct slurm_jobs){0};
}

static struct slurm_job *
add_job(struct slurm_jobs *list)
{
    list->at = xgrow(list->at, list->n, &list->cap, sizeof *list->at);
    return &list->at[list->n++];
}

static const char *const brief[] = {"id",       "name",     "user",      "uid",        "state",
                                    "reason",   "started",  "submitted", "ended",      "run_ms",
                                    "gpus",     "limit_ms", "array_job", "array_task", "array",
                                    "priority", "cpus",     "mem_mib"};
static const char *const whole[] = {
    "command",  "cwd",         "log",          "error",     "comment",
    "after",    "container",   "submitted_as", "begin",     "exit_code",
    "signal",   "exit_status", "cancelled_by", "requeue",   "attempt",
    "gpu_type", "peak_mib",    "gpus_wanted",  "exclusive", "share",
    "vram_mib", "interactive", "preemptible",  "open_mode", "singleton"};
static const char *const forecast[] = {"expected_start"};

static void
add_names(json_t *list, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(names[i]));
}

#define ADD(list, names) add_names(list, names, sizeof(names) / sizeof(names)[0])

static json_t *
fields_of(enum slurm_detail detail)
{
    json_t *fields = json_array();

    ADD(fields, brief);
    if (detail >= SLURM_WHOLE)
        ADD(fields, whole);
    if (detail >= SLURM_FORECAST)
        ADD(fields, forecast);
    return fields;
}

static json_t *
params_of(const struct slurm_wish *wish, const json_t *fields)
{
    json_t *params = json_pack("{s:O}", "fields", fields);

    if (wish->select)
        json_object_set(params, "select", wish->select);
    return params;
}

static void
add_rows(struct slurm_jobs *out, const json_t *rows, const json_t *fields)
{
    json_t *row, *name;
    size_t i, k;

    json_array_foreach(rows, i, row)
    {
        json_t *object = json_object();

        json_array_foreach(fields, k, name)
        {
            json_object_set(object, json_string_value(name), json_array_get(row, k));
        }
        job_from(object, add_job(out));
    }
}

/* Fetch ended jobs, page by page. */
static int
ask_ended(struct client *c, const struct slurm_wish *wish, const json_t *fields,
          struct slurm_jobs *out, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    auto_json json_t *result = NULL;
    json_t *params = params_of(wish, fields);

    if (wish->since_us)
        json_object_set_new(params, "since_us", json_integer(wish->since_us));
    if (pages_ask(c, params, 0, &text, e) < 0)
        return -1;
    result = json_loadb(text.data, text.len, 0, NULL);
    add_rows(out, json_object_get(result, "rows"), fields);
    return 0;
}

/* --- arrays --- */

/* "12_[0-999999]": an array's number alone does not select its tasks. */
static void
add_tasks_word(json_t *words, int64_t array)
{
    json_array_append_new(words, json_sprintf("%lld_[0-%d]", (long long)array, ARRAY_MAX - 1));
}

static json_t *
tasks_of_arrays(const struct slurm_jobs *list)
{
    json_t *words = json_array();

    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].is_array)
            add_tasks_word(words, list->at[i].id);
    return words;
}

static bool
is_no_array(const struct slurm_job *job, const void *arg)
{
    (void)arg;
    return !job->is_array;
}

/* True unless the job is a task of one of these arrays. */
static bool
is_apart(const struct slurm_job *job, const void *words)
{
    const json_t *word;
    size_t i;

    json_array_foreach((const json_t *)words, i, word)
    {
        if (!job->is_array && job->array &&
            strtoll(json_string_value(word), NULL, 10) == job->array)
            return false;
    }
    return true;
}

static bool
is_something(const struct slurm_job *job, const void *arg)
{
    (void)arg;
    return !job->is_array || job->tasks;
}

/* Set array->tasks to the tasks of an ended array that were cancelled before they became jobs
 * of their own. Other tasks are in the list. */
static void
find_never_started(struct slurm_job *array, const struct slurm_jobs *list)
{
    const char *all = answer_str(json_object_get(array->json, "array"), "tasks");
    auto_buf struct buf text = BUF_INIT;
    struct task_set set;
    struct err e;
    int32_t max;

    if (value_tasks(all, &set, &max, &e) < 0)
        return;
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].task >= 0 && list->at[i].array == array->id)
            (void)task_set_remove(&set, list->at[i].task);
    task_set_text(&set, &text);
    if (set.n)
        array->tasks = buf_take(&text);
    task_set_free(&set);
}

static bool
has_never_started(const struct slurm_job *job)
{
    const json_t *array = json_object_get(job->json, "array");

    return job->is_array && job->state->ended && !job->tasks &&
           answer_int(json_object_get(array, "ended"), "CANCELLED", 0) > 0;
}

/* An array row stands for tasks that are not jobs of their own; drop arrays without such
 * tasks. */
static void
settle_arrays(struct slurm_jobs *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (has_never_started(&list->at[i]))
            find_never_started(&list->at[i], list);
    slurm_jobs_keep(list, is_something, NULL);
}

/* True if a word selects this task, as 12_3 or 12_[1-4]; *plain: the word is the array's
 * number. */
static bool
names_task(const char *word, const struct slurm_job *job, bool *plain)
{
    char *end;
    bool is_it = strtoll(word, &end, 10) == job->array;
    struct task_set set;
    int32_t max;
    struct err e;

    *plain |= is_it && !*end;
    if (!is_it || *end != '_')
        return false;
    auto_free char *tasks = xstrdup(end + 1 + (end[1] == '['));
    tasks[strcspn(tasks, "]")] = '\0';
    if (value_tasks(tasks, &set, &max, &e) < 0)
        return false;
    bool has = task_set_has(&set, job->task);
    task_set_free(&set);
    return has;
}

bool
slurm_is_named(const struct slurm_job *job, const char *word)
{
    char *end;
    bool plain = false, is_own = strtoll(word, &end, 10) == job->id && !*end;

    return is_own || names_task(word, job, &plain) || plain;
}

static bool
is_selected(const struct slurm_job *job, const void *arg)
{
    const json_t *word;
    bool plain = false, named = false;
    size_t i;

    if (job->task < 0)
        return true;
    json_array_foreach((const json_t *)arg, i, word)
    {
        named |= names_task(json_string_value(word), job, &plain);
    }
    return named || plain;
}

/* True if any word selects tasks, not a whole array. */
static bool
names_tasks(const json_t *select)
{
    const json_t *word;
    size_t i;

    json_array_foreach(select, i, word)
    {
        if (strchr(json_string_value(word), '_'))
            return true;
    }
    return false;
}

/* --- requests --- */

static int
ask_once(struct client *c, const struct slurm_wish *wish, const json_t *fields,
         struct slurm_jobs *out, struct err *e)
{
    auto_json json_t *result = NULL;
    json_t *params = params_of(wish, fields);

    if (wish->select) /* a selected job may have ended */
        json_object_set_new(params, "all", json_true());
    if (client_call(c, "jobs", params, &result, e) < 0)
        return -1;
    add_rows(out, json_object_get(result, "rows"), fields);
    return 0;
}

static int
ask_selected(struct client *c, const struct slurm_wish *wish, const json_t *fields,
             struct slurm_jobs *out, struct err *e)
{
    struct slurm_jobs tasks = {0};
    struct slurm_wish more = *wish;
    auto_json json_t *words = NULL;

    if (ask_once(c, wish, fields, out, e) < 0)
        return -1;
    words = tasks_of_arrays(out);
    more.select = words;
    if (json_array_size(words)) {
        if (ask_once(c, &more, fields, &tasks, e) < 0)
            return -1;
        slurm_jobs_keep(out, is_apart, words);
        slurm_jobs_keep(&tasks, is_no_array, NULL);
        for (size_t i = 0; i < tasks.n; i++)
            *add_job(out) = tasks.at[i];
        free(tasks.at);
    }
    settle_arrays(out);
    if (!names_tasks(wish->select))
        return 0;
    slurm_jobs_split(out);
    slurm_jobs_keep(out, is_selected, wish->select);
    return 0;
}

struct ids {
    uint32_t *at;
    size_t n;
};

/* Sorted ids of the jobs; the caller frees. */
static struct ids
ids_of(const struct slurm_jobs *list)
{
    struct ids ids = {xcalloc(list->n + 1, sizeof *ids.at), list->n};

    for (size_t i = 0; i < list->n; i++)
        ids.at[i] = (uint32_t)list->at[i].id;
    ids_sort(ids.at, ids.n);
    return ids;
}

/* Ask for all tasks, since some may have ended long before their array. */
static int
ask_never_started(struct client *c, const struct slurm_wish *wish, const json_t *fields,
                  struct slurm_job *array, struct err *e)
{
    auto_slurm_jobs struct slurm_jobs tasks = {0};
    auto_json json_t *words = json_array();
    struct slurm_wish more = *wish;

    add_tasks_word(words, array->id);
    more.select = words;
    if (ask_once(c, &more, fields, &tasks, e) < 0)
        return -1;
    find_never_started(array, &tasks);
    return 0;
}

static bool
is_not_in(const struct slurm_job *job, const void *arg)
{
    const struct ids *ids = arg;
    uint32_t id = (uint32_t)job->id;

    return !bsearch(&id, ids->at, ids->n, sizeof id, ids_compare);
}

/* Ask for live jobs first: a job that ends in between is then in both answers rather than in
 * neither; the ended one is used. */
static int
ask_all(struct client *c, const struct slurm_wish *wish, const json_t *fields,
        struct slurm_jobs *out, struct err *e)
{
    struct slurm_jobs live = {0};

    if (ask_once(c, wish, fields, &live, e) < 0)
        return -1;
    if (ask_ended(c, wish, fields, out, e) < 0) {
        slurm_jobs_free(&live);
        return -1;
    }
    const struct ids ended = ids_of(out);
    slurm_jobs_keep(&live, is_not_in, &ended);
    free(ended.at);
    for (size_t i = 0; i < live.n; i++)
        *add_job(out) = live.at[i];
    free(live.at);
    for (size_t i = 0; wish->since_us && i < out->n; i++)
        if (has_never_started(&out->at[i]) &&
            ask_never_started(c, wish, fields, &out->at[i], e) < 0)
            return -1;
    return 0;
}

int
slurm_jobs_ask(struct client *c, const struct slurm_wish *wish, struct slurm_jobs *out,
               struct err *e)
{
    auto_json json_t *fields = fields_of(wish->detail);

    if (wish->select)
        return ask_selected(c, wish, fields, out, e);
    if ((wish->ended ? ask_all : ask_once)(c, wish, fields, out, e) < 0)
        return -1;
    settle_arrays(out);
    return 0;
}

void
slurm_jobs_keep(struct slurm_jobs *list,
                bool (*keep)(const struct slurm_job *job, const void *arg), const void *arg)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        if (keep(&list->at[i], arg))
            list->at[n++] = list->at[i];
        else
            job_free(&list->at[i]);
    }
    list->n = n;
}

static int
compare_jobs(const void *a, const void *b)
{
    const struct slurm_job *x = a, *y = b;
    int64_t left = x->array ? x->array : x->id, right = y->array ? y->array : y->id;

    if (left != right)
        return left < right ? -1 : 1;
    if (!x->tasks != !y->tasks) /* pending tasks come last */
        return x->tasks ? 1 : -1;
    return (x->task > y->task) - (x->task < y->task);
}

void
slurm_jobs_sort(struct slurm_jobs *list)
{
    if (list->n)
        qsort(list->at, list->n, sizeof *list->at, compare_jobs);
}

static void
add_each_task(struct slurm_jobs *to, const struct slurm_job *array)
{
    struct task_set set;
    int32_t max;
    struct err e;

    if (value_tasks(array->tasks, &set, &max, &e) < 0)
        return;
    for (int32_t i = 0; i < set.n; i++) {
        for (int32_t task = set.ranges[i].first; task <= set.ranges[i].last; task++) {
            struct slurm_job *one = add_job(to);

            *one = *array;
            json_incref(one->json);
            one->is_array = false;
            one->tasks = NULL;
            one->task = task;
        }
    }
    task_set_free(&set);
}

void
slurm_jobs_split(struct slurm_jobs *list)
{
    struct slurm_jobs all = {0};

    for (size_t i = 0; i < list->n; i++) {
        struct slurm_job *job = &list->at[i];

        if (job->tasks) {
            add_each_task(&all, job);
            job_free(job);
        } else {
            *add_job(&all) = *job;
        }
    }
    free(list->at);
    *list = all;
}

/* --- ids --- */

/* Length of the first item: up to a comma outside brackets. */
static size_t
piece_length(const char *text)
{
    size_t n = 0;
    bool inside = false;

    for (; text[n] && (inside || text[n] != ','); n++)
        inside = text[n] == '[' || (inside && text[n] != ']');
    return n;
}

/* Reject 12-20, which the daemon takes as nine jobs: in Slurm ranges are of tasks, in
 * brackets. */
static bool
is_id(const char *word)
{
    bool inside = false;

    if (word[0] < '0' || word[0] > '9')
        return false;
    for (; *word; word++) {
        if (!strchr(inside ? "0123456789-,]" : "0123456789_[", *word))
            return false;
        inside = *word == '[' || (inside && *word != ']');
    }
    return true;
}

/* A step name as in sacct. */
static bool
is_step(const char *word)
{
    return strcmp(word, "batch") == 0 || strcmp(word, "extern") == 0 ||
           strcmp(word, "interactive") == 0 || (word[0] && !word[strspn(word, "0123456789")]);
}

int
slurm_read_ids(const char *text, json_t *ids, json_t *steps, struct err *e)
{
    if (!*text) /* an empty selector would mean all jobs */
        return err_set(e, ERR_USAGE, "no job is named");
    while (*text) {
        size_t n = piece_length(text), dot = strcspn(text, ".");
        size_t id = dot < n ? dot : n;
        auto_free char *word = xstrndup(text, id);
        auto_free char *step = dot < n ? xstrndup(text + dot + 1, n - dot - 1) : NULL;

        /* Drop the throttle of an array, 12_[1-4%2]: it does not select anything. */
        char *percent = strchr(word, '%');
        if (percent)
            memmove(percent, percent + strcspn(percent, "]"),
                    strlen(percent + strcspn(percent, "]")) + 1);
        if (!is_id(word) || (steps && step && !is_step(step)))
            return err_set(e, ERR_USAGE, "%.*s", (int)n, text);
        json_array_append_new(ids, json_string(word));
        if (steps)
            json_array_append_new(steps, step ? json_string(step) : json_null());
        text += n + (text[n] == ',');
    }
    return 0;
}
