#include "support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/counted_text.h"
#include "base/request.h"
#include "core/queue/array.h"

struct dir *
dir_new(void)
{
    struct dir *d = xcalloc(1, sizeof *d);
    const char *base = getenv("TMPDIR");

    d->path = xasprintf("%s/berth-test-store-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(d->path));
    return d;
}

void
dir_free(struct dir *d)
{
    DIR *list = opendir(d->path);
    struct dirent *entry;

    while (list && (entry = readdir(list)) != NULL)
        unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    rmdir(d->path);
    free(d->path);
    free(d);
}

char *
dir_file(const struct dir *d, const char *name)
{
    return xasprintf("%s/%s", d->path, name);
}

struct store *
must_open(const struct dir *d)
{
    struct store *s = NULL;
    struct err e = {0};

    if (store_open(d->path, &s, &e) < 0)
        fail_msg("store_open: %s", e.text);
    return s;
}

void
must_commit(struct store *s)
{
    struct err e = {0};

    if (store_commit(s, &e) < 0)
        fail_msg("store_commit: %s", e.text);
}

uint64_t
rng_next(struct rng *r)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return r->state;
}

static bool
rng_bool(struct rng *r)
{
    return rng_next(r) >> 33 & 1;
}

/* Often one of the extremes, where mistakes of sign and width show. */
static int32_t
rng_i32(struct rng *r)
{
    static const int32_t ends[] = {0, 1, -1, INT32_MIN, INT32_MAX};
    uint64_t v = rng_next(r);

    return v % 3 == 0 ? ends[v / 3 % 5] : (int32_t)(v >> 20);
}

static int64_t
rng_i64(struct rng *r)
{
    static const int64_t ends[] = {0, 1, -1, INT64_MIN, INT64_MAX};
    uint64_t v = rng_next(r);

    return v % 3 == 0 ? ends[v / 3 % 5] : (int64_t)rng_next(r);
}

/* Fragments that break careless quoting, escaping and truncation. All are UTF-8. */
static char *
rng_text(struct rng *r)
{
    static const char *const pieces[] = {
        "a",
        "\x01",
        "\n",
        "\t",
        "\x7f",
        "'",
        "''",
        "\"",
        "\\",
        "%s",
        "\\u0000",
        "\xc3\xa4",
        "\xe2\x82\xac",
        ";",
        "--",
        "\xf0\x9f\x9a\x80",
        "NULL",
        ",",
        ":",
        "\xef\xbf\xbf",
        "\xef\xbf\xbd",
        "\r",
        "?1",
        "train.py --lr 1e-3",
    };
    struct buf text = BUF_INIT;
    int n = (int)(rng_next(r) % 12);

    if (rng_next(r) % 50 == 0)
        n = 3000;
    for (int i = 0; i < n; i++)
        buf_adds(&text, pieces[(rng_next(r) >> 17) % (sizeof pieces / sizeof pieces[0])]);
    return text.data ? buf_take(&text) : xstrdup("");
}

static char *
rng_text_or_null(struct rng *r)
{
    return rng_bool(r) ? rng_text(r) : NULL;
}

static void
random_demand(struct rng *r, struct demand *d)
{
    memset(d, 0, sizeof *d);
    d->devices = (uint64_t)rng_i64(r);
    d->gpus = rng_i32(r);
    d->vram_mib = rng_i32(r);
    d->cpus = rng_i32(r);
    d->mem_mib = rng_i32(r);
    d->exclusive = rng_bool(r);
    d->share_permille = rng_i32(r);
    d->min_vram_mib = rng_i32(r);
    d->min_cc = (uint8_t)rng_i32(r);
    d->cpu_bind = (uint8_t)(rng_next(r) % 4);
    d->max_used_permille = rng_i32(r);
    d->max_load_permille = rng_i32(r);
    d->margin_mib = rng_i32(r);
    if (rng_bool(r))
        memcpy(d->gpu_type, "a100-80", 8);
    d->n_ids = (uint8_t)(rng_next(r) % (REQUEST_IDS_MAX + 1));
    for (int i = 0; i < d->n_ids; i++)
        d->ids[i] = (uint8_t)((i * 3 + 61) % GPU_MAX);
}

static char **
random_tags(struct rng *r)
{
    int n = (int)(rng_next(r) % 4);
    char **tags = n ? xcalloc((unsigned long)n + 1, sizeof(char *)) : NULL;

    for (int i = 0; i < n; i++)
        tags[i] = rng_text(r);
    return tags;
}

/* Ranges that neither overlap nor touch. */
static void
random_set(struct rng *r, struct task_set *set)
{
    int32_t at = 0;

    set->n = (int32_t)(rng_next(r) % 6);
    set->ranges = set->n ? xcalloc((unsigned long)set->n, sizeof *set->ranges) : NULL;
    for (int i = 0; i < set->n; i++) {
        set->ranges[i].first = at + (int32_t)(rng_next(r) % 3);
        set->ranges[i].last = set->ranges[i].first + (int32_t)(rng_next(r) % 3);
        at = set->ranges[i].last + 2;
    }
}

static void
random_deps(struct rng *r, struct request *req)
{
    req->n_deps = (int32_t)(rng_next(r) % 4);
    req->deps = req->n_deps ? xcalloc((unsigned long)req->n_deps, sizeof *req->deps) : NULL;
    for (int i = 0; i < req->n_deps; i++) {
        req->deps[i].type = (enum dep_type)(rng_next(r) % 3);
        req->deps[i].job = (uint32_t)(rng_next(r) >> 33) + 1;
        req->deps[i].task = rng_bool(r) ? (int32_t)(rng_next(r) % ARRAY_MAX) : -1;
        if (rng_bool(r))
            req->deps[i].ended = req->deps[i].type == DEP_FAILED ? JOB_FAILED : JOB_COMPLETED;
    }
}

/* An array from which some tasks have already been split off. */
static void
random_book(struct rng *r, struct job *job)
{
    array_begin(job);
    for (int32_t task; (task = array_next(job)) >= 0 && rng_bool(r);) {
        task_set_remove(&job->tasks->pending, task);
        job->tasks->ended[JOB_COMPLETED + (int)(rng_next(r) % 3)]++;
    }
    for (int i = (int)(rng_next(r) % 4); i > 0; i--)
        array_count_status(job->tasks, (int32_t)(rng_next(r) % 256), 1);
}

static void
random_hooks(struct rng *r, struct request *req)
{
    if (rng_bool(r))
        return;
    req->hooks = xcalloc(1, sizeof *req->hooks);
    req->hooks->on_start = rng_text_or_null(r);
    req->hooks->on_end = rng_text_or_null(r);
    req->hooks->on_fail = rng_text_or_null(r);
    req->hooks->webhook = rng_text_or_null(r);
    req->hooks->mail_user = rng_text_or_null(r);
    req->hooks->mail_types = (uint32_t)rng_next(r) & 127;
}

static void
random_request(struct rng *r, struct request *req)
{
    random_demand(r, &req->demand);
    req->priority = rng_i32(r);
    req->oom_retries = rng_i32(r);
    req->retries = rng_i32(r);
    req->limit_ms = rng_i64(r);
    req->grace_ms = rng_i64(r);
    req->hold = rng_bool(r);
    req->cancel = rng_bool(r);
    req->requeue = rng_bool(r);
    req->unique = rng_bool(r);
    req->preemptible = rng_bool(r);
    req->login = rng_bool(r);
    req->screen = rng_bool(r);
    if (rng_bool(r))
        req->env_setup = xstrdup("source venv/bin/activate\nexport A='b'");
    if (rng_bool(r))
        req->conda = xstrdup("torch");
    req->interactive = rng_bool(r);
    req->pty = rng_bool(r);
    req->vram_auto = rng_bool(r);
    req->rows = (int32_t)(rng_next(r) % 200);
    req->columns = (int32_t)(rng_next(r) % 400);
    req->on_timeout = (enum on_timeout)(rng_next(r) % 2);
    req->max_requeues = rng_i32(r);
    req->log_max_mib = rng_i32(r);
    req->warn_signal = rng_i32(r);
    req->warn_ms = rng_i64(r);
    req->begin_us = rng_i64(r);
    req->array_max = rng_i32(r);
    random_set(r, &req->array);
    random_deps(r, req);
    req->tags = random_tags(r);
    random_hooks(r, req);
    req->llm = rng_text_or_null(r);
    req->name = rng_text_or_null(r);
    req->log = rng_text_or_null(r);
    if (rng_bool(r)) {
        req->command = rng_text(r);
        return;
    }
    int n = (int)(rng_next(r) % 5);
    req->argv = xcalloc((unsigned long)n + 1, sizeof(char *));
    for (int i = 0; i < n; i++)
        req->argv[i] = rng_text(r);
}

struct job *
random_job(struct rng *r, uint32_t id)
{
    struct job *job = job_new();

    job->id = id;
    job->uid = (uint32_t)rng_i32(r);
    job->state = (enum job_state)(rng_next(r) % JOB_STATES);
    random_request(r, &job->req);
    job->declared_mib = rng_i32(r);
    job->oom_used = rng_i32(r);
    job->auto_runs = rng_i32(r);
    job->retries_used = rng_i32(r);
    job->misfires = rng_i32(r);
    job->cancel_asked = rng_bool(r);
    job->stop_grace_ms = rng_i64(r);
    job->requeue_asked = (uint8_t)(rng_next(r) % (REQUEUE_WANTED + 1));
    job->requeues_used = rng_i32(r);
    job->fingerprint = rng_text_or_null(r);
    job->array = (uint32_t)rng_i32(r);
    job->task = rng_i32(r);
    if (job->req.array.n > 0)
        random_book(r, job);
    job->order = rng_next(r) >> 2;
    job->submitted_us = rng_i64(r);
    job->lined_us = rng_i64(r);
    job->begin_us = rng_i64(r);
    job->ended_us = rng_i64(r);
    job->attempts = rng_i32(r);
    job->file = (uint32_t)rng_i32(r);
    job->line = rng_i32(r);
    job->key = rng_text_or_null(r);
    job->env = rng_i64(r);
    auto_free char *cwd = rng_text_or_null(r);
    job->cwd = shared_new(cwd);
    job->umask_bits = rng_i32(r);
    job->cancelled_by = rng_text_or_null(r);
    job->never_text = rng_text_or_null(r);
    return job;
}

static void
random_ending(struct rng *r, struct ending *end)
{
    auto_free char *text = rng_text(r);
    size_t n = strlen(text);

    end->outcome = (enum outcome)(rng_next(r) % (OUTCOME_NEVER_RAN + 1));
    end->code = rng_i32(r);
    end->signal = rng_i32(r);
    end->errno_value = rng_i32(r);
    end->oom = (enum oom_kind)(rng_next(r) % (OOM_HOST + 1));
    end->ended_us = rng_i64(r);
    end->run_ms = rng_i64(r);
    end->cpu_ms = rng_i64(r);
    end->max_rss_kib = rng_i64(r);
    end->log_cut_bytes = rng_i64(r);
    memcpy(end->text, text, n < sizeof end->text ? n : sizeof end->text - 1);
}

struct attempt *
random_attempt(struct rng *r, int32_t number)
{
    struct attempt *a = xcalloc(1, sizeof *a);

    a->number = number;
    a->n_gpus = (uint8_t)(rng_next(r) % (GPU_MAX + 1));
    for (int i = 0; i < a->n_gpus; i++) {
        a->gpus[i] = (uint8_t)(rng_next(r) % GPU_MAX);
        a->peak_mib[i] = rng_i32(r);
    }
    a->vram_mib = rng_i32(r);
    a->shepherd_pid = rng_i32(r);
    a->started_us = rng_i64(r);
    a->util_sum = rng_i64(r);
    a->util_count = rng_i32(r);
    a->energy_mj = rng_i64(r);
    a->warned = rng_bool(r);
    random_ending(r, &a->ending);
    return a;
}

const char *const *
some_uuids(int first)
{
    static char words[2 * GPU_MAX][24];
    static const char *list[2 * GPU_MAX];

    for (int i = 0; i < 2 * GPU_MAX; i++) {
        snprintf(words[i], sizeof words[i], "GPU-%04x-%d:%d", i * 77, i, i % 3);
        list[i] = words[i];
    }
    return list + first;
}

/* cmocka compares strings only; here NULL is a value of its own. */
static void
assert_same_text(const char *a, const char *b)
{
    if (!a || !b)
        assert_true(a == b);
    else
        assert_string_equal(a, b);
}

static void
assert_same_argv(char *const *a, char *const *b)
{
    if (!a || !b) {
        assert_true(!a && !b);
        return;
    }
    for (; *a && *b; a++, b++)
        assert_string_equal(*a, *b);
    assert_true(!*a && !*b);
}

static void
assert_same_set(const struct task_set *a, const struct task_set *b)
{
    assert_int_equal(a->n, b->n);
    for (int i = 0; i < a->n; i++) {
        assert_int_equal(a->ranges[i].first, b->ranges[i].first);
        assert_int_equal(a->ranges[i].last, b->ranges[i].last);
    }
}

static void
assert_same_deps(const struct request *a, const struct request *b)
{
    assert_int_equal(a->n_deps, b->n_deps);
    for (int i = 0; i < a->n_deps; i++) {
        assert_int_equal(a->deps[i].type, b->deps[i].type);
        assert_int_equal(a->deps[i].job, b->deps[i].job);
        assert_int_equal(a->deps[i].task, b->deps[i].task);
        assert_int_equal(a->deps[i].ended, b->deps[i].ended);
    }
}

static void
assert_same_book(const struct tasks *a, const struct tasks *b)
{
    assert_true(!a == !b);
    if (!a || !b)
        return;
    assert_same_set(&a->pending, &b->pending);
    assert_int_equal(a->total, b->total);
    assert_memory_equal(a->ended, b->ended, sizeof a->ended);
    assert_int_equal(a->n_statuses, b->n_statuses);
    for (int i = 0; i < a->n_statuses; i++) {
        assert_int_equal(a->statuses[i].status, b->statuses[i].status);
        assert_int_equal(a->statuses[i].n, b->statuses[i].n);
    }
}

static void
assert_same_hooks(const struct hooks *a, const struct hooks *b)
{
    assert_int_equal(a != NULL, b != NULL);
    if (!a || !b)
        return;
    assert_same_text(a->on_start, b->on_start);
    assert_same_text(a->on_end, b->on_end);
    assert_same_text(a->on_fail, b->on_fail);
    assert_same_text(a->webhook, b->webhook);
    assert_same_text(a->mail_user, b->mail_user);
    assert_int_equal(a->mail_types, b->mail_types);
}

static void
assert_same_request(const struct request *a, const struct request *b)
{
    assert_memory_equal(&a->demand, &b->demand, sizeof a->demand);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->oom_retries, b->oom_retries);
    assert_int_equal(a->retries, b->retries);
    assert_true(a->limit_ms == b->limit_ms);
    assert_true(a->grace_ms == b->grace_ms);
    assert_int_equal(a->hold, b->hold);
    assert_int_equal(a->cancel, b->cancel);
    assert_int_equal(a->requeue, b->requeue);
    assert_int_equal(a->unique, b->unique);
    assert_int_equal(a->preemptible, b->preemptible);
    assert_int_equal(a->login, b->login);
    assert_int_equal(a->screen, b->screen);
    assert_same_text(a->env_setup, b->env_setup);
    assert_same_text(a->conda, b->conda);
    assert_int_equal(a->interactive, b->interactive);
    assert_int_equal(a->pty, b->pty);
    assert_int_equal(a->vram_auto, b->vram_auto);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->columns, b->columns);
    assert_int_equal(a->on_timeout, b->on_timeout);
    assert_int_equal(a->max_requeues, b->max_requeues);
    assert_int_equal(a->log_max_mib, b->log_max_mib);
    assert_int_equal(a->warn_signal, b->warn_signal);
    assert_true(a->warn_ms == b->warn_ms);
    assert_true(a->begin_us == b->begin_us);
    assert_int_equal(a->array_max, b->array_max);
    assert_same_set(&a->array, &b->array);
    assert_same_deps(a, b);
    assert_same_argv(a->tags, b->tags);
    assert_same_hooks(a->hooks, b->hooks);
    assert_same_text(a->llm, b->llm);
    assert_same_text(a->name, b->name);
    assert_same_text(a->command, b->command);
    assert_same_text(a->log, b->log);
    assert_same_argv(a->argv, b->argv);
}

void
assert_same_job(const struct job *a, const struct job *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->uid, b->uid);
    assert_int_equal(a->state, b->state);
    assert_same_request(&a->req, &b->req);
    assert_int_equal(a->declared_mib, b->declared_mib);
    assert_int_equal(a->auto_runs, b->auto_runs);
    assert_int_equal(a->oom_used, b->oom_used);
    assert_int_equal(a->retries_used, b->retries_used);
    assert_int_equal(a->misfires, b->misfires);
    assert_int_equal(a->cancel_asked, b->cancel_asked);
    assert_int_equal(a->stop_grace_ms, b->stop_grace_ms);
    assert_int_equal(a->requeue_asked, b->requeue_asked);
    assert_int_equal(a->requeues_used, b->requeues_used);
    assert_same_text(a->fingerprint, b->fingerprint);
    assert_int_equal(a->array, b->array);
    assert_int_equal(a->task, b->task);
    assert_same_book(a->tasks, b->tasks);
    assert_true(a->order == b->order);
    assert_true(a->submitted_us == b->submitted_us);
    assert_true(a->lined_us == b->lined_us);
    assert_true(a->begin_us == b->begin_us);
    assert_true(a->ended_us == b->ended_us);
    assert_int_equal(a->attempts, b->attempts);
    assert_int_equal(a->file, b->file);
    assert_int_equal(a->line, b->line);
    assert_same_text(a->key, b->key);
    assert_true(a->env == b->env);
    assert_same_text(a->cwd, b->cwd);
    assert_int_equal(a->umask_bits, b->umask_bits);
    assert_same_text(a->cancelled_by, b->cancelled_by);
    assert_same_text(a->never_text, b->never_text);
    assert_true(!a->run == !b->run);
    if (a->run && b->run)
        assert_same_attempt(a->run, b->run);
}

static void
assert_same_ending(const struct ending *a, const struct ending *b)
{
    assert_int_equal(a->outcome, b->outcome);
    assert_int_equal(a->code, b->code);
    assert_int_equal(a->signal, b->signal);
    assert_int_equal(a->errno_value, b->errno_value);
    assert_int_equal(a->oom, b->oom);
    assert_true(a->ended_us == b->ended_us);
    assert_true(a->run_ms == b->run_ms);
    assert_true(a->cpu_ms == b->cpu_ms);
    assert_true(a->max_rss_kib == b->max_rss_kib);
    assert_true(a->log_cut_bytes == b->log_cut_bytes);
    assert_string_equal(a->text, b->text);
}

void
assert_same_attempt(const struct attempt *a, const struct attempt *b)
{
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->n_gpus, b->n_gpus);
    assert_memory_equal(a->gpus, b->gpus, a->n_gpus);
    assert_memory_equal(a->peak_mib, b->peak_mib, a->n_gpus * sizeof a->peak_mib[0]);
    assert_int_equal(a->vram_mib, b->vram_mib);
    assert_int_equal(a->shepherd_pid, b->shepherd_pid);
    assert_true(a->started_us == b->started_us);
    assert_true(a->util_sum == b->util_sum);
    assert_int_equal(a->util_count, b->util_count);
    assert_true(a->energy_mj == b->energy_mj);
    assert_int_equal(a->warned, b->warned);
    assert_same_ending(&a->ending, &b->ending);
}

struct job *
plain_job(uint32_t id, const char *command)
{
    struct job *job = job_new();

    job->id = id;
    job->order = id;
    job->req.command = xstrdup(command);
    return job;
}

void
add_plain_job(struct store *s, uint32_t id)
{
    struct job *job = plain_job(id, "true");
    struct err e = {0};

    if (store_job_insert(s, job, &e) < 0)
        fail_msg("store_job_insert: %s", e.text);
    job_free(job);
}
