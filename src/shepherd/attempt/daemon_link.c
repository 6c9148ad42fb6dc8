/* Messages of a supervisor: see daemon_link.h. Called by attempt.c and stop.c. */
#include "shepherd/attempt/daemon_link.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/jsonw.h"
#include "shepherd/attempt/attempt_priv.h"
#include "shepherd/talk/attach_server.h"
#include "shepherd/talk/ctl.h"

static void
add_hello(const struct shepherd *a, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", "hello");
    jsonw_kint(&w, "job", a->spec.job);
    jsonw_kint(&w, "attempt", a->spec.attempt);
    jsonw_kint(&w, "pid", getpid());
    jsonw_kstr(&w, "phase", a->phase == PHASE_RUNNING ? "running" : "ending");
    jsonw_kint(&w, "command_pid", a->command.pid > 0 ? a->command.pid : 0);
    jsonw_kint(&w, "started_us", a->record.started_us);
    if (a->record.warned_us)
        jsonw_kint(&w, "warned_us", a->record.warned_us);
    if (a->command.screen_pid > 0)
        jsonw_kint(&w, "screen_pid", a->command.screen_pid);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

static void
add_started(const struct shepherd *a, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", "started");
    jsonw_kint(&w, "command_pid", a->command.pid);
    jsonw_kint(&w, "at_us", a->record.started_us);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

static void
add_warned(const struct shepherd *a, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", "warned");
    jsonw_kint(&w, "signal", a->spec.warn_signal);
    jsonw_kint(&w, "at_us", a->record.warned_us);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

static void
add_ended(const struct shepherd *a, struct buf *out)
{
    exitrec_encode(&a->record, "ended", out);
    buf_addc(out, '\n');
}

void
say_greeting(const struct shepherd *a, struct buf *out)
{
    add_hello(a, out);
    if (a->phase == PHASE_ENDED)
        add_ended(a, out);
}

static void
tell(struct shepherd *a, const struct buf *words)
{
    ctl_say(a->ctl, buf_str(words), words->len);
}

void
say_started(struct shepherd *a)
{
    auto_buf struct buf words = BUF_INIT;
    add_hello(a, &words);
    add_started(a, &words);
    tell(a, &words);
}

void
say_warned(struct shepherd *a)
{
    auto_buf struct buf words = BUF_INIT;
    add_warned(a, &words);
    tell(a, &words);
}

void
say_screen(struct shepherd *a)
{
    auto_buf struct buf words = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &words);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", "screen");
    jsonw_kint(&w, "pid", a->command.screen_pid);
    jsonw_end_object(&w);
    buf_addc(&words, '\n');
    tell(a, &words);
}

void
say_ended(struct shepherd *a)
{
    auto_buf struct buf words = BUF_INIT;
    crash_point("shepherd-before-ended");
    if (a->command.pid < 0)
        add_hello(a, &words); /* the command never started: this is the first message */
    add_ended(a, &words);
    tell(a, &words);
}

bool
say_attached(struct shepherd *a, const struct attach_guest *who, bool came)
{
    auto_buf struct buf words = BUF_INIT;
    struct jsonw w;
    if (a->phase == PHASE_ENDED || ctl_peers(a->ctl) == 0)
        return false;
    jsonw_init(&w, &words);
    jsonw_object(&w);
    jsonw_kstr(&w, "event", came ? "attached" : "detached");
    jsonw_kint(&w, "uid", who->uid);
    jsonw_kbool(&w, "input", who->types);
    jsonw_kint(&w, "at_us", clock_wall_us());
    jsonw_end_object(&w);
    buf_addc(&words, '\n');
    tell(a, &words);
    return ctl_peers(a->ctl) > 0;
}
