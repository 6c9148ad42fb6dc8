/* The lines of the jobs file and the daemon: what waits is told as a whole, lowest priority
 * number first and in the file's order within one, whenever it has changed; starts and ends
 * come back as events. A line that was seen once stays queued when it is taken out of the file,
 * as it always did. What completed is known to the daemon and never runs again; what failed
 * otherwise runs again with a new start of the scheduler, or when its line is added once more.
 */
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/answer.h"
#include "cli/compat/pytext.h"
#include "cli/compat/scheduler.h"
#include "cli/render.h"
#include "spec/attr.h"
#include "wire/client.h"

#define JOBS_MAX_BYTES (256UL << 20)
#define LOOK_US        50000 /* several starts are one look at the cards */

static struct sched_job *
job_of_id(const struct sched *s, int64_t id)
{
    struct sched_job *job;

    HASH_FIND(by_id, s->ids, &id, sizeof id, job);
    return job;
}

static void
set_id(struct sched *s, struct sched_job *job, int64_t id)
{
    if (job->id == id || id == 0)
        return;
    if (job->id)
        HASH_DELETE(by_id, s->ids, job);
    job->id = id;
    HASH_ADD(by_id, s->ids, id, sizeof job->id, job);
}

static json_t *
details_of(const struct sched_job *job)
{
    json_t *d =
        json_pack("{s:o,s:[]}", "job_id", json_sprintf("%lld", (long long)job->id), "gpu_ids");

    for (int i = 0; i < job->n_gpus; i++)
        json_array_append_new(json_object_get(d, "gpu_ids"), json_integer(job->gpus[i]));
    json_object_set_new(d, "required_gpus", json_real(job->spec.need));
    json_object_set_new(d, "script", json_string(job->spec.script));
    return d;
}

/* -------------------------------------------------------------------- the file */

static bool
is_script(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Of what may not be there yet: that of its folder. */
static char *
real_path(const char *path)
{
    auto_free char *for_dir = xstrdup(path), *for_name = xstrdup(path);
    char *real = realpath(path, NULL);
    auto_free char *folder = real ? NULL : realpath(dirname(for_dir), NULL);

    return real || !folder ? real : xasprintf("%s/%s", folder, basename(for_name));
}

bool
sched_script_allowed(char *const *allowed_paths, const char *script, struct buf *why)
{
    auto_free char *real = real_path(script);

    if (!allowed_paths)
        return true;
    for (char *const *path = allowed_paths; real && *path; path++) {
        auto_free char *allowed = realpath(*path, NULL);
        size_t n = allowed ? strlen(allowed) : 0;

        if (n && strncmp(real, allowed, n) == 0 &&
            (real[n] == '/' || real[n] == '\0' || allowed[n - 1] == '/'))
            return true;
    }
    buf_addf(why, "the script %s lies outside of the allowed paths", real ? real : script);
    return false;
}

static void
complain(struct sched *s, int line, const char *text, const char *why)
{
    auto_free char *words = xasprintf("%s\n%s", text, why);

    if (sched_say_once(s, words))
        sched_log(&s->log, SCHED_ERROR, NULL, "%s line %d: %s: %s", s->config.jobs_file, line,
                  why, text);
}

static void
add_job(struct sched *s, struct sched_spec *spec, int line)
{
    struct sched_job *job;

    HASH_FIND_STR(s->jobs, spec->key, job);
    if (!job) {
        job = xcalloc(1, sizeof *job);
        job->spec = *spec;
        *spec = (struct sched_spec){0};
        HASH_ADD_STR(s->jobs, spec.key, job);
        job->line = line;
        s->sync_due = true;
    } else if (job->copies == 0 &&
               (job->spec.priority != spec->priority || job->line != line)) {
        job->spec.priority = spec->priority;
        job->line = line;
        s->sync_due |= job->status == SCHED_WAITING;
    }
    job->copies++;
    job->in_file = true;
    sched_spec_free(spec);
}

static void
take_line(struct sched *s, const char *text, size_t n, int number)
{
    const struct sched_rules rules = {
        &s->table, s->managed ? 64 - __builtin_clzll(s->managed) : 0, s->config.is_10x};
    auto_buf struct buf why = BUF_INIT;
    struct sched_spec spec;
    enum sched_line kind = sched_line_parse(text, n, &rules, &spec, &why);

    if (kind == SCHED_LINE_NOTHING)
        return;
    if (kind == SCHED_LINE_BAD) {
        auto_free char *words = xstrndup(text, n);

        complain(s, number, words, buf_str(&why));
        return;
    }
    if (why.len)
        complain(s, number, spec.text, buf_str(&why));
    buf_clear(&why);
    if (!is_script(spec.script)) {
        s->missing = true;
        complain(s, number, spec.text, "there is no such script yet, so the job is not added");
        sched_spec_free(&spec);
    } else if (!sched_script_allowed(s->config.allowed_paths, spec.script, &why)) {
        complain(s, number, spec.text, buf_str(&why));
        sched_spec_free(&spec);
    } else {
        add_job(s, &spec, number);
    }
}

/* Who writes an ended line into the file once more wants it to run once more. */
static void
note_copies(struct sched *s)
{
    for (struct sched_job *job = s->jobs; job; job = job->hh.next) {
        bool is_more = job->copies > job->said_copies;

        if (is_more && job->said_copies > 0 && job->status == SCHED_FAILED) {
            job->status = SCHED_NEW;
            job->again = s->sync_due = true;
            job->never = false;
        }
        job->said_copies = job->copies;
    }
}

void
sched_load(struct sched *s)
{
    auto_buf struct buf text = BUF_INIT;
    struct err why = {0};
    int number = 0;

    if (!s->config.jobs_file[0])
        return;
    (void)run_file_has_changed(&s->jobs_mark);
    s->missing = false;
    if (file_read(s->config.jobs_file, JOBS_MAX_BYTES, &text, &why) < 0) {
        if (sched_say_once(s, why.text))
            sched_log(&s->log, SCHED_WARNING, NULL, "%s", why.text);
        return;
    }
    for (struct sched_job *job = s->jobs; job; job = job->hh.next) {
        job->copies = 0;
        job->in_file = false;
    }
    for (const char *at = buf_str(&text), *end = at + text.len; at < end;) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((nl ? nl : end) - at);

        take_line(s, at, n, ++number);
        at += n + 1;
    }
    note_copies(s);
}

/* ------------------------------------------------------------------- a request */

static bool
is_whole(const struct sched *s, double need)
{
    return need > 1 + s->config.precision || need >= 0.995;
}

static int
cards_needed(const struct sched *s, double need)
{
    return need > 1 + s->config.precision ? (int)ceil(need - 1e-9) : 1;
}

/* Of equals as many share a card as the tolerance lets in. */
static int32_t
permille_of(const struct sched *s, double need)
{
    int32_t own = (int32_t)lround(need * 1000);
    int32_t most = (int32_t)(1000 / floor((1 + s->config.precision) / need + 1e-9));

    own = own < most ? own : most;
    return own > 0 ? own : 1;
}

static int32_t
guard_of(double threshold)
{
    if (!(threshold <= 1))
        return 0;
    return threshold > 0.001 ? (int32_t)lround(threshold * 1000) : 1;
}

static uint64_t
devices_of(const struct sched *s, const struct sched_job *job)
{
    return s->managed & (job->spec.allowed ? job->spec.allowed : UINT64_MAX);
}

static void
fill_demand(const struct sched *s, const struct sched_job *job, struct demand *d)
{
    d->gpus = cards_needed(s, job->spec.need);
    if (!is_whole(s, job->spec.need))
        d->share_permille = permille_of(s, job->spec.need);
    d->devices = devices_of(s, job) & ~s->paused_alone;
    d->max_used_permille = guard_of(s->config.mem_threshold);
    d->max_load_permille = guard_of(s->config.load_threshold);
    d->idle_mib = VRAM_MAX_MIB; /* strangers are what the thresholds are for */
    d->placement = s->config.is_10x ? PLACING_SPREAD : PLACING_FIRST;
}

static char **
command_of(const struct sched *s, const struct sched_job *job)
{
    const struct sched_config *c = &s->config;
    const struct sched_spec *spec = &job->spec;
    size_t n = 0, at = 0;

    while (spec->args[n])
        n++;

    char **argv = xcalloc(n + 16, sizeof *argv);

    argv[at++] = xstrdup(s->self);
    argv[at++] = xstrdup("compat");
    argv[at++] = xstrdup("scheduler-job");
    argv[at++] = xasprintf("--need=%.4g", spec->need);
    argv[at++] = xasprintf("--hash=%.8s", spec->key);
    argv[at++] = xasprintf("--line=%s", spec->text ? spec->text : "");
    if (spec->conda)
        argv[at++] = xasprintf("--conda=%s", spec->conda);
    if (c->cuda)
        argv[at++] = xstrdup(c->local_cuda ? "--cuda=local" : "--cuda=physical");
    if (c->screen)
        argv[at++] = xstrdup("--screen");
    if (c->is_10x)
        argv[at++] = xasprintf("--memory-mib=%lld", (long long)c->mem_mib);
    for (char **path = c->allowed_paths; path && *path; path++) {
        argv = xrealloc(argv, (n + at + 16) * sizeof *argv);
        argv[at++] = xasprintf("--allowed=%s", *path);
    }
    argv[at++] = xstrdup("--");
    argv[at++] = xstrdup(spec->script);
    for (char **arg = spec->args; *arg; arg++)
        argv[at++] = xstrdup(*arg);
    argv[at] = NULL;
    return argv;
}

/* job_ID_STAMP.log, or the name of its screen session. */
static char *
log_of(const struct sched *s, const struct sched_job *job)
{
    auto_buf struct buf out = BUF_INIT;

    for (const char *p = s->log_dir; *p; p++) {
        if (*p == '%')
            buf_addc(&out, '%');
        buf_addc(&out, *p);
    }
    if (s->config.screen || s->config.is_10x) {
        buf_addf(&out, "/output_gpujob_%%g_%s_%%j.%s", job->spec.mode,
                 s->config.is_10x ? "log" : "typescript");
    } else {
        buf_adds(&out, "/job_%j_");
        py_add_time(&out, PY_STAMP, job->stamp_us);
        buf_adds(&out, ".log");
    }
    return buf_take(&out);
}

static int32_t
priority_of(const struct sched *s, const struct sched_job *job)
{
    int64_t p = job->spec.priority;

    if (p >= -PRIORITY_MIN)
        return PRIORITY_MIN;
    if (p < 0 && s->no_priority)
        return 0;
    return p <= -PRIORITY_MAX ? PRIORITY_MAX : (int32_t)-p;
}

void
sched_request_fill(struct sched *s, const struct sched_job *job, struct request *r)
{
    auto_free char *script = xstrdup(job->spec.script);

    request_init(r);
    r->argv = command_of(s, job);
    r->name = xstrdup(basename(script));
    r->log = log_of(s, job);
    r->conda = xstrdup(job->spec.conda ? job->spec.conda : "");
    r->screen = s->config.screen;
    r->retries = s->config.retries;
    r->limit_ms = s->config.limit_ms;
    r->gpus_said = true;
    r->priority = priority_of(s, job);
    r->tags = xcalloc(2, sizeof *r->tags);
    r->tags[0] = xstrdup(s->tag);
    fill_demand(s, job, &r->demand);
}

/* ------------------------------------------------------------------ telling it */

static int
by_turn(const void *a, const void *b)
{
    const struct sched_job *x = *(struct sched_job *const *)a;
    const struct sched_job *y = *(struct sched_job *const *)b;

    if (x->spec.priority != y->spec.priority)
        return x->spec.priority < y->spec.priority ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static void
refuse(struct sched *s, struct sched_job *job, const char *why)
{
    job->never = true;
    sched_log(&s->log, SCHED_ERROR, details_of(job), "%s cannot run: %s", job->spec.text, why);
}

/* Whether it is told to the daemon now. */
static bool
is_to_be_sent(struct sched *s, struct sched_job *job, int64_t room)
{
    int needed = cards_needed(s, job->spec.need);
    uint64_t devices = devices_of(s, job);

    if (job->added || job->never || job->status > SCHED_RUNNING)
        return false;
    if (__builtin_popcountll(devices) < needed) {
        auto_free char *why = xasprintf("it needs %d GPUs, and may use %d", needed,
                                        __builtin_popcountll(devices));

        refuse(s, job, why);
        return false;
    }
    job->held_back = __builtin_popcountll(devices & ~s->paused_alone) < needed ||
                     (job->status == SCHED_NEW && room <= 0);
    return !job->held_back || job->status == SCHED_RUNNING;
}

static int64_t
count_waiting(const struct sched *s)
{
    int64_t n = 0;

    for (const struct sched_job *job = s->jobs; job; job = job->hh.next)
        n += job->status == SCHED_WAITING;
    return n;
}

static size_t
choose(struct sched *s, struct sched_job **chosen)
{
    int64_t room = s->config.queue_max ? s->config.queue_max - count_waiting(s) : INT64_MAX;
    size_t n = 0, kept = 0;

    for (struct sched_job *job = s->jobs; job; job = job->hh.next)
        chosen[n++] = job;
    qsort(chosen, n, sizeof *chosen, by_turn);
    for (size_t i = 0; i < n; i++) {
        struct sched_job *job = chosen[i];

        if (!is_to_be_sent(s, job, room))
            continue;
        room -= job->status == SCHED_NEW;
        chosen[kept++] = job;
    }
    return kept;
}

static size_t
fill_lines(struct sched *s, struct sched_job **chosen, size_t n, struct request *requests,
           struct compat_line *lines)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct sched_job *job = chosen[i];
        struct err e = {0};

        if (!job->stamp_us)
            job->stamp_us = clock_wall_us();
        sched_request_fill(s, job, &requests[kept]);
        if (request_validate(&requests[kept], &e) < 0) {
            refuse(s, job, e.text);
            request_free(&requests[kept]);
            continue;
        }
        lines[kept] =
            (struct compat_line){job->spec.key, job->line, &requests[kept], job->again};
        chosen[kept++] = job;
    }
    return kept;
}

static int
send_lines(struct sched *s, struct sched_job **chosen, size_t *n, json_t **result,
           struct err *e)
{
    auto_free struct request *requests = xcalloc(*n + 1, sizeof *requests);
    auto_free struct compat_line *lines = xcalloc(*n + 1, sizeof *lines);
    int rc;

    *n = fill_lines(s, chosen, *n, requests, lines);
    rc = compat_sync(&s->session, s->sync_path, lines, *n, false, result, e);
    for (size_t i = 0; i < *n; i++)
        request_free(&requests[i]);
    if (rc == 0 || e->code != ERR_PERMISSION || s->no_priority)
        return rc;
    /* The machine's daemon: a priority above the usual is not for everybody. */
    s->no_priority = true;
    return send_lines(s, chosen, n, result, e);
}

static void
say_refused(struct sched *s, const json_t *result)
{
    size_t i;
    json_t *line;

    json_array_foreach(json_object_get(result, "refused"), i, line)
    {
        struct sched_job *job;

        HASH_FIND_STR(s->jobs, answer_str(line, "key"), job);
        if (job && !job->never)
            refuse(s, job, answer_str(line, "error"));
    }
}

static void
take_known(struct sched *s, struct sched_job *job, const char *state, json_t *active)
{
    bool is_new = job->status == SCHED_NEW;

    job->again = false;
    if (render_state_is_active(state)) {
        if (job->status != SCHED_RUNNING)
            json_array_append_new(active, json_sprintf("%lld", (long long)job->id));
    } else if (!render_state_is_final(state)) {
        if (is_new)
            sched_log(&s->log, SCHED_INFO, details_of(job), "Job %lld queued: %s",
                      (long long)job->id, job->spec.text);
        job->status = SCHED_WAITING;
    } else if (strcmp(state, "COMPLETED") == 0) {
        if (is_new)
            sched_log(&s->log, SCHED_INFO, details_of(job),
                      "Job %lld has completed before and is not run again: %s",
                      (long long)job->id, job->spec.text);
        job->status = SCHED_COMPLETED;
    } else if (strcmp(state, "INFEASIBLE") == 0) {
        job->status = SCHED_FAILED;
    } else if (is_new) {
        job->again = s->sync_due = true;
    }
}

static void
set_running(struct sched_job *job, const json_t *gpus)
{
    size_t i;
    json_t *gpu;

    job->status = SCHED_RUNNING;
    job->n_gpus = 0;
    json_array_foreach(gpus, i, gpu)
    {
        int64_t index = json_is_object(gpu) ? answer_int(gpu, "index", -1)
                                            : (int64_t)json_integer_value(gpu);

        if (index >= 0 && index < GPU_MAX && job->n_gpus < GPU_MAX)
            job->gpus[job->n_gpus++] = (uint8_t)index;
    }
}

/* What runs already, and no event has told. */
static int
adopt(struct sched *s, const json_t *active, struct err *e)
{
    auto_json json_t *result = NULL;
    size_t i;
    json_t *object;

    if (json_array_size(active) == 0)
        return 0;
    if (compat_call(&s->session, "jobs", json_pack("{s:O,s:b}", "select", active, "all", 1),
                    &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "jobs"), i, object)
    {
        struct sched_job *job = job_of_id(s, answer_int(object, "id", 0));

        if (job && render_state_is_active(answer_str(object, "state")))
            set_running(job, json_object_get(object, "gpus"));
    }
    s->look_due_us = clock_boot_us();
    return 0;
}

/* scheduler_10x hears of all jobs: those that `add` hands over are of no file. */
static int
follow(struct sched *s, struct err *e)
{
    auto_json json_t *result = NULL;

    s->following = true;
    if (!s->config.is_10x)
        return compat_follow(&s->session, e);
    if (compat_call(&s->session, "events",
                    json_pack("{s:b,s:I,s:[ssssss]}", "follow", 1, "since",
                              (json_int_t)s->session.seq, "kinds", "submitted", "started",
                              "requeued", "ended", "gpu", "cancelled"),
                    &result, e) < 0)
        return -1;
    json_array_extend(s->session.events, json_object_get(result, "events"));
    return 0;
}

int
sched_sync(struct sched *s, struct err *e)
{
    auto_free struct sched_job **chosen =
        xcalloc(HASH_COUNT(s->jobs) + 1, sizeof(struct sched_job *));
    auto_json json_t *result = NULL, *active = json_array();
    size_t n = choose(s, chosen), i;
    json_t *line;

    s->sync_due = false;
    if (send_lines(s, chosen, &n, &result, e) < 0 || (!s->following && follow(s, e) < 0))
        return -1;
    json_array_foreach(json_object_get(result, "lines"), i, line)
    {
        if (i >= n)
            break;
        set_id(s, chosen[i], answer_int(line, "id", 0));
        take_known(s, chosen[i], answer_str(line, "state"), active);
    }
    say_refused(s, result);
    sched_log(&s->log, SCHED_DEBUG, NULL, "The daemon knows of %zu jobs that wait or run", n);
    sched_log(&s->log, SCHED_DEBUG, NULL, "The daemon knows of %zu jobs that wait or run", n);
    return adopt(s, active, e);
}

/* ------------------------------------------------------------ what `add` handed over */

/* What the process of a job was told: behind -- stand script and arguments. */
static bool
read_command(struct sched_spec *spec, const char *command)
{
    auto_buf struct buf why = BUF_INIT;
    char **words = sched_split(command, &why);
    char **at = words;

    for (; at && *at && strcmp(*at, "--") != 0; at++) {
        if (strncmp(*at, "--need=", 7) == 0)
            (void)py_float(*at + 7, &spec->need);
    }
    if (at && at[0] && at[1])
        spec->script = xstrdup(at[1]);
    spec->text = xstrdup(spec->script ? spec->script : command);
    spec->args = xcalloc(1, sizeof *spec->args);
    sched_words_free(words);
    return spec->script != NULL;
}

static struct sched_job *
take_added(struct sched *s, const json_t *object)
{
    int64_t id = answer_int(object, "id", 0);
    struct sched_job *job = job_of_id(s, id);

    if (job || !sched_has_tag(object, s->tag) || json_is_string(json_object_get(object, "key")))
        return job;
    job = xcalloc(1, sizeof *job);
    (void)read_command(&job->spec, answer_str(object, "command"));
    snprintf(job->spec.key, sizeof job->spec.key, "+%lld", (long long)id);
    job->added = true;
    job->status = SCHED_WAITING;
    HASH_ADD_STR(s->jobs, spec.key, job);
    set_id(s, job, id);
    if (render_state_is_active(answer_str(object, "state")))
        set_running(job, json_object_get(object, "gpus"));
    return job;
}

/* Those that wait or run now; ids of those that are held go to *held. */
static int
list_added(struct sched *s, json_t *held, struct err *e)
{
    auto_json json_t *jobs = sched_live_jobs(s->session.link.client, s->tag, e);
    size_t i;
    json_t *object;

    if (!jobs)
        return -1;
    json_array_foreach(jobs, i, object)
    {
        const struct sched_job *job = take_added(s, object);

        if (held && job && job->added && strcmp(answer_str(object, "state"), "HELD") == 0)
            json_array_append_new(held, json_sprintf("%lld", (long long)job->id));
    }
    return 0;
}

int
sched_recall_added(struct sched *s, struct err *e)
{
    auto_json json_t *held = json_array();

    if (list_added(s, held, e) < 0)
        return -1;
    if (json_array_size(held) == 0)
        return 0;
    return compat_call(&s->session, "release", json_pack("{s:O}", "select", held), NULL, e);
}

static struct sched_job *
find_added(struct sched *s, int64_t id)
{
    auto_json json_t *result = NULL;
    json_t *params =
        json_pack("{s:[o],s:b}", "select", json_sprintf("%lld", (long long)id), "all", 1);

    if (compat_call(&s->session, "jobs", params, &result, NULL) < 0)
        return NULL;
    return take_added(s, json_array_get(json_object_get(result, "jobs"), 0));
}

/* ------------------------------------------------------------------- being told */

static void
on_started(struct sched *s, struct sched_job *job, const json_t *ev)
{
    auto_buf struct buf gpus = BUF_INIT;

    set_running(job, json_object_get(ev, "gpus"));
    answer_add_gpus(&gpus, json_object_get(ev, "gpus"));
    sched_log(&s->log, SCHED_INFO, details_of(job), "Job %lld assigned to GPU %s: %s",
              (long long)job->id, buf_str(&gpus), job->spec.script);
}

static void
on_ended(struct sched *s, struct sched_job *job, const json_t *ev)
{
    const char *state = answer_str(ev, "state");
    bool ok = strcmp(state, "COMPLETED") == 0;
    json_t *details;

    if (job->status == SCHED_NEW || (s->leaving && job->status == SCHED_WAITING))
        return;
    job->status = ok ? SCHED_COMPLETED : SCHED_FAILED;
    job->n_gpus = 0;
    s->processed++;
    s->sync_due |= s->config.queue_max > 0;
    details = details_of(job);
    json_object_set_new(details, "exit_code", json_integer(answer_int(ev, "exit_status", 0)));
    if (ok)
        sched_log(&s->log, SCHED_INFO, details, "Job %lld completed: %s", (long long)job->id,
                  job->spec.script);
    else
        sched_log(&s->log, SCHED_ERROR, details, "Job %lld %s (%s): %s", (long long)job->id,
                  strcmp(state, "CANCELLED") == 0 ? "was cancelled" : "failed",
                  answer_str(ev, "text")[0] ? answer_str(ev, "text") : state, job->spec.script);
}

static void
on_requeued(struct sched *s, struct sched_job *job, const json_t *ev)
{
    job->status = SCHED_WAITING;
    job->n_gpus = 0;
    sched_log(&s->log, SCHED_WARNING, details_of(job), "Job %lld runs again (%s): %s",
              (long long)job->id, answer_str(ev, "text"), job->spec.script);
}

static void
take_event(struct sched *s, const json_t *ev)
{
    const char *kind = answer_str(ev, "kind");
    int64_t seq = answer_int(ev, "seq", 0), id = answer_int(ev, "job", 0);
    struct sched_job *job = job_of_id(s, id);

    if (seq > s->session.seq)
        s->session.seq = seq;
    else if (seq > 0)
        return;
    if (strcmp(kind, "gpu") == 0)
        s->look_due_us = clock_boot_us();
    if (!job && s->config.is_10x && id && !json_object_get(ev, "file"))
        job = find_added(s, id);
    if (!job)
        return;
    if (strcmp(kind, "started") == 0)
        on_started(s, job, ev);
    else if (strcmp(kind, "requeued") == 0)
        on_requeued(s, job, ev);
    else if (strcmp(kind, "ended") == 0)
        on_ended(s, job, ev);
    else
        return;
    if (!s->look_due_us)
        s->look_due_us = clock_boot_us() + LOOK_US;
}

void
sched_take_events(struct sched *s)
{
    auto_json json_t *events = s->session.events;
    size_t i;
    json_t *ev;

    s->session.events = json_array(); /* more may come while we ask */
    json_array_foreach(events, i, ev) take_event(s, ev);
}

/* ---------------------------------------------------------------------- leaving */

/* Jobs in screen sessions go on without a scheduler, as they always did. */
static bool
is_stopped_with_us(const struct sched *s, const struct sched_job *job)
{
    return job->status == SCHED_RUNNING && job->id && !s->config.screen;
}

bool
sched_any_to_await(const struct sched *s)
{
    for (const struct sched_job *job = s->jobs; job; job = job->hh.next) {
        if (is_stopped_with_us(s, job))
            return true;
    }
    return false;
}

int
sched_stop(struct sched *s, struct err *e)
{
    auto_json json_t *result = NULL, *waiting = json_array(), *running = json_array();

    s->leaving = true;
    if (s->config.is_10x && list_added(s, NULL, e) < 0)
        return -1;
    for (const struct sched_job *job = s->jobs; job; job = job->hh.next) {
        if (job->added && job->status == SCHED_WAITING)
            json_array_append_new(waiting, json_sprintf("%lld", (long long)job->id));
        if (is_stopped_with_us(s, job))
            json_array_append_new(running, json_sprintf("%lld", (long long)job->id));
    }
    /* What waits comes from the file again, next time; what `add` handed over is kept. */
    if (compat_sync(&s->session, s->sync_path, NULL, 0, false, &result, e) < 0 ||
        (json_array_size(waiting) > 0 &&
         compat_call(&s->session, "hold", json_pack("{s:O}", "select", waiting), NULL, e) < 0))
        return -1;
    if (json_array_size(running) == 0)
        return 0;
    return compat_call(
        &s->session, "cancel",
        json_pack("{s:O,s:I}", "select", running, "grace_ms", (json_int_t)s->config.stop_ms),
        NULL, e);
}
