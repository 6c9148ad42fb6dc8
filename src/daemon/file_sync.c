/* A jobs file as it was sent, beside what is known of its keys; see file_sync.h. Changes
 * nothing. */
#include "daemon/file_sync.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/account.h"
#include "core/queue.h"
#include "daemon/admit.h"
#include "daemon/budget.h"
#include "daemon/daemon.h"
#include "daemon/file_deps.h"
#include "daemon/file_sync.h"
#include "daemon/methods.h"
#include "daemon/modelfile.h"
#include "daemon/reqjson.h"
#include "daemon/roles.h"
#include "daemon/turn.h"
#include "store/store.h"

void
file_forget_known(struct sync *s)
{
    struct known *k = s->known, *next;
    HASH_CLEAR(hh, s->known);
    for (; k; k = next) {
        next = k->hh.next;
        free(k);
    }
}

void
file_sync_free(struct sync *s)
{
    for (size_t i = 0; i < s->n; i++) {
        request_free(&s->lines[i].req);
        free(s->lines[i].key);
        free(s->lines[i].refused);
        free(s->lines[i].over);
        free(s->lines[i].links);
    }
    free(s->lines);
    free(s->removed);
    file_forget_known(s);
}

static int
read_line(const struct sync *s, const json_t *j, const struct models *models, int default_oom,
          struct line *line, struct err *e)
{
    const struct daemon *d = s->daemon;
    static const char *const ours[] = {"key", "line", "again", NULL};
    const char *key = json_string_value(json_object_get(j, "key"));
    line->number = (int32_t)json_integer_value(json_object_get(j, "line"));
    line->again = json_is_true(json_object_get(j, "again"));
    if (!key || !key[0] || strlen(key) >= sizeof((struct known *)0)->key)
        return err_set(e, ERR_USAGE, "a line needs a \"key\" of 1 to 63 bytes");
    line->key = xstrdup(key);
    if (reqjson_read(j, ours, models, &line->req, e) ||
        budget_check_text(d, s->caller->uid, &line->req, e) ||
        roles_check_priority(d, line->req.priority, e) ||
        roles_check_grace(d, line->req.grace_ms, e))
        return err_prefix(e, "line %d", line->number);
    if (admit_time(d, &line->req, e)) {
        if (!s->fits)
            return err_prefix(e, "line %d", line->number);
        line->over = xstrdup(e->text);
    }
    if (line->req.array.n)
        return err_set(e, ERR_USAGE, "line %d: a line is one job, and no array", line->number);
    if (s->fits && line->req.n_deps)
        return err_set(e, ERR_USAGE, "line %d: \"fit\" and \"after\" exclude each other",
                       line->number);
    /* The larger of the two, as a line can only ask for more than the run does. */
    if (line->req.oom_retries < default_oom)
        line->req.oom_retries = default_oom;
    admit_unsaid(d, &line->req);
    return 0;
}

static struct line *
add_line(struct sync *s)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->lines = xrealloc(s->lines, s->cap * sizeof *s->lines);
    }
    struct line *line = &s->lines[s->n++];
    *line = (struct line){.key = NULL};
    request_init(&line->req);
    return line;
}

int
file_read_lines(struct sync *s, const json_t *params, struct err *e)
{
    const json_t *list = json_object_get(params, "jobs"), *j;
    const struct models *models = modelfile_current(s->daemon);
    const json_t *oom = json_object_get(params, "oom_retries");
    int default_oom = oom ? (int)json_integer_value(oom) : -1;
    size_t i;
    s->path = json_string_value(json_object_get(params, "path"));
    if (!s->path || s->path[0] != '/')
        return err_set(e, ERR_USAGE, "\"path\" must be an absolute path");
    if (strlen(s->path) >= PATH_MAX)
        return err_set(e, ERR_USAGE, "\"path\" is %zu bytes long; the most is %d",
                       strlen(s->path), PATH_MAX - 1);
    if (!json_is_array(list))
        return err_set(e, ERR_USAGE, "\"jobs\" must be a list");
    json_array_foreach(list, i, j)
    {
        struct line *line = add_line(s);
        if (read_line(s, j, models, default_oom, line, e))
            return -1;
    }
    return 0;
}

static struct known *
known_put(struct sync *s, const char *key)
{
    struct known *k;
    HASH_FIND_STR(s->known, key, k);
    if (!k) {
        k = xcalloc(1, sizeof *k);
        snprintf(k->key, sizeof k->key, "%s", key);
        HASH_ADD_STR(s->known, key, k);
    }
    return k;
}

/* Its line is gone, which the store does not know before the commit. */
static void
known_drop(struct sync *s, const struct job *job)
{
    struct known *k;
    HASH_FIND_STR(s->known, job->key, k);
    if (!k || k->job != job->id)
        return;
    HASH_DEL(s->known, k);
    free(k);
}

static int
exit_status_of(const struct store_key *x)
{
    struct attempt run = {
        .ending = {.outcome = x->outcome, .code = x->code, .signal = x->signal}};
    const struct job job = {.state = x->state, .run = &run};
    return job_exit_status(&job);
}

static int
on_key(const struct store_key *x, void *arg)
{
    struct known *k = known_put(arg, x->key);
    k->job = x->job;
    k->state = x->state;
    k->exit_status = job_state_is_final(x->state) ? exit_status_of(x) : -1;
    return 0;
}

/* Joins the lines with what is known of their keys; a new key is entered too, so that its
 * second appearance is seen. */
static int
match_lines(struct sync *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        struct line *line = &s->lines[i];
        struct known *k = known_put(s, line->key);
        if (k->in_file)
            return err_set(e, ERR_USAGE, "the key %s comes twice", line->key);
        k->in_file = true;
        line->known = k->job ? k : NULL;
    }
    return 0;
}

/* The store knows every job of the file that has been committed; what happened since in this
 * turn is known to the table only. */
int
file_load_known(struct sync *s, struct err *e)
{
    struct queue *q = s->daemon->queue;
    size_t n;
    if (store_file_keys(s->daemon->store, s->file, on_key, s, e))
        return -1;
    auto_free struct job **live = queue_list_by_id(q, QUEUE_ALL, &n);
    for (size_t i = 0; i < n; i++) {
        const struct job *job = live[i];
        if (job->file != s->file || !job->key)
            continue;
        if (job->unsaved & SAVE_DETACH) {
            known_drop(s, job);
            continue;
        }
        struct known *k = known_put(s, job->key);
        k->job = job->id;
        k->state = job->state;
        k->exit_status = job_state_is_final(job->state) ? job_exit_status(job) : -1;
    }
    return match_lines(s, e);
}

int
file_resolve_deps(struct sync *s, struct err *e)
{
    auto_free struct file_dep_line *lines = xcalloc(s->n + 1, sizeof *lines);
    for (size_t i = 0; i < s->n; i++)
        lines[i] = (struct file_dep_line){&s->lines[i].req, s->lines[i].number, NULL};
    int rc = file_deps_resolve(s->daemon, s->caller->uid, lines, s->n, e);
    for (size_t i = 0; i < s->n; i++)
        s->lines[i].links = lines[i].links;
    return rc;
}

bool
file_is_new(const struct sync *s, const struct line *line)
{
    if (!line->known || (line->again && job_state_is_final(line->known->state)))
        return true;
    return line->known->state == JOB_INFEASIBLE && !line->req.cancel && !line->over &&
           admit_could_start(s->daemon, s->caller->uid, &line->req.demand, NULL);
}
