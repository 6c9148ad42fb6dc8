/* Describes a job's life in words; see render.h. */
#include "cli/table/render.h"

#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/request.h"
#include "cli/ask/answer.h"

static const struct {
    const char *name;
    enum style style;
    bool final;
    bool active;
} states[] = {
    {"PENDING", STYLE_NONE, false, false},     {"HELD", STYLE_WARN, false, false},
    {"STARTING", STYLE_BUSY, false, true},     {"RUNNING", STYLE_BUSY, false, true},
    {"SUSPENDED", STYLE_WARN, false, true},    {"COMPLETING", STYLE_BUSY, false, true},
    {"COMPLETED", STYLE_GOOD, true, false},    {"FAILED", STYLE_BAD, true, false},
    {"CANCELLED", STYLE_WARN, true, false},    {"TIMEOUT", STYLE_BAD, true, false},
    {"OUT_OF_MEMORY", STYLE_BAD, true, false}, {"PREEMPTED", STYLE_WARN, true, false},
    {"INFEASIBLE", STYLE_BAD, true, false},    {"LOST", STYLE_BAD, true, false},
};

static int
find_state(const char *name)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strcmp(states[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

enum style
render_state_style(const char *state)
{
    int i = find_state(state);

    return i < 0 ? STYLE_NONE : states[i].style;
}

enum style
render_gpu_style(const char *state)
{
    if (strcmp(state, "up") == 0)
        return STYLE_GOOD;
    return strcmp(state, "paused") == 0 || strcmp(state, "draining") == 0 ? STYLE_WARN
                                                                          : STYLE_BAD;
}

const char *
render_state_at(int i)
{
    return i < (int)(sizeof states / sizeof states[0]) ? states[i].name : NULL;
}

const char *
render_state_static(const char *state)
{
    int i = find_state(state);

    return i < 0 ? "PENDING" : states[i].name;
}

bool
render_state_is_final(const char *state)
{
    int i = find_state(state);

    return i >= 0 && states[i].final;
}

bool
render_state_is_active(const char *state)
{
    int i = find_state(state);

    return i >= 0 && states[i].active;
}

void
render_clock(struct buf *out, int64_t wall_us)
{
    time_t at = (time_t)(wall_us / 1000000);
    struct tm tm;
    char text[16] = "--:--:--";

    if (wall_us > 0 && localtime_r(&at, &tm))
        strftime(text, sizeof text, "%H:%M:%S", &tm);
    buf_adds(out, text);
}

void
render_when(struct buf *out, int64_t wall_us)
{
    char span[24];
    int64_t in_ms = (wall_us - clock_wall_us()) / 1000;

    render_clock(out, wall_us);
    if (in_ms > 0)
        buf_addf(out, " (in %s)", format_duration(in_ms, span));
    else
        buf_adds(out, " (now)");
}

void
render_expected_start(struct buf *out, const json_t *waiting)
{
    int64_t at_us = answer_time_us(waiting, "expected_start");

    if (!at_us || strcmp(answer_str(waiting, "state"), "PENDING") != 0)
        return;
    buf_adds(out, "; expected to start at ");
    render_when(out, at_us);
}

void
render_day_clock(struct buf *out, int64_t wall_us, int64_t now_us)
{
    static const int64_t half_day_us = INT64_C(12) * 3600 * 1000000;
    time_t s = (time_t)(wall_us / 1000000);
    bool near = wall_us - now_us < half_day_us && now_us - wall_us < half_day_us;
    struct tm tm;
    char text[32];

    if (localtime_r(&s, &tm) &&
        strftime(text, sizeof text, near ? "%H:%M" : "%b %d %H:%M", &tm))
        buf_adds(out, text);
}

void
render_moment(struct buf *out, int64_t wall_us)
{
    time_t s = (time_t)(wall_us / 1000000);
    struct tm tm;
    char text[64];

    if (wall_us > 0 && localtime_r(&s, &tm) &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", &tm))
        buf_adds(out, text);
}

static int64_t
gpu_number(const json_t *gpu)
{
    return json_is_object(gpu) ? answer_int(gpu, "index", 0) : json_integer_value(gpu);
}

void
render_gpus(struct buf *out, const json_t *gpus)
{
    if (json_array_size(gpus) == 0) {
        buf_adds(out, "cpu");
        return;
    }
    buf_adds(out, "gpu ");
    answer_add_gpus(out, gpus);
}

/* "gpu 0-3": abbreviated so that a line for many GPUs keeps its columns. The GPUs are in the
 * job's order. */
static void
add_gpu_ranges(struct buf *out, const json_t *gpus)
{
    size_t n = json_array_size(gpus);

    buf_adds(out, n ? "gpu " : "cpu");
    for (size_t i = 0, next; i < n; i = next) {
        int64_t first = gpu_number(json_array_get(gpus, i));

        next = i + 1;
        while (next < n &&
               gpu_number(json_array_get(gpus, next)) == first + (int64_t)(next - i))
            next++;
        next = next - i < 3 ? i + 1 : next;
        buf_addf(out, "%s%lld", i ? "," : "", (long long)first);
        if (next - i > 1)
            buf_addf(out, "-%lld", (long long)(first + (int64_t)(next - i) - 1));
    }
}

void
render_pair(struct buf *out, int64_t a_mib, const char *glue, int64_t b_mib, bool unit_first)
{
    char a[24];
    char b[24];
    char *unit_a;
    char *unit_b;

    format_mib(a_mib, a);
    format_mib(b_mib, b);
    unit_a = strchr(a, ' ');
    unit_b = strchr(b, ' ');
    if (unit_a && unit_b && strcmp(unit_a, unit_b) == 0)
        *(unit_first ? unit_b : unit_a) = '\0';
    buf_addf(out, "%s%s%s", a, glue, b);
}

/* The text after `started`: "18.0 GiB of 24.0" or "whole, 24.0 GiB". */
static void
add_demand(struct buf *out, const json_t *event)
{
    int64_t demand = answer_int(event, "vram_mib", 0);
    int64_t total = answer_int(event, "total_mib", 0);
    double share = json_number_value(json_object_get(event, "share"));
    char size[24];

    if (json_array_size(json_object_get(event, "gpus")) == 0)
        return;
    if (demand > 0 && total > 0)
        render_pair(out, demand, " of ", total, true);
    else if (demand > 0)
        buf_adds(out, format_mib(demand, size));
    else if (share > 0 && total > 0)
        buf_addf(out, "%g of %s", share, format_mib(total, size));
    else if (share > 0)
        buf_addf(out, "%g of it", share);
    else if (total > 0)
        buf_addf(out, "whole, %s", format_mib(total, size));
    else
        buf_adds(out, "whole");
}

static void
add_advice(struct buf *out, const char *verdict, int64_t peak, int64_t declared)
{
    long long percent = (long long)((peak - declared) * 100 / declared);
    char better[24];

    format_ask_mib(request_vram_for_peak_mib(peak), better);
    if (strcmp(verdict, "over") == 0)
        buf_addf(out, ", over-declared (%lld %%): vram=%s would be enough", percent, better);
    else if (strcmp(verdict, "under") == 0)
        buf_addf(out, ", UNDER-DECLARED (+%lld %%): declare vram=%s", percent, better);
}

bool
render_was_raised(const json_t *event)
{
    int64_t declared = answer_int(event, "declared_mib", -1);

    return answer_int(event, "attempt", 1) > 1 && declared != answer_int(event, "vram_mib", 0);
}

/* What an ended job used compared with its declaration: "peak 17.5 of 18.0 GiB (97 %)", with
 * advice if they differ too much. completed: otherwise, no advice. */
static void
add_usage(struct buf *out, const json_t *event, bool completed)
{
    const json_t *peaks = json_object_get(event, "peak_mib");
    int64_t peak = answer_peak(peaks);
    int64_t declared = answer_int(event, "vram_mib", 0);
    int64_t util = answer_int(event, "util", -1);

    /* A job without a GPU has no peak to report; a job with a GPU but no measured peak has. */
    if (peak < 0 && json_is_object(peaks) && json_object_size(peaks) == 0)
        return;
    buf_adds(out, "peak ");
    if (peak < 0) {
        buf_adds(out, "n/a");
    } else if (declared > 0) {
        render_pair(out, peak, " of ", declared, false);
        buf_addf(out, " (%lld %%)", (long long)(peak * 100 / declared));
        if (completed &&
            (strcmp(answer_str(event, "verdict"), "over") != 0 || !render_was_raised(event)))
            add_advice(out, answer_str(event, "verdict"), peak, declared);
    } else {
        answer_add_peaks(out, peaks);
    }
    if (util >= 0)
        buf_addf(out, "   gpu %lld %%", (long long)util);
}

void
render_ending(struct buf *out, const json_t *event, enum style *style)
{
    const char *state = answer_str(event, "state");
    int64_t number = answer_int(event, "signal", 0);

    *style = render_state_style(state);
    if (strcmp(state, "COMPLETED") == 0)
        buf_adds(out, "completed");
    else if (strcmp(state, "FAILED") == 0 && number > 0)
        buf_addf(out, "failed signal %lld", (long long)number);
    else if (strcmp(state, "FAILED") == 0)
        buf_addf(
            out, "failed exit %lld",
            (long long)answer_int(event, "exit_code", answer_int(event, "exit_status", 1)));
    else if (strcmp(state, "OUT_OF_MEMORY") == 0)
        buf_adds(out, "out of memory");
    else
        for (const char *s = state; *s; s++)
            buf_addc(out, (char)(*s >= 'A' && *s <= 'Z' ? *s + 32 : *s));
}

static void
add_gap(struct buf *out)
{
    if (out->len)
        buf_adds(out, "   ");
}

static bool
is_on_slurm(const json_t *event)
{
    return strcmp(answer_str(event, "on"), "slurm") == 0;
}

/* "Slurm", "Slurm's job 4711_3 on node7": from an event, or from a job's last attempt. */
static void
add_slurm(const json_t *event, struct buf *out)
{
    const json_t *all = json_object_get(event, "attempts");
    const json_t *last = all ? json_array_get(all, json_array_size(all) - 1) : event;
    const char *job = answer_str(last, "slurm_job"), *node = answer_str(last, "slurm_node");

    buf_adds(out, "Slurm");
    if (job[0])
        buf_addf(out, "'s job %s", job);
    if (node[0])
        buf_addf(out, " on %s", node);
}

/* On Slurm, the scheduler's decision only sends the job: it starts when its command runs. */
static const char *
start_word(const json_t *event, const char *kind)
{
    if (!is_on_slurm(event))
        return kind;
    if (strcmp(kind, "launched") == 0)
        return "started";
    return strcmp(answer_str(event, "state"), "RUNNING") == 0 ? kind : "sent";
}

static void
render_started(const json_t *event, const char *command, struct buf *details)
{
    auto_buf struct buf gpus = BUF_INIT;
    auto_buf struct buf demand = BUF_INIT;

    if (is_on_slurm(event))
        add_slurm(event, &gpus);
    else
        add_gpu_ranges(&gpus, json_object_get(event, "gpus"));
    add_demand(&demand, event);
    if (is_on_slurm(event))
        buf_addf(details, "%s   %s", buf_str(&gpus), command);
    else
        buf_addf(details, "%-8s %-*s %s", buf_str(&gpus),
                 gpus.len > 8 ? (int)(gpus.len < 26 ? 26 - gpus.len : 0) : 18, buf_str(&demand),
                 command);
    if (answer_int(event, "attempt", 1) > 1)
        buf_addf(details, "   (attempt %lld)", (long long)answer_int(event, "attempt", 1));
}

/* The daemon's text without words that the state has said already. */
static const char *
fresh_words(const char *state, const char *text)
{
    if (strcmp(state, "CANCELLED") == 0 && strncmp(text, "cancelled", 9) == 0)
        return text + 9 + (text[9] == ' ');
    if (strcmp(state, "FAILED") == 0 && !strchr(text, ':') &&
        (strncmp(text, "exit ", 5) == 0 || strncmp(text, "killed by signal ", 17) == 0))
        return "";
    return text;
}

static void
render_ended(const json_t *event, const char *command, struct buf *details)
{
    bool completed = strcmp(answer_str(event, "state"), "COMPLETED") == 0;
    const char *text = fresh_words(answer_str(event, "state"), answer_str(event, "text"));
    int64_t run_ms = answer_int(event, "run_ms", -1);
    auto_buf struct buf usage = BUF_INIT;
    char span[24];

    if (run_ms >= 0) {
        buf_adds(details, format_duration(run_ms, span));
        add_usage(&usage, event, completed);
    }
    if (usage.len) {
        add_gap(details);
        buf_adds(details, usage.data);
    }
    if (text[0] && !completed) {
        add_gap(details);
        buf_adds(details, text);
    }
    if (command[0]) {
        add_gap(details);
        buf_adds(details, command);
    }
}

static void
render_requeued(const json_t *event, struct buf *word, struct buf *details)
{
    int64_t old = answer_int(event, "vram_mib_old", 0);
    int64_t now = answer_int(event, "vram_mib", 0);
    int64_t attempt = answer_int(event, "attempt", 0);
    int64_t allowed = answer_int(event, "allowed", 0);
    bool oom = now != old && now > 0;
    const char *text = answer_str(event, "text");
    char size[24];

    buf_adds(word, oom ? "out of memory" : "requeued");
    if (oom) {
        buf_adds(details, "requeued with vram ");
        buf_adds(details, old > 0 ? format_mib(old, size) : "undeclared");
        buf_addf(details, " -> %s", format_mib(now, size));
    }
    if (text[0] && !oom) {
        add_gap(details);
        buf_adds(details, text);
    }
    if (allowed > 0)
        buf_addf(details, " (attempt %lld of %lld)", (long long)attempt, (long long)allowed);
}

static void
render_exceeds(const json_t *event, struct buf *details)
{
    int64_t mib = answer_int(event, "mib", 0);
    int64_t declared = answer_int(event, "declared_mib", 0);

    render_pair(details, mib, " used of ", declared, false);
    buf_addf(details, " declared on gpu %lld", (long long)answer_int(event, "gpu", 0));
    if (declared > 0)
        buf_addf(details, " (+%lld %%)", (long long)((mib - declared) * 100 / declared));
    buf_adds(details, ": other jobs there may run out of memory");
}

/* Adds the reason's name unless the text begins with it. */
static void
render_waiting(const json_t *event, struct buf *details)
{
    const char *reason = answer_str(event, "reason");
    const char *text = answer_str(event, "text");

    if (!text[0])
        buf_adds(details, reason);
    else if (strncmp(text, reason, strlen(reason)) == 0)
        buf_adds(details, text);
    else
        buf_addf(details, "%s: %s", reason, text);
}

bool
render_event(const json_t *event, const char *command, struct buf *word, struct buf *details,
             enum style *style)
{
    const char *kind = answer_str(event, "kind");

    *style = STYLE_NONE;
    if (strcmp(kind, "started") == 0 || strcmp(kind, "running") == 0 ||
        (strcmp(kind, "launched") == 0 && is_on_slurm(event))) {
        *style = STYLE_BUSY;
        buf_adds(word, start_word(event, kind));
        render_started(event, command, details);
    } else if (strcmp(kind, "ended") == 0) {
        render_ending(word, event, style);
        render_ended(event, command, details);
    } else if (strcmp(kind, "waiting") == 0) {
        *style = STYLE_DIM;
        buf_adds(word, kind);
        render_waiting(event, details);
    } else if (strcmp(kind, "requeued") == 0) {
        *style = STYLE_WARN;
        render_requeued(event, word, details);
    } else if (strcmp(kind, "exceeds") == 0) {
        *style = STYLE_BAD;
        buf_adds(word, "EXCEEDS");
        render_exceeds(event, details);
    } else if (strcmp(kind, "warning") == 0) {
        *style = STYLE_WARN;
        buf_adds(word, kind);
        buf_adds(details, answer_str(event, "text"));
    } else if (strcmp(kind, "usage") == 0) {
        *style = STYLE_DIM;
        buf_adds(word, "vram");
        answer_add_peaks(details, json_object_get(event, "peak_mib"));
    } else if (strcmp(kind, "held") == 0 || strcmp(kind, "released") == 0) {
        *style = STYLE_WARN;
        buf_adds(word, kind);
        buf_adds(details, command);
    } else if (strcmp(kind, "infeasible") == 0) {
        *style = STYLE_BAD;
        buf_adds(word, kind);
        buf_addf(details, "%s   %s", answer_str(event, "text"), command);
    } else {
        return false;
    }
    return true;
}
