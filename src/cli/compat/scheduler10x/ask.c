/* Commands of `scheduler_10x` that act on a running scheduler: they find it by its state file,
 * whose lock says who drives it, and speak to the daemon behind it. What they report has
 * happened. */
#include <libgen.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/compat/records.h"
#include "cli/compat/scheduler/scheduler.h"
#include "cli/compat/scheduler10x/scheduler10x.h"
#include "cli/jobreq.h"
#include "cli/render.h"
#include "spec/attr.h"
#include "wire/client.h"
#include "wire/places.h"

#define STATE_FILE "gpu_scheduler_state.json"
#define PAGE       200 /* whole objects in one answer */
#define PATH_BYTES 4096

__attribute__((format(printf, 2, 0))) static void
put(const char *icon, const char *fmt, va_list ap)
{
    auto_buf struct buf out = BUF_INIT;

    buf_adds(&out, icon);
    buf_addv(&out, fmt, ap);
    buf_addc(&out, '\n');
    (void)cli_put(&out);
}

int
x10_fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put("❌ ", fmt, ap);
    va_end(ap);
    return 1;
}

int
x10_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put("", fmt, ap);
    va_end(ap);
    return cli_output_status();
}

/* ------------------------------------------------------------- finding it */

/* Where a user's last scheduler says where it is. */
static char *
register_path(void)
{
    struct places p;
    char *path;

    if (places_find(NULL, &p, NULL) < 0)
        return NULL;
    path = xasprintf("%s.scheduler_10x", p.socket);
    places_free(&p);
    return path;
}

void
x10_register(const char *state_file)
{
    auto_free char *path = register_path();
    auto_free char *real = realpath(state_file, NULL);
    auto_free char *for_dir = path ? xstrdup(path) : NULL;

    if (!path || !real || file_mkdirs(dirname(for_dir), 0700, NULL) < 0)
        return;
    (void)file_write_atomic_at(-100, path, real, strlen(real), 0600, false, NULL);
}

static char *
registered(void)
{
    auto_free char *path = register_path();
    auto_buf struct buf text = BUF_INIT;

    if (!path || file_read(path, PATH_BYTES, &text, NULL) < 0 || text.len == 0)
        return NULL;
    return buf_take(&text);
}

void
x10_unregister(const char *state_file)
{
    auto_free char *path = register_path();
    auto_free char *real = realpath(state_file, NULL);
    auto_free char *said = registered();

    if (path && real && said && strcmp(real, said) == 0)
        (void)unlink(path);
}

void
x10_find(struct x10 *x, const char *state_file)
{
    *x = (struct x10){.state_file = xstrdup(state_file ? state_file : STATE_FILE)};
    x->about = sched_owner(x->state_file);
    if (!x->about && !state_file) {
        auto_free char *other = registered();
        json_t *about = other ? sched_owner(other) : NULL;

        if (about) {
            free(x->state_file);
            x->state_file = TAKE(other);
            x->about = about;
        }
    }
    if (!x->about)
        return;
    x->tag = xstrdup(answer_str(x->about, "tag"));
    x->client = sched_connect(x->state_file);
}

void
x10_free(struct x10 *x)
{
    free(x->state_file);
    free(x->tag);
    json_decref(x->about);
    client_free(x->client);
    *x = (struct x10){0};
}

static int
nobody(const struct x10 *x, const char *what)
{
    return x10_fail("%s: %s", what,
                    x->about ? "the daemon of the scheduler cannot be reached"
                             : "no scheduler runs here; 'scheduler_10x start' starts one");
}

/* ------------------------------------------------------------------- jobs */

json_t *
x10_live_jobs(const struct x10 *x, struct err *e)
{
    return sched_live_jobs(x->client, x->tag, e);
}

/* Pages come with the newest first, each in order. */
json_t *
x10_ended_jobs(const struct x10 *x, int64_t since_us, size_t most, struct err *e)
{
    auto_free char *tag = xasprintf("tag:%s", x->tag);
    json_t *all = json_array();
    json_int_t before = 0;

    do {
        auto_json json_t *result = NULL;
        json_t *page, *params = json_pack("{s:[s],s:b,s:i,s:I}", "select", tag, "ended", 1,
                                          "limit", PAGE, "since_us", (json_int_t)since_us);

        if (before)
            json_object_set_new(params, "before_id", json_integer(before));
        if (client_call(x->client, "jobs", params, &result, e) < 0) {
            json_decref(all);
            return NULL;
        }
        page = json_incref(json_object_get(result, "jobs"));
        before = json_integer_value(json_object_get(result, "before_id"));
        json_array_extend(page, all);
        json_decref(all);
        all = page;
    } while (before && json_array_size(all) < most);
    return all;
}

/* Its command is our own: behind -- stand script and arguments. */
char *
x10_script_of(const json_t *job)
{
    auto_buf struct buf why = BUF_INIT;
    char **words = sched_split(answer_str(job, "command"), &why), **at = words, *script;

    while (at && *at && strcmp(*at, "--") != 0)
        at++;
    script = xstrdup(at && at[0] && at[1] ? at[1] : answer_str(job, "name"));
    sched_words_free(words);
    return script;
}

/* -------------------------------------------------------------------- add */

/* What the scheduler said of its rules, for one job of somebody else's process. */
static void
take_rules(struct sched *s, const json_t *about)
{
    const json_t *paths = json_object_get(about, "allowed_paths");
    int n = (int)answer_int(about, "n_gpus", 1);

    s->config = (struct sched_config){
        .is_10x = true,
        .screen = answer_bool(about, "screen"),
        .mem_threshold = json_number_value(json_object_get(about, "mem_threshold")),
        .load_threshold = json_number_value(json_object_get(about, "load_threshold")),
        .precision = json_number_value(json_object_get(about, "precision")),
        .limit_ms = answer_int(about, "limit_ms", 0),
        .mem_mib = answer_int(about, "mem_mib", 0),
        .retries = (int)answer_int(about, "retries", 0),
        .allowed_paths = xcalloc(json_array_size(paths) + 1, sizeof(char *)),
    };
    for (size_t i = 0; i < json_array_size(paths); i++)
        s->config.allowed_paths[i] = xstrdup(json_string_value(json_array_get(paths, i)));
    s->managed = n >= GPU_MAX ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    s->tag = xstrdup(answer_str(about, "tag"));
    s->self = xstrdup(answer_str(about, "self"));
}

static void
drop_rules(struct sched *s)
{
    sched_words_free(s->config.allowed_paths);
    sched_free(s);
}

static int
read_job(struct sched *s, const struct x10_job *in, struct sched_spec *spec, struct buf *why)
{
    const struct sched_rules rules = {&s->table, 64 - __builtin_clzll(s->managed), true};

    spec->priority = in->priority;
    spec->script = xstrdup(in->script);
    if (in->conda && *in->conda)
        spec->conda = xstrdup(in->conda);
    spec->args = sched_split(in->args ? in->args : "", why);
    if (!spec->args)
        return -1;
    if (in->gpus && *in->gpus &&
        (!sched_gpus_read(in->gpus, &rules, &spec->allowed, why) || spec->allowed == 0)) {
        if (why->len == 0)
            buf_addf(why, "no GPU of '%s' exists here", in->gpus);
        return -1;
    }
    buf_clear(why);
    if (!sched_script_allowed(s->config.allowed_paths, in->script, why))
        return -1;
    spec->text = xstrdup(in->script);
    sched_spec_finish(spec, &s->table);
    return 0;
}

static int
check_room(const struct x10 *x, struct err *e)
{
    int64_t most = answer_int(x->about, "queue_max", 0), n = 0;
    auto_json json_t *jobs = x10_live_jobs(x, e);
    size_t i;
    json_t *job;

    if (!jobs)
        return -1;
    json_array_foreach(jobs, i, job) n += !render_state_is_active(answer_str(job, "state"));
    if (most > 0 && n >= most)
        return err_set(e, ERR_REFUSED, "the queue is full: %lld jobs wait, of %lld that may",
                       (long long)n, (long long)most);
    return 0;
}

static int
submit(const struct x10 *x, const struct request *r, int64_t *id, struct err *e)
{
    auto_free char *cwd = jobreq_current_folder(e);
    auto_buf struct buf params = BUF_INIT;
    auto_json json_t *result = NULL;
    struct jsonw w;

    if (!cwd)
        return -1;
    jsonw_init(&w, &params);
    jsonw_object(&w);
    jsonw_key(&w, "jobs");
    jsonw_array(&w);
    jsonw_object(&w);
    jobreq_add_fields(&w, r);
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    jobreq_add_context(&w, cwd, NULL);
    jsonw_end_object(&w);
    if (client_call_text(x->client, "submit", params.data, params.len, &result, e) < 0)
        return -1;
    *id = json_integer_value(json_array_get(json_object_get(result, "ids"), 0));
    return 0;
}

static int
hand_over(const struct x10 *x, struct sched *s, struct sched_job *job, int64_t *id,
          struct err *e)
{
    struct request r;
    int rc;

    request_init(&r);
    sched_request_fill(s, job, &r);
    rc = request_validate(&r, e);
    if (rc == 0)
        rc = submit(x, &r, id, e);
    /* The machine's daemon: a priority above the usual is not for everybody. */
    if (rc < 0 && e->code == ERR_PERMISSION && r.priority > 0) {
        r.priority = 0;
        rc = submit(x, &r, id, e);
    }
    request_free(&r);
    return rc;
}

static int
add_to_queue(const struct x10 *x, const struct x10_job *in)
{
    struct sched s = {.session = {.signals = -1}};
    struct sched_job job = {.stamp_us = clock_wall_us()};
    auto_buf struct buf why = BUF_INIT;
    struct err e = {0};
    int64_t id = 0;
    int rc;

    take_rules(&s, x->about);
    (void)sched_table_load(&s.table, answer_str(x->about, "llm_file"), &why);
    buf_clear(&why);
    s.log_dir = sched_log_dir(&e);
    rc = s.log_dir ? read_job(&s, in, &job.spec, &why) : -1;
    if (rc < 0 && why.len)
        err_set(&e, ERR_FAILED, "%s", buf_str(&why));
    if (rc == 0)
        rc = check_room(x, &e);
    if (rc == 0)
        rc = hand_over(x, &s, &job, &id, &e);
    sched_spec_free(&job.spec);
    drop_rules(&s);
    if (rc < 0)
        return x10_fail("Failed to add job: %s", e.text);
    return x10_say("✅ Job added with ID: %lld", (long long)id);
}

static int
add_to_file(const struct x10 *x, const struct x10_job *in)
{
    const char *said = answer_str(x->about, "jobs_file");
    const char *path = *said ? said : "jobs.txt";
    const char *const fields[] = {in->conda, in->args, in->gpus};
    auto_buf struct buf line = BUF_INIT;
    struct err e = {0};

    sched_line_add(&line, in->priority, in->script, fields);
    if (records_append(path, &line, false, &e) < 0)
        return x10_fail("Failed to add job: %s", e.text);
    return x10_say("✅ Job added to %s", path);
}

int
x10_add(const struct x10 *x, const struct x10_job *job)
{
    if (job->to_file)
        return add_to_file(x, job);
    return x->client ? add_to_queue(x, job) : nobody(x, "Failed to add job");
}

/* ---------------------------------------------------- pausing, cancelling */

static int
count_gpus(const struct x10 *x)
{
    struct sched_state state;

    if (x->about)
        return (int)answer_int(x->about, "n_gpus", 0);
    if (sched_state_read(x->state_file, &state, NULL) == 0 && state.n > 0)
        return state.n;
    return sched_count_cards();
}

int
x10_pause(const struct x10 *x, int64_t gpu, bool pause)
{
    const char *word = pause ? "pause" : "resume";
    int n = count_gpus(x);
    struct err e = {0};

    if (gpu < 0 || gpu >= n)
        return x10_fail("Failed to %s GPU %lld: there are 0 to %d", word, (long long)gpu,
                        n - 1);
    if (sched_state_pause(x->state_file, (int)gpu, n, pause, &e) < 0)
        return x10_fail("Failed to %s GPU %lld: %s", word, (long long)gpu, e.text);
    /* The scheduler would do it within a second; then it has been done. */
    if (x->client)
        (void)client_call(x->client, pause ? "gpu.pause" : "gpu.resume",
                          json_pack("{s:[I],s:s*}", "gpus", (json_int_t)gpu, "reason",
                                    pause ? SCHED_PAUSE_REASON : NULL),
                          NULL, &e);
    return x10_say("✅ GPU %lld %sd", (long long)gpu, word);
}

int
x10_cancel(const struct x10 *x, const char *id)
{
    auto_json json_t *found = NULL, *result = NULL;
    struct err e = {0};
    int64_t number;

    if (!x->client)
        return nobody(x, "Failed to cancel job");
    if (parse_int(id, 1, UINT32_MAX, &number, NULL) < 0)
        return x10_fail("Failed to cancel job %s: there is no such job", id);
    if (client_call(x->client, "jobs", json_pack("{s:[s],s:b}", "select", id, "all", 1), &found,
                    &e) < 0 ||
        !sched_has_tag(json_array_get(json_object_get(found, "jobs"), 0), x->tag))
        return x10_fail("Failed to cancel job %s: there is no such job", id);
    if (client_call(x->client, "cancel", json_pack("{s:[s]}", "select", id), &result, &e) < 0)
        return x10_fail("Failed to cancel job %s: %s", id, e.text);
    if (json_array_size(json_object_get(result, "ids")) == 0)
        return x10_fail("Failed to cancel job %s: it has ended already", id);
    return x10_say("✅ Job %s cancelled", id);
}

int
x10_screens(const struct x10 *x)
{
    auto_buf struct buf out = BUF_INIT;

    buf_adds(&out, "🖥️  Active screen sessions\n");
    sched_add_screens(&out, x->client, "", "No active screen sessions found.\n");
    return cli_put(&out);
}
