/* Fetches the pending jobs in queue order, as they would have to be submitted now, and the
 * GPUs. Jobs are fetched in small lots, because each may have a command of a megabyte. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/export/export_priv.h"
#include "spec/value.h"
#include "wire/client.h"
#include "wire/request_read.h"

#define LOT 20

enum {
    IN_ID,
    IN_STATE,
    IN_USER,
    IN_ARRAY_JOB,
    IN_ARRAY_TASK,
    IN_ARRAY,
    IN_BEGIN,
    IN_SUBMISSION
};

/* --- one job --- */

/* Applies changes made since the job was submitted. */
static int
bring_up_to_date(struct export_job *job, const json_t *row, struct err *e)
{
    const json_t *array = json_array_get(row, IN_ARRAY);
    const json_t *begin = json_array_get(row, IN_BEGIN);
    struct request *r = &job->req;
    int32_t at_once = 0;

    r->begin_us = (int64_t)(json_number_value(json_object_get(begin, "unix")) * 1e6);
    if (r->begin_us <= clock_wall_us())
        r->begin_us = 0;
    if (json_is_object(array)) {
        task_set_free(&r->array);
        if (value_tasks(answer_str(array, "pending"), &r->array, &at_once, e) < 0)
            return -1;
    } else if (job->array) {
        task_set_free(&r->array);
        task_set_add(&r->array, job->task);
        r->array_max = 0;
    }
    return 0;
}

static int
read_job(const json_t *row, struct export_job *job, struct err *e)
{
    const json_t *submission = json_array_get(row, IN_SUBMISSION);
    const char *cwd = answer_str(submission, "cwd");

    job->id = (uint32_t)json_integer_value(json_array_get(row, IN_ID));
    job->array = (uint32_t)json_integer_value(json_array_get(row, IN_ARRAY_JOB));
    job->task = (int32_t)json_integer_value(json_array_get(row, IN_ARRAY_TASK));
    job->user = xstrdup(json_string_value(json_array_get(row, IN_USER)));
    job->umask_bits = (int)answer_int(submission, "umask", 022);
    job->environment = answer_int(submission, "environment", 0);
    if (reqjson_read(json_object_get(submission, "request"), NULL, NULL, &job->req, e) < 0)
        return -1;
    free(job->req.chdir);
    job->req.chdir = cwd[0] ? xstrdup(cwd) : NULL;
    return bring_up_to_date(job, row, e);
}

static bool
was_held(const struct export_data *x, uint32_t id)
{
    for (size_t i = 0; i < x->n_listed; i++)
        if (x->listed[i].id == id)
            return x->listed[i].held;
    return false;
}

/* True if the job has not started. With --hold, only a held job counts, as it can no longer
 * start. */
static bool
is_still_here(const struct export_data *x, const json_t *row)
{
    const char *state = json_string_value(json_array_get(row, IN_STATE));

    return state &&
           (strcmp(state, "HELD") == 0 || (!x->hold_here && strcmp(state, "PENDING") == 0));
}

static int
take_row(struct export_data *x, const json_t *row, struct err *e)
{
    struct export_job *job;

    if (!is_still_here(x, row)) {
        x->n_active++;
        return 0;
    }
    if (!json_is_object(json_array_get(row, IN_SUBMISSION)))
        return err_set(e, ERR_PERMISSION,
                       "only root and members of admin_group may export other users' jobs");
    x->jobs = xgrow(x->jobs, x->n, &x->cap, sizeof *x->jobs);
    job = &x->jobs[x->n++];
    memset(job, 0, sizeof *job);
    request_init(&job->req);
    if (read_job(row, job, e) < 0)
        return err_prefix(e, "job %u", job->id);
    job->req.hold = was_held(x, job->id);
    export_add_user(x, job->user);
    return 0;
}

/* --- all of them --- */

static json_t *
make_fields(void)
{
    return json_pack("[ssssssss]", "id", "state", "user", "array_job", "array_task", "array",
                     "begin", "submission");
}

/* The selection of the lot that begins at `at` in the list. */
static json_t *
lot_words(const struct export_data *x, size_t at, bool only_pending)
{
    json_t *words = json_array();

    for (size_t i = at; i < x->n_listed && i < at + LOT; i++) {
        auto_free char *word = xasprintf("%u", x->listed[i].id);
        if (!only_pending || !x->listed[i].held)
            json_array_append_new(words, json_string(word));
    }
    return words;
}

static int
fetch_lot(struct client *c, struct export_data *x, size_t at, struct err *e)
{
    json_t *result = NULL, *row;
    json_t *params = json_pack("{s:o,s:o,s:s}", "select", lot_words(x, at, false), "fields",
                               make_fields(), "order", "turn");
    size_t i;
    int rc = 0;

    if (client_call(c, "jobs", params, &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "rows"), i, row)
    {
        if (rc == 0)
            rc = take_row(x, row, e);
    }
    json_decref(result);
    return rc;
}

/* Holds a lot. Jobs that have started meanwhile cannot be held; fetching them will show
 * this. */
static int
hold_lot(struct client *c, const struct export_data *x, size_t at, struct err *e)
{
    json_t *words = lot_words(x, at, true);
    int rc = 0;

    if (json_array_size(words) > 0)
        rc = client_call(c, "hold", json_pack("{s:O}", "select", words), NULL, e);
    json_decref(words);
    return rc < 0 && e->code != ERR_FAILED && e->code != ERR_REFUSED ? -1 : 0;
}

int
export_list(struct client *c, struct export_data *x, struct err *e)
{
    json_t *result = NULL, *row;
    json_t *params =
        json_pack("{s:[ssss],s:s}", "fields", "id", "state", "uid", "array", "order", "turn");
    size_t i, cap = 0;

    if (client_call(c, "jobs", params, &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "rows"), i, row)
    {
        const char *state = json_string_value(json_array_get(row, 1));
        uid_t uid = (uid_t)json_integer_value(json_array_get(row, 2));
        uint32_t id = (uint32_t)json_integer_value(json_array_get(row, 0));
        bool held = state && strcmp(state, "HELD") == 0;

        if (!state || (!x->all_users && uid != getuid()))
            continue;
        if (!held && strcmp(state, "PENDING") != 0) {
            x->n_active += !json_is_object(json_array_get(row, 3));
            continue;
        }
        x->listed = xgrow(x->listed, x->n_listed, &cap, sizeof *x->listed);
        x->listed[x->n_listed++] = (struct export_listed){id, held};
    }
    json_decref(result);
    return 0;
}

/* Fetches lot after lot; each is in queue order. */
static int
fetch_jobs(struct client *c, struct export_data *x, struct err *e)
{
    for (size_t at = 0; at < x->n_listed && x->hold_here; at += LOT)
        if (hold_lot(c, x, at, e) < 0)
            return -1;
    for (size_t at = 0; at < x->n_listed; at += LOT)
        if (fetch_lot(c, x, at, e) < 0)
            return -1;
    return 0;
}

/* --- dependencies --- */

/* True if the job or task exists here and has not ended. */
static bool
runs_here(struct client *c, const struct dep *dep)
{
    auto_free char *word =
        dep->task >= 0 ? xasprintf("%u_%d", dep->job, dep->task) : xasprintf("%u", dep->job);
    json_t *result = NULL, *row;
    struct err unused;
    bool runs = false;
    size_t i;

    /* A job that is unknown by now has ended. */
    if (client_call(
            c, "jobs",
            json_pack("{s:[s],s:[sss]}", "select", word, "fields", "state", "ended", "array"),
            &result, &unused) < 0)
        return false;
    json_array_foreach(json_object_get(result, "rows"), i, row)
    {
        const char *state = json_string_value(json_array_get(row, 0));
        const json_t *array = json_array_get(row, 2);
        bool waits = state && (strcmp(state, "PENDING") == 0 || strcmp(state, "HELD") == 0);

        if (waits)
            runs = runs || answer_int(array, "active", 0) > 0;
        else
            runs = runs || json_is_null(json_array_get(row, 1));
    }
    json_decref(result);
    return runs;
}

static void
look_at_deps(struct client *c, struct export_data *x)
{
    for (size_t i = 0; i < x->n; i++) {
        struct export_job *job = &x->jobs[i];

        for (int k = 0; k < job->req.n_deps && !job->must_wait; k++)
            job->must_wait = runs_here(c, &job->req.deps[k]);
    }
}

/* --- the GPUs --- */

/* Turns "NVIDIA A100-SXM4-80GB" into a type: nvidia_a100-sxm4-80gb, as Slurm detects it. */
static char *
type_name(const char *name)
{
    char *type = xstrdup(name);

    for (char *p = type; *p; p++) {
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
        else if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.", *p))
            *p = '_';
    }
    return type;
}

/* Gives GPUs with the same name but different memory sizes different types. */
static void
tell_sizes_apart(struct export_data *x)
{
    for (size_t i = 0; i < x->n_cards; i++) {
        struct export_card *card = &x->cards[i];

        card->name = xstrdup(card->model);
        for (size_t k = 0; k < x->n_cards; k++) {
            if (strcmp(x->cards[k].model, card->model) != 0 ||
                x->cards[k].mib / 1024 == card->mib / 1024)
                continue;
            free(card->name);
            card->name = xasprintf("%s_%lldgb", card->model, (long long)(card->mib / 1024));
            break;
        }
    }
}

static int
fetch_cards(struct client *c, struct export_data *x, struct err *e)
{
    json_t *result = NULL, *card;
    const json_t *cards;
    size_t i;

    if (client_call(c, "gpus", NULL, &result, e) < 0)
        return -1;
    cards = json_object_get(result, "gpus");
    x->simulated = strcmp(answer_str(result, "backend"), "sim") == 0;
    x->cards = xcalloc(json_array_size(cards) + 1, sizeof *x->cards);
    json_array_foreach(cards, i, card)
    {
        x->cards[x->n_cards++] =
            (struct export_card){.model = type_name(answer_str(card, "name")),
                                 .mib = answer_int(card, "total_mib", 0)};
    }
    json_decref(result);
    tell_sizes_apart(x);
    return 0;
}

int
export_fetch(struct client *c, struct export_data *x, struct err *e)
{
    if (fetch_cards(c, x, e) < 0 || fetch_jobs(c, x, e) < 0)
        return -1;
    look_at_deps(c, x);
    return 0;
}

/* True for variables that Berth sets, and those that sbatch would take as options. */
static bool
is_schedulers(const char *variable)
{
    static const char *const prefixes[] = {"BERTH_", "SLURM_", "SBATCH_", NULL};
    return text_begins_with(variable, prefixes);
}

int
export_fetch_environment(struct client *c, uint32_t job, struct buf *out, struct err *e)
{
    json_t *result = NULL, *entry;
    size_t i;

    if (client_call(c, "environment", json_pack("{s:I}", "job", (json_int_t)job), &result, e) <
        0)
        return -1;
    json_array_foreach(json_object_get(result, "env"), i, entry)
    {
        const char *text = json_string_value(entry);
        if (text && !is_schedulers(text))
            buf_addz(out, text);
    }
    json_decref(result);
    return 0;
}
