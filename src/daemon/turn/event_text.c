/* Events as JSON: see event_text.h and docs/protocol.md, "An event". */
#include "daemon/turn/event_text.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/libc.h"
#include "base/parse.h"
#include "core/ledger/ledger.h"
#include "core/plan/plan.h"
#include "core/queue/endings.h"
#include "daemon/daemon.h"
#include "daemon/request/event_filter.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/turn/turn.h"
#include "daemon/view/wait_reason.h"
#include "store/store.h"

/* An argument as a shell would need it to be written, so that people can paste it. */
static void
add_quoted(struct buf *out, const char *arg)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=./,:@%^";
    if (arg[0] && strspn(arg, plain) == strlen(arg)) {
        buf_adds(out, arg);
        return;
    }
    buf_addc(out, '\'');
    for (; *arg; arg++) {
        if (*arg == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *arg);
    }
    buf_addc(out, '\'');
}

size_t
events_cut(const char *s, size_t n, int max)
{
    if (max <= 0 || n <= (size_t)max)
        return n;
    n = (size_t)max;
    while (n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80)
        n--;
    return n;
}

void
events_write_command(struct jsonw *w, const struct job *job, int max)
{
    if (job->req.command) {
        jsonw_strn(w, job->req.command,
                   events_cut(job->req.command, strlen(job->req.command), max));
        return;
    }
    auto_buf struct buf text = BUF_INIT;
    for (char **a = job->req.argv; a && *a; a++) {
        if (a != job->req.argv)
            buf_addc(&text, ' ');
        add_quoted(&text, *a);
        if (max > 0 && text.len > (size_t)max)
            break;
    }
    jsonw_strn(w, buf_str(&text), events_cut(buf_str(&text), text.len, max));
}

void
events_write_peaks(struct jsonw *w, const struct attempt *run)
{
    jsonw_key(w, "peak_mib");
    jsonw_object(w);
    for (int i = 0; run && i < run->n_gpus; i++) {
        char key[12];
        snprintf(key, sizeof key, "%d", run->gpus[i]);
        if (run->peak_mib[i] >= 0)
            jsonw_kint(w, key, run->peak_mib[i]);
        else
            jsonw_knull(w, key);
    }
    jsonw_end_object(w);
}

void
events_write_gpus(struct jsonw *w, const struct attempt *run)
{
    jsonw_key(w, "gpus");
    jsonw_array(w);
    for (int i = 0; run && i < run->n_gpus; i++)
        jsonw_int(w, run->gpus[i]);
    jsonw_end_array(w);
}

static void
write_vram(struct jsonw *w, const char *key, int32_t mib)
{
    if (mib > 0)
        jsonw_kint(w, key, mib);
    else
        jsonw_knull(w, key);
}

void
event_submitted(struct daemon *d, const struct job *job)
{
    struct jsonw *w = turn_event(d, "submitted", job);
    if (job->key)
        jsonw_kstr(w, "key", job->key);
    turn_event_end(d);
}

void
event_started(struct daemon *d, const struct job *job)
{
    const struct attempt *run = job->run;
    struct jsonw *w = turn_event(d, "started", job);
    events_write_gpus(w, run);
    write_vram(w, "vram_mib", run->vram_mib);
    if (job->req.demand.share_permille > 0) {
        jsonw_key(w, "share");
        jsonw_num(w, job->req.demand.share_permille / 1000.0);
    }
    if (run->n_gpus > 0)
        jsonw_kint(w, "total_mib", ledger_card(d->ledger, run->gpus[0])->info.total_mib);
    jsonw_kint(w, "attempt", run->number);
    turn_event_end(d);
}

static void
write_numbers(struct daemon *d, struct jsonw *w, const struct job *job)
{
    const struct attempt *run = job->run;
    const struct ending *e = &run->ending;
    int32_t peak = attempt_peak_mib(run);
    enum verdict v =
        job->state == JOB_COMPLETED
            ? account_verdict(run->vram_mib, peak, (int32_t)(d->config.tolerance * 1000 + 0.5))
            : VERDICT_NONE;
    if (e->outcome == OUTCOME_EXITED)
        jsonw_kint(w, "exit_code", e->code);
    else if (e->code >= 0)
        jsonw_kint(w, "stop_code", e->code);
    if (e->signal)
        jsonw_kint(w, "signal", e->signal);
    jsonw_kint(w, "run_ms", e->run_ms);
    jsonw_kint(w, "attempt", run->number);
    events_write_gpus(w, run);
    events_write_peaks(w, run);
    if (attempt_util(run) >= 0)
        jsonw_kint(w, "util", attempt_util(run));
    write_vram(w, "vram_mib", run->vram_mib);
    if (v != VERDICT_NONE)
        jsonw_kstr(w, "verdict", verdict_name(v));
    if (run->vram_mib > 0 && peak >= 0)
        jsonw_kint(w, "percent", account_percent(run->vram_mib, peak));
}

void
event_ended(struct daemon *d, const struct job *job)
{
    auto_buf struct buf text = BUF_INIT;
    job_end_text(job, &text);
    struct jsonw *w = turn_event(d, "ended", job);
    jsonw_kstr(w, "state", job_state_name(job->state));
    jsonw_kint(w, "exit_status", job_exit_status(job));
    if (job->run && job->state != JOB_INFEASIBLE)
        write_numbers(d, w, job);
    if (job->run && job->run->command_pid > 0) /* for who came too late for `launched` */
        jsonw_kint(w, "pid", job->run->command_pid);
    if (job->cancelled_by)
        jsonw_kstr(w, "by", job->cancelled_by);
    jsonw_kstr(w, "text", buf_str(&text));
    turn_event_end(d);
}

void
event_requeued(struct daemon *d, const struct job *job, int32_t vram_mib_old)
{
    const struct attempt *run = job->run;
    auto_buf struct buf text = BUF_INIT;
    attempt_end_text(run, &text);
    bool oom = (run->ending.oom == OOM_CUDA || run->ending.outcome == OUTCOME_EXCEEDED) &&
               vram_mib_old != job->req.demand.vram_mib;
    struct jsonw *w = turn_event(d, "requeued", job);
    write_vram(w, "vram_mib_old", vram_mib_old);
    write_vram(w, "vram_mib", job->req.demand.vram_mib);
    jsonw_kint(w, "attempt", run->number);
    jsonw_kint(
        w, "allowed",
        1 + (oom || run->ending.oom == OOM_CUDA ? job->req.oom_retries : job->req.retries));
    jsonw_kbool(w, "oom", run->ending.oom == OOM_CUDA);
    events_write_peaks(w, run);
    if (job->begin_us)
        jsonw_ktime(w, "begin", job->begin_us);
    jsonw_kstr(w, "text", buf_str(&text));
    turn_event_end(d);
}

void
event_warned(struct daemon *d, const struct job *job)
{
    char before[24];
    const char *name = libc_signal_name(job->req.warn_signal);
    auto_free char *text =
        xasprintf("sent %s, %s before its time limit", name ? name : "its warning signal",
                  format_duration(job->req.warn_ms, before));
    struct jsonw *w = turn_event(d, "warning", job);
    jsonw_kint(w, "signal", job->req.warn_signal);
    jsonw_kint(w, "before_ms", job->req.warn_ms);
    jsonw_kstr(w, "text", text);
    turn_event_end(d);
}

void
event_signalled(struct daemon *d, const struct job *job, int sig, const char *by)
{
    struct jsonw *w = turn_event(d, "signal", job);
    jsonw_kint(w, "signal", sig);
    jsonw_kstr(w, "by", by);
    turn_event_end(d);
}

/* The daemon has no part in it and hears of it from the supervisor: no request has caused it.
 */
void
event_attached(struct daemon *d, const struct job *job, bool came, uint32_t uid, bool types)
{
    struct jsonw *w = turn_event(d, came ? "attached" : "detached", job);
    jsonw_kint(w, "by_uid", uid);
    jsonw_kstr(w, "by", daemon_user_name(uid));
    jsonw_kbool(w, "input", types);
    turn_event_end(d);
}

void
event_plain(struct daemon *d, const char *kind, const struct job *job, const char *by)
{
    struct jsonw *w = turn_event(d, kind, job);
    if (!by && d->caller)
        by = daemon_user_name(d->caller->uid);
    if (by)
        jsonw_kstr(w, "by", by);
    turn_event_end(d);
}

/* Not stored: to those who follow now. */
static void
publish_unstored(struct daemon *d, const struct job *job, const char *kind, int64_t at_us,
                 const struct buf *object)
{
    auto_buf struct buf line = BUF_INIT;
    const struct store_event row = {.kind = kind,
                                    .at_us = at_us,
                                    .job = job->id,
                                    .file = job->file,
                                    .json = object->data,
                                    .json_len = object->len};
    event_line(&row, &line);
    server_publish(
        d->server,
        &(struct event_view){
            .kind = kind, .job = job->id, .file = job->file, .line = line.data, .n = line.len});
    server_publish_end(d->server);
}

static void
begin_unstored(struct jsonw *w, const struct job *job, struct buf *object)
{
    jsonw_init(w, object);
    jsonw_object(w);
    jsonw_kstr(w, "user", daemon_owner_name(job));
    jsonw_key(w, "command");
    events_write_command(w, job, 200);
}

void
event_launched(struct daemon *d, const struct job *job, int64_t at_us)
{
    auto_buf struct buf object = BUF_INIT;
    struct jsonw w;
    if (!d->server || !server_is_followed(d->server, "launched"))
        return;
    begin_unstored(&w, job, &object);
    jsonw_kint(&w, "attempt", job->run->number);
    jsonw_kint(&w, "pid", job->run->command_pid);
    jsonw_end_object(&w);
    publish_unstored(d, job, "launched", at_us, &object);
}

void
event_waiting(struct daemon *d, const struct job *job)
{
    auto_buf struct buf text = BUF_INIT, object = BUF_INIT;
    struct blocked why;
    struct jsonw w;
    if (!d->server || !server_is_followed(d->server, "waiting"))
        return;
    why_waits(d, job, &why, &text);
    begin_unstored(&w, job, &object);
    jsonw_kstr(&w, "reason", reason_name(why.reason));
    jsonw_kstr(&w, "text", buf_str(&text));
    jsonw_end_object(&w);
    publish_unstored(d, job, "waiting", clock_wall_us(), &object);
}

void
event_line(const struct store_event *row, struct buf *out)
{
    buf_addf(out, "{\"seq\":%lld,\"at_us\":%lld,\"kind\":\"%s\"", (long long)row->seq,
             (long long)row->at_us, row->kind);
    if (row->job)
        buf_addf(out, ",\"job\":%u", row->job);
    if (row->file)
        buf_addf(out, ",\"file\":%u", row->file);
    if (row->json_len > 2)
        buf_addc(out, ',');
    buf_add(out, row->json + 1, row->json_len - 1);
}
