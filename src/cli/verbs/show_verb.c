/* `berth show`: all details of jobs, one per line. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/libc.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask_each.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/term.h"
#include "cli/table/render.h"
#include "spec/attr.h"

static const struct opt options[] = {
    {"all", 'a', NULL, "all jobs, including ended ones"},
    {0},
};

static const struct page page = {
    .usage = "berth show SEL... | --all",
    .about =
        "Show everything about jobs: attempts, GPUs, peaks, why it waits or ended, log path.",
    .options = options,
};

static void
add_label(struct buf *out, const char *label)
{
    buf_addf(out, "  %-11s ", label);
}

static void
add_text(struct buf *out, const char *label, const char *s)
{
    if (!s[0])
        return;
    add_label(out, label);
    text_add_safe(out, s, strlen(s), 0);
    buf_addc(out, '\n');
}

static void
add_time(struct buf *out, const char *label, const json_t *job, const char *key)
{
    auto_buf struct buf moment = BUF_INIT;

    render_moment(&moment, answer_time_us(job, key));
    add_text(out, label, buf_str(&moment));
}

static void
add_span(struct buf *out, const char *label, int64_t ms)
{
    char span[24];

    if (ms > 0)
        add_text(out, label, format_duration(ms, span));
}

static void
add_title(const struct term *term, struct buf *out, const json_t *job)
{
    const char *state = answer_str(job, "state");
    const char *reason = answer_str(job, "reason");
    auto_buf struct buf tags = BUF_INIT;

    buf_addf(out, "job %lld", (long long)answer_int(job, "id", 0));
    if (json_is_object(json_object_get(job, "array")))
        answer_add_array(out, json_object_get(job, "array"));
    if (json_is_integer(json_object_get(job, "array_job")))
        buf_addf(out, " (%lld_%lld)", (long long)answer_int(job, "array_job", 0),
                 (long long)answer_int(job, "array_task", 0));
    buf_adds(out, "  ");
    term_add(term, out, render_state_style(state), state);
    if (reason[0])
        buf_addf(out, " (%s)", reason);
    buf_addc(out, '\n');
    add_text(out, "command", answer_str(job, "command"));
    add_text(out, "name", answer_str(job, "name"));
    answer_add_words(&tags, json_object_get(job, "tags"));
    add_text(out, "tags", buf_str(&tags));
}

/* "auto: 6.7 GiB from 12 runs" */
static void
add_learned(struct buf *out, const json_t *job, bool share)
{
    int64_t vram = answer_int(job, "vram_mib", 0), runs = answer_int(job, "auto_runs", 0);
    char size[24];

    if (vram > 0)
        buf_addf(out, ", auto: %s", format_mib(vram, size));
    else
        buf_adds(out, share ? ", auto: its share of the GPU's VRAM" : ", auto: a whole GPU");
    if (runs > 0)
        buf_addf(out, " from %lld run%s", (long long)runs, runs == 1 ? "" : "s");
    else if (vram == 0)
        buf_adds(out, ", as this command has not run yet");
}

/* The job's requirements on its GPUs. */
static void
add_cards(struct buf *out, const json_t *job)
{
    int64_t gpus = answer_int(job, "gpus_wanted", 0);
    int64_t vram = answer_int(job, "vram_mib", 0);
    int64_t declared = answer_int(job, "declared_mib", vram);
    double share = json_number_value(json_object_get(job, "share"));
    bool on_slurm = strcmp(answer_str(job, "on"), "slurm") == 0;
    char size[24];

    if (gpus == 0)
        buf_adds(out, "no GPU");
    else if (share > 0)
        buf_addf(out, "%g of a GPU", share);
    else
        buf_addf(out, "%lld GPU%s", (long long)gpus, gpus == 1 ? "" : "s");
    if (gpus > 0 && answer_bool(job, "vram_auto"))
        add_learned(out, job, share > 0);
    else if (gpus > 0 && vram > 0)
        buf_addf(out, ", %s of VRAM%s", format_mib(vram, size), gpus > 1 ? " each" : "");
    else if (gpus > 0 && share <= 0)
        buf_adds(out, on_slurm ? ", whole" : ", whole and idle");
    if (on_slurm)
        buf_adds(out, answer_bool(job, "pack") ? ", packed, on Slurm" : ", on Slurm");
    if (declared > 0 && vram != declared)
        buf_addf(out, " (declared %s, raised since)", format_mib(declared, size));
    if (answer_bool(job, "exclusive"))
        buf_adds(out, ", alone");
}

/* Which GPUs are suitable, and when. */
static void
add_guards(struct buf *out, const json_t *job)
{
    double used = json_number_value(json_object_get(job, "max_used"));
    double load = json_number_value(json_object_get(job, "max_load"));
    double cc = json_number_value(json_object_get(job, "gpu_cc"));
    const json_t *ids = json_object_get(job, "gpu_ids");
    const json_t *devices = json_object_get(job, "devices");
    char size[24];

    if (json_array_size(ids)) {
        buf_adds(out, json_array_size(ids) > 1 ? ", gpus " : ", gpu ");
        answer_add_gpus(out, ids);
    }
    if (json_array_size(devices)) {
        buf_adds(out, ", any of gpus ");
        answer_add_gpus(out, devices);
    }
    if (answer_str(job, "gpu_type")[0])
        buf_addf(out, ", with '%s' in the name", answer_str(job, "gpu_type"));
    if (answer_int(job, "min_vram_mib", 0) > 0)
        buf_addf(out, ", of %s or more", format_mib(answer_int(job, "min_vram_mib", 0), size));
    if (cc > 0)
        buf_addf(out, ", of compute capability %.1f or more", cc);
    if (used > 0)
        buf_addf(out, ", below %g %% used", used * 100);
    if (load > 0)
        buf_addf(out, ", below %g %% busy", load * 100);
    if (answer_int(job, "margin_mib", -1) >= 0)
        buf_addf(out, ", %s kept free beside it",
                 format_mib(answer_int(job, "margin_mib", 0), size));
    if (answer_int(job, "idle_mib", 0) > 0)
        buf_addf(out, ", other processes below %s",
                 format_mib(answer_int(job, "idle_mib", 0), size));
    if (answer_str(job, "placement")[0])
        buf_addf(out, ", placement %s", answer_str(job, "placement"));
}

static void
add_demand(struct buf *out, const json_t *job)
{
    auto_buf struct buf asks = BUF_INIT;
    int64_t cpus = answer_int(job, "cpus", 0);
    char size[24];

    add_cards(&asks, job);
    add_guards(&asks, job);
    if (cpus > 0)
        buf_addf(&asks, ", %lld core%s", (long long)cpus, cpus == 1 ? "" : "s");
    if (answer_int(job, "mem_mib", 0) > 0)
        buf_addf(&asks, ", %s of RAM", format_mib(answer_int(job, "mem_mib", 0), size));
    add_text(out, "asks", buf_str(&asks));
}

/* Attributes without a value. */
static void
add_also(struct buf *out, const json_t *job)
{
    static const char *const flags[] = {"singleton", "unique", "requeue", "screen"};
    static const char *const counts[][2] = {{"retries", "retries"},
                                            {"oom_retries", "oom-retries"}};
    auto_buf struct buf also = BUF_INIT;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (answer_bool(job, flags[i]))
            buf_addf(&also, "%s%s", also.len ? ", " : "", flags[i]);
    if (answer_bool(job, "interactive"))
        buf_addf(&also, "%sinteractive%s", also.len ? ", " : "",
                 answer_bool(job, "pty") ? " on a terminal" : "");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (answer_int(job, counts[i][0], 0) > 0)
            buf_addf(&also, "%s%s %lld", also.len ? ", " : "", counts[i][1],
                     (long long)answer_int(job, counts[i][0], 0));
    add_text(out, "also", buf_str(&also));
}

/* When the job may start, and its limits. */
static void
add_bounds(struct buf *out, const json_t *job)
{
    auto_buf struct buf after = BUF_INIT, limit = BUF_INIT, priority = BUF_INIT;
    int64_t limit_ms = answer_int(job, "limit_ms", 0);
    int64_t warn = answer_int(job, "warn_signal", 0);
    char span[24];

    if (answer_int(job, "priority", 0) != 0)
        buf_addf(&priority, "%lld", (long long)answer_int(job, "priority", 0));
    if (answer_bool(job, "preemptible"))
        buf_addf(&priority, "%spreemptible", priority.len ? ", " : "");
    add_text(out, "priority", buf_str(&priority));
    answer_add_after(&after, json_object_get(job, "after"));
    add_text(out, "after", buf_str(&after));
    add_time(out, "begin", job, "begin");
    if (limit_ms > 0)
        buf_adds(&limit, format_duration(limit_ms, span));
    if (limit_ms > 0 && strcmp(answer_str(job, "on_timeout"), "requeue") == 0)
        buf_addf(&limit, ", then again (%lld of %lld times)",
                 (long long)answer_int(job, "requeues", 0),
                 (long long)answer_int(job, "max_requeues", 0));
    if (limit_ms > 0 && warn > 0)
        buf_addf(&limit, ", %s %s before%s",
                 libc_signal_name((int)warn) ? libc_signal_name((int)warn) : "a signal",
                 format_duration(answer_int(job, "warn_ms", 0), span),
                 answer_bool(job, "warn_batch") ? " to the command's own process" : "");
    add_text(out, "time limit", buf_str(&limit));
    if (answer_int(job, "grace_ms", GRACE_DEFAULT_MS) != GRACE_DEFAULT_MS)
        add_text(out, "grace", format_duration(answer_int(job, "grace_ms", 0), span));
    add_also(out, job);
    add_span(out, "usually", answer_int(job, "estimate_ms", 0));
}

/* Its notifications, by the names of the options. */
static void
add_hooks(struct buf *out, const json_t *job)
{
    auto_buf struct buf mail = BUF_INIT;

    add_text(out, "on start", answer_str(job, "on_start"));
    add_text(out, "on end", answer_str(job, "on_end"));
    add_text(out, "on fail", answer_str(job, "on_fail"));
    add_text(out, "webhook", answer_str(job, "webhook"));
    if (answer_str(job, "mail_type")[0])
        buf_addf(&mail, "%s%s%s", answer_str(job, "mail_type"),
                 answer_str(job, "mail_user")[0] ? " to " : "", answer_str(job, "mail_user"));
    add_text(out, "mail", buf_str(&mail));
}

/* The progress of an array. */
static void
add_tasks(struct buf *out, const json_t *array)
{
    auto_buf struct buf line = BUF_INIT;
    const char *state;
    json_t *n;

    if (!json_is_object(array))
        return;
    buf_addf(
        &line, "%lld: %lld pending, %lld running", (long long)answer_int(array, "total", 0),
        (long long)answer_int(array, "waiting", 0), (long long)answer_int(array, "left", 0));
    json_object_foreach(json_object_get(array, "ended"), state, n)
        buf_addf(&line, ", %lld %s", (long long)json_integer_value(n), state);
    add_text(out, "tasks", buf_str(&line));
}

static void
add_outcome(struct buf *out, const json_t *job)
{
    add_text(out, render_state_is_final(answer_str(job, "state")) ? "ended" : "explain",
             answer_str(job, "text")[0] ? answer_str(job, "text") : answer_str(job, "explain"));
    if (json_is_integer(json_object_get(job, "exit_status"))) {
        add_label(out, "exit status");
        buf_addf(out, "%lld\n", (long long)answer_int(job, "exit_status", 0));
    }
    add_text(out, "by", answer_str(job, "cancelled_by"));
}

/* The job's part of its GPUs' energy. */
static void
add_energy(struct buf *out, int64_t joules)
{
    if (joules < 0)
        return;
    add_label(out, "energy");
    if (joules >= 360000)
        buf_addf(out, "%.2f kWh\n", (double)joules / 3600000);
    else if (joules >= 3600)
        buf_addf(out, "%.1f Wh\n", (double)joules / 3600);
    else
        buf_addf(out, "%lld J\n", (long long)joules);
}

static void
add_use(struct buf *out, const json_t *job)
{
    auto_buf struct buf gpus = BUF_INIT;
    auto_buf struct buf peak = BUF_INIT;
    const json_t *peaks = json_object_get(job, "peak_mib");
    const char *verdict = answer_str(job, "verdict");

    answer_add_gpus(&gpus, json_object_get(job, "gpus"));
    add_text(out, "on gpu", buf_str(&gpus));
    if (gpus.len || json_object_size(peaks))
        answer_add_peaks(&peak, peaks);
    if (strcmp(verdict, "under") == 0 ||
        (strcmp(verdict, "over") == 0 && !render_was_raised(job)))
        buf_addf(&peak, " (%s-declared)", verdict);
    add_text(out, "peak VRAM", buf_str(&peak));
    if (answer_int(job, "util", -1) >= 0) {
        add_label(out, "GPU load");
        buf_addf(out, "%lld %% on average\n", (long long)answer_int(job, "util", 0));
    }
    add_energy(out, answer_int(job, "energy_j", -1));
}

/* Where an attempt ran on a cluster. */
static void
add_slurm(struct buf *line, const json_t *a)
{
    const char *job = answer_str(a, "slurm_job"), *node = answer_str(a, "slurm_node");

    buf_addf(line, "Slurm's job %s", job[0] ? job : "n/a");
    if (node[0])
        buf_addf(line, " on %s", node);
}

static void
add_bound(struct buf *line, const json_t *a)
{
    const json_t *nodes = json_object_get(a, "numa_nodes");
    const char *cpus = answer_str(a, "cpu_list");

    if (json_array_size(nodes) == 0)
        return;
    buf_adds(line, ", bound to ");
    if (cpus[0])
        buf_addf(line, "%s %s of ", strpbrk(cpus, ",-") ? "CPUs" : "CPU", cpus);
    buf_adds(line, json_array_size(nodes) > 1 ? "NUMA nodes " : "NUMA node ");
    answer_add_gpus(line, nodes);
}

static void
add_attempt(struct buf *out, const json_t *a)
{
    auto_buf struct buf line = BUF_INIT;
    auto_buf struct buf started = BUF_INIT;
    const char *outcome = answer_str(a, "outcome");
    const char *text = answer_str(a, "text");
    char label[32], size[24];

    snprintf(label, sizeof label, "attempt %lld", (long long)answer_int(a, "number", 0));
    if (json_object_get(a, "slurm_job"))
        add_slurm(&line, a);
    else
        render_gpus(&line, json_object_get(a, "gpus"));
    render_moment(&started, answer_time_us(a, "started"));
    buf_addf(&line, ", started %s", started.len ? buf_str(&started) : "n/a");
    buf_addf(&line, ", %s", text[0] ? text : outcome[0] ? outcome : "running");
    if (json_object_size(json_object_get(a, "peak_mib"))) {
        buf_adds(&line, ", peak ");
        answer_add_peaks(&line, json_object_get(a, "peak_mib"));
    }
    if (answer_int(a, "cap_mib", 0) > 0)
        buf_addf(&line, ", held to %s", format_mib(answer_int(a, "cap_mib", 0), size));
    add_bound(&line, a);
    add_text(out, label, buf_str(&line));
}

/* For an array, the pattern of its tasks' files. */
static void
add_file(struct buf *out, const char *label, const json_t *job, const char *option)
{
    const char *path = answer_str(job, label);
    auto_buf struct buf line = BUF_INIT;

    buf_adds(&line, path);
    if (json_is_object(json_object_get(job, "array")) && strchr(path, '%'))
        buf_addf(&line, ": one for each task; 'berth logs %lld%s --path' lists them",
                 (long long)answer_int(job, "id", 0), option);
    add_text(out, label, buf_str(&line));
}

/* The path of its output, and its size. */
static void
add_log(struct buf *out, const json_t *job)
{
    const int64_t mib = INT64_C(1) << 20;
    int64_t cut = answer_int(job, "log_cut_bytes", 0), max = answer_int(job, "log_max_mib", 0);
    char size[24];

    add_file(out, "log", job, "");
    add_file(out, "error", job, " --stderr");
    if (max > 0)
        add_text(out, "log-max", format_mib(max, size));
    if (cut > 0) {
        add_label(out, "log cut");
        buf_addf(out,
                 "%s of output are missing: where a line in it says so, or at its end if the "
                 "disk was full\n",
                 format_mib((cut + mib - 1) / mib, size));
    }
}

static char **
texts_of(const json_t *list)
{
    char **out = xcalloc(json_array_size(list) + 1, sizeof *out);
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item) out[i] =
        xstrdup(json_is_string(item) ? json_string_value(item) : "");
    return out;
}

/* Stores a member of the object in its attribute's field, if it is a single value or a
 * list. */
static void
take_value(const struct attr *a, const json_t *v, struct request *r)
{
    const char *text = json_string_value(v);

    if (a->kind == ATTR_TEXT && text)
        *(char **)attr_field(a, r) = xstrdup(text);
    else if (a->kind == ATTR_CHOICE && text)
        attr_set_word(a, r, text);
    else if (a->kind == ATTR_LIST && json_array_size(v) > 0)
        *(char ***)attr_field(a, r) = texts_of(v);
    else if (a->kind == ATTR_PERMILLE && json_is_number(v))
        attr_set_number(a, r, (int64_t)(json_number_value(v) * 1000 + 0.5));
    else if (json_is_boolean(v) || json_is_integer(v))
        attr_set_number(a, r, json_is_integer(v) ? json_integer_value(v) : json_is_true(v));
}

/* Attributes that have a line of their own (struct attr's apart). */
static void
add_apart(struct buf *out, const json_t *job)
{
    const struct attr *a;
    struct request r;

    request_init(&r);
    for (size_t i = 0; (a = attr_at(i)); i++) {
        auto_buf struct buf text = BUF_INIT;

        if (!a->apart)
            continue;
        take_value(a, json_object_get(job, a->json ? a->json : a->key), &r);
        attr_say(a, &r, &text);
        if (attr_is_said(a, &r))
            add_text(out, a->name, buf_str(&text));
    }
    request_free(&r);
}

static void
add_job(const struct term *term, struct buf *out, const json_t *job)
{
    auto_buf struct buf from = BUF_INIT, env = BUF_INIT;
    size_t i;
    json_t *attempt;

    add_title(term, out, job);
    if (answer_str(job, "file")[0])
        buf_addf(&from, "%s:%lld", answer_str(job, "file"),
                 (long long)answer_int(job, "line", 0));
    add_text(out, "from", buf_str(&from));
    add_text(out, "user", answer_str(job, "user"));
    add_demand(out, job);
    add_bounds(out, job);
    add_hooks(out, job);
    add_tasks(out, json_object_get(job, "array"));
    add_outcome(out, job);
    add_use(out, job);
    add_time(out, "submitted", job, "submitted");
    add_time(out, "started", job, "started");
    add_time(out, "expected", job, "expected_start");
    add_time(out, "promised", job, "latest_start");
    add_time(out, "ended at", job, "ended");
    add_span(out, "ran for", answer_int(job, "run_ms", 0));
    json_array_foreach(json_object_get(job, "attempts"), i, attempt) add_attempt(out, attempt);
    add_text(out, "screen", answer_str(job, "screen_session"));
    add_text(out, "conda", answer_str(job, "conda"));
    add_text(out, "env-setup", answer_str(job, "env_setup"));
    if (answer_bool(job, "login"))
        add_text(out, "environment", "of a login");
    if (answer_bool(job, "slurm_env"))
        add_text(out, "slurm-env", "yes");
    answer_add_words(&env, json_object_get(job, "env"));
    add_text(out, "env", buf_str(&env));
    add_text(out, "comment", answer_str(job, "comment"));
    add_text(out, "folder", answer_str(job, "cwd"));
    add_log(out, job);
    add_apart(out, job);
}

int
cmd_show(struct cli *cli, int argc, char **argv)
{
    static const struct tell what = {
        .page = &page,
        .method = "jobs",
        .nothing = "which job? For example: berth show 12, or @ for your last",
        .between = "\n",
        .add = add_job,
    };
    return tell_jobs(cli, argc, argv, &what);
}
