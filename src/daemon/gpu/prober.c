/* Manages the probe: see prober.h; its lines are described in docs/protocol.md section 3. One
 * sample request is in flight at a time; requests made meanwhile are combined into one more
 * afterwards, so a thousand jobs that end together cost two samples. samples.c applies
 * samples, card_list.c the list of GPUs. */
#include "daemon/gpu/prober.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/common/event_say.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/gpu/card_faults.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/card_list.h"
#include "daemon/gpu/killed_probes.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober_talk.h"
#include "daemon/gpu/samples.h"
#include "wire/json_text.h"

#define SLOW_MS 3000 /* after this time without an answer the GPUs count as unknown */
/* A driver that has to initialise each GPU first takes seconds for each, so a hello may take
 * this many answer deadlines. After the first the GPUs count as unknown. */
#define HELLO_DEADLINES 8
/* First interval after a job's start, so that short jobs are measured too; doubles up to
 * sample_ms. */
#define YOUNG_MS            100
#define COST_PER_CENT       10  /* maximum share of time spent in early samples */
#define RESTART_FIRST_MS    500 /* delay before a dead probe is replaced; doubles */
#define RESTART_MAX_MS      30000
#define STUCK_MAX           2 /* killed probes not ended yet at which no other is started */
#define RENEW_FIRST_SAMPLES 3 /* idle intervals before looking for a lost GPU; doubles */
#define RENEW_MAX_MS        600000

struct prober {
    struct cards *cards;
    char *sim_spec;
    struct talk *talk;
    struct talk *fresh; /* a second probe that may take over */
    struct killed_probes killed;
    uv_timer_t next;     /* the next regular sample */
    uv_timer_t deadline; /* first: the answer is late; then: overdue */
    uv_timer_t restart;
    uv_timer_t renew; /* first: start a second probe; then: its deadline */
    char *backend, *driver, *error;
    bool said_hello;
    bool reads_log; /* the kernel's log with the driver's errors */
    bool asked;     /* an answer is pending */
    bool again;     /* another sample is wanted after it */
    bool late;      /* SLOW_MS has passed */
    int64_t seq;
    int64_t asked_us;         /* boot clock; of the pending request */
    int64_t sampled_us;       /* boot clock; of the last answered request */
    int64_t answered_us;      /* boot clock; of that answer */
    int64_t unknown_since_us; /* wall clock */
    int64_t restart_ms;
    int64_t restarts;
    int64_t renew_ms;
    int64_t interval_ms; /* while jobs run: grows from YOUNG_MS to sample_ms */
    int64_t cost_ms;     /* duration of the last answer */
};

static const struct talk_events talk_events;
static int start_probe(struct prober *p, struct err *e);
static void ask(struct prober *p);

/* --- known and unknown GPUs --- */

static void
set_unknown(struct prober *p, const char *why)
{
    struct cards *cards = p->cards;
    if (p->unknown_since_us)
        return;
    p->unknown_since_us = clock_wall_us();
    cards->are_unknown = true;
    int n = ledger_n_cards(cards->inst->ledger);
    for (int i = 0; i < n; i++)
        if (ledger_card(cards->inst->ledger, i)->health == GPU_UP)
            ledger_set_health(cards->inst->ledger, i, GPU_UNKNOWN, clock_boot_us());
    log_warn("event=gpus-unknown %s", why);
    struct jsonw *w = turn_event(cards->inst, "gpu", NULL);
    jsonw_kstr(w, "state", "unknown");
    jsonw_kstr(w, "text", why);
    turn_event_end(cards->inst);
}

static void
set_known(struct prober *p)
{
    if (!p->unknown_since_us)
        return;
    p->unknown_since_us = 0;
    p->cards->are_unknown = false;
    log_info("event=gpus-known");
    struct jsonw *w = turn_event(p->cards->inst, "gpu", NULL);
    jsonw_kstr(w, "state", "up");
    jsonw_kstr(w, "text", "the probe answers again");
    turn_event_end(p->cards->inst);
}

/* --- end of a probe --- */

static void
drop_fresh(struct prober *p)
{
    killedprobes_add(&p->killed, talk_end(TAKE(p->fresh)));
    uv_timer_stop(&p->renew);
}

static void
hang_up(struct prober *p)
{
    drop_fresh(p);
    killedprobes_add(&p->killed, talk_end(TAKE(p->talk)));
    p->said_hello = p->asked = p->again = p->late = false;
    uv_timer_stop(&p->deadline);
    uv_timer_stop(&p->next);
}

static void replace(struct prober *p, const char *why);
static void plan_restart(struct prober *p);
static void take_error(struct prober *p, const char *text);

/* A hanging driver blocks its callers, even killed ones: another probe would be one more. */
static bool
is_held_up(struct prober *p)
{
    return killedprobes_count(&p->killed) >= STUCK_MAX;
}

static void
on_restart(uv_timer_t *timer)
{
    struct prober *p = timer->data;
    struct err e = {0};
    if (is_held_up(p)) {
        take_error(p, "probes that were killed have not ended, because a call of the driver "
                      "hangs (state D in ps): another is started when one has ended. If "
                      "nvidia-smi hangs too, reboot the machine");
        plan_restart(p);
    } else if (start_probe(p, &e) < 0) {
        log_error("probe: %s", e.text);
        replace(p, e.text); /* try again after a longer pause */
    }
}

static void
plan_restart(struct prober *p)
{
    p->restart_ms = p->restart_ms ? p->restart_ms * 2 : RESTART_FIRST_MS;
    if (p->restart_ms > RESTART_MAX_MS)
        p->restart_ms = RESTART_MAX_MS;
    uv_timer_start(&p->restart, on_restart, (uint64_t)p->restart_ms, 0);
}

static void
replace(struct prober *p, const char *why)
{
    set_unknown(p, why);
    hang_up(p);
    p->restarts++;
    plan_restart(p);
}

static void
set_late(struct prober *p)
{
    static const char no_hello[] =
        "the driver has not listed the GPUs yet. NVIDIA's initialises each of them first, "
        "which "
        "takes seconds, unless persistence mode is on (nvidia-smi -pm 1, or the service "
        "nvidia-persistenced)";
    p->late = true;
    if (!p->said_hello)
        take_error(p, no_hello);
    set_unknown(p, p->said_hello ? "the probe is slow to answer" : no_hello);
}

static void
on_deadline(uv_timer_t *timer)
{
    struct prober *p = timer->data;
    int64_t limit = p->cards->inst->config.probe_deadline_ms;
    int64_t rest = p->said_hello ? limit - SLOW_MS : limit * (HELLO_DEADLINES - 1);
    if (!p->late && rest > 0) {
        set_late(p);
        uv_timer_start(&p->deadline, on_deadline, (uint64_t)rest, 0);
        return;
    }
    replace(p, "the probe does not answer; replacing it");
}

/* --- requests --- */

static void
on_next(uv_timer_t *timer)
{
    prober_request(timer->data);
}

/* While jobs run: soon after a start, then less and less often, and never so often that
 * sampling (half a second each with nvidia-smi) becomes a noticeable load. */
static int64_t
busy_interval(struct prober *p)
{
    int64_t most = p->cards->inst->config.sample_ms;
    int64_t least = p->cost_ms * 100 / COST_PER_CENT;
    int64_t ms = p->interval_ms > least ? p->interval_ms : least;
    if (ms <= 0 || ms > most)
        return most;
    p->interval_ms = ms * 2;
    return ms;
}

static void
arm_next(struct prober *p)
{
    /* Pending jobs count, since they may wait for another process's memory. */
    bool busy = queue_n_active(p->cards->inst->queue) > 0 ||
                queue_count(p->cards->inst->queue, JOB_PENDING) > 0;
    int64_t ms = busy ? busy_interval(p) : p->cards->inst->config.idle_sample_ms;
    if (health_is_checking(p->cards) && ms > p->cards->inst->config.sample_ms)
        ms = p->cards->inst->config.sample_ms;
    uv_timer_start(&p->next, on_next, (uint64_t)ms, 0);
}

static void
ask(struct prober *p)
{
    auto_buf struct buf text = BUF_INIT;
    p->cards->host.add_capped(p->cards->host.arg, &text);
    buf_addf(&text, "sample %lld\n", (long long)++p->seq);
    p->asked = true;
    p->asked_us = clock_boot_us();
    talk_say(p->talk, buf_str(&text), text.len);
    int64_t limit = p->cards->inst->config.probe_deadline_ms;
    uv_timer_start(&p->deadline, on_deadline, (uint64_t)(limit < SLOW_MS ? limit : SLOW_MS), 0);
}

void
prober_request(struct prober *p)
{
    if (!p->talk || !p->said_hello || p->asked)
        p->again = true;
    else
        ask(p);
}

void
prober_hurry(struct prober *p)
{
    p->interval_ms = YOUNG_MS;
    if (!p->asked)
        arm_next(p);
}

void
prober_forget(struct prober *p)
{
    p->sampled_us = 0;
    if (p->talk && p->said_hello)
        prober_request(p);
}

/* The age counts from the answer: if an answer takes longer than the sample interval, no
 * sample would ever be recent otherwise. What ended meanwhile is compared with the time of the
 * request. */
bool
prober_is_fresh(struct prober *p)
{
    int64_t age_us = clock_boot_us() - p->answered_us;
    if (p->unknown_since_us || ledger_n_cards(p->cards->inst->ledger) == 0)
        return true;
    if (p->sampled_us && age_us < p->cards->inst->config.sample_ms * 1500)
        return true;
    if (queue_count(p->cards->inst->queue, JOB_PENDING) == 0)
        return true;
    if (!p->asked)
        prober_request(p);
    return false;
}

/* --- answers --- */

static char *
copy_or_null(const json_t *s)
{
    return json_is_string(s) ? xstrdup(json_string_value(s)) : NULL;
}

/* The first probe reports the log's position; later ones continue from the stored one. */
static void
take_log_position(struct prober *p, const json_t *hello)
{
    const json_t *seq = json_object_get(hello, "kernel_log");
    p->reads_log = json_is_integer(seq);
    if (p->reads_log && health_log_position(p->cards) < 0)
        health_set_log_position(p->cards, json_integer_value(seq));
}

static void
on_hello(struct prober *p, const json_t *msg)
{
    free(p->backend);
    free(p->driver);
    p->backend = copy_or_null(json_object_get(msg, "backend"));
    p->driver = copy_or_null(json_object_get(msg, "driver"));
    p->said_hello = true;
    uv_timer_stop(&p->deadline);
    cardlist_take(p->cards, msg);
    take_log_position(p, msg);
    p->asked = p->again = p->late = false;
    ask(p);
}

/* --- second probe --- */

/* A probe sees only the GPUs found at its start. While one of them is lost or one did not
 * answer, a second probe is started now and then to see whether the GPU is back; it takes over
 * once it has listed the GPUs. So a second probe that hangs in the driver because of a broken
 * GPU does no harm. */

static void
on_fresh_deadline(uv_timer_t *timer)
{
    drop_fresh(timer->data);
}

static void
on_renew(uv_timer_t *timer)
{
    struct prober *p = timer->data;
    struct err e = {0};
    if (!health_wants_new_probe(p->cards) || is_held_up(p))
        return;
    p->renew_ms = p->renew_ms * 2 < RENEW_MAX_MS ? p->renew_ms * 2 : RENEW_MAX_MS;
    p->fresh = talk_start(p->cards, p->sim_spec, &talk_events, p, &e);
    if (p->fresh)
        uv_timer_start(&p->renew, on_fresh_deadline,
                       (uint64_t)p->cards->inst->config.probe_deadline_ms * HELLO_DEADLINES, 0);
    else
        log_warn("probe: %s", e.text);
}

static void
plan_renewal(struct prober *p)
{
    bool is_wanted = health_wants_new_probe(p->cards);
    if (!is_wanted || p->renew_ms == 0)
        p->renew_ms = p->cards->inst->config.idle_sample_ms * RENEW_FIRST_SAMPLES;
    if (is_wanted && !p->fresh && !uv_is_active((uv_handle_t *)&p->renew))
        uv_timer_start(&p->renew, on_renew, (uint64_t)p->renew_ms, 0);
}

static void
on_fresh_line(struct prober *p, const char *line, size_t len)
{
    json_t *msg = json_text_read(line, len, NULL);
    if (json_object_get(msg, "hello")) {
        struct talk *fresh = TAKE(p->fresh);
        hang_up(p);
        p->talk = fresh;
        log_info("event=probe-renewed");
        on_hello(p, msg);
    } else {
        drop_fresh(p);
    }
    json_decref(msg);
}

static void
on_sample(struct prober *p, const json_t *msg)
{
    if (json_integer_value(json_object_get(msg, "sample")) != p->seq)
        return;
    p->asked = p->late = false;
    p->sampled_us = p->asked_us;
    p->answered_us = clock_boot_us();
    p->cost_ms = (p->answered_us - p->asked_us) / 1000;
    p->restart_ms = 0; /* a hello alone does not prove that the driver answers */
    uv_timer_stop(&p->deadline);
    free(TAKE(p->error));
    struct ledger *before = ledger_clone(p->cards->inst->ledger);
    set_known(p);
    sample_take(p->cards, msg, p->asked_us);
    bool is_news = !ledger_has_room_as(p->cards->inst->ledger, before);
    ledger_free(before);
    if (p->again) {
        p->again = false;
        ask(p);
    }
    arm_next(p);
    plan_renewal(p);
    if (queue_n(p->cards->inst->queue) > 0 && is_news)
        turn_touch(p->cards->inst);
    else if (queue_n(p->cards->inst->queue) > 0 || health_may_let_go(p->cards))
        turn_touch_unchanged(p->cards->inst);
}

/* Logged once, however often further probes repeat it. */
static void
take_error(struct prober *p, const char *text)
{
    bool news = !p->error || !text || strcmp(p->error, text) != 0;
    free(p->error);
    p->error = text ? xstrdup(text) : NULL;
    if (news)
        log_error("probe: %s", text ? text : "?");
}

static void
on_line(struct prober *p, const char *line, size_t len)
{
    json_error_t je;
    json_t *msg = json_text_read(line, len, &je);
    if (json_object_get(msg, "error")) {
        take_error(p, json_string_value(json_object_get(msg, "error")));
    } else if (json_object_get(msg, "hello")) {
        on_hello(p, msg);
    } else if (json_object_get(msg, "sample")) {
        on_sample(p, msg);
    } else if (json_object_get(msg, "faults")) {
        faults_take(p->cards, msg);
    } else {
        log_error("the probe sent an invalid line: %s", je.text);
    }
    json_decref(msg);
}

/* --- start --- */

static void
on_talk_line(void *arg, struct talk *t, const char *line, size_t len)
{
    struct prober *p = arg;
    if (t == p->fresh)
        on_fresh_line(p, line, len);
    else
        on_line(p, line, len);
}

static void
on_talk_end(void *arg, struct talk *t)
{
    struct prober *p = arg;
    if (t == p->fresh)
        drop_fresh(p);
    else
        replace(p, p->error ? p->error : "the probe has died");
}

static const struct talk_events talk_events = {on_talk_line, on_talk_end};

static int
start_probe(struct prober *p, struct err *e)
{
    p->talk = talk_start(p->cards, p->sim_spec, &talk_events, p, e);
    if (!p->talk)
        return -1;
    /* At daemon start the loop has not run a round yet, so its cached time is from before the
     * store was opened: on a slow disk that may be longer ago than the deadline. */
    uv_update_time(p->cards->inst->loop);
    uv_timer_start(&p->deadline, on_deadline,
                   (uint64_t)p->cards->inst->config.probe_deadline_ms, 0);
    p->late = false;
    return 0;
}

struct prober *
prober_new(struct cards *cards, const char *sim_spec)
{
    struct prober *p = xcalloc(1, sizeof *p);
    p->cards = cards;
    p->sim_spec = sim_spec ? xstrdup(sim_spec) : NULL;
    cards->facts->sim_dir = sim_spec ? cards->inst->places.sim : NULL;
    uv_timer_init(cards->inst->loop, &p->next);
    uv_timer_init(cards->inst->loop, &p->deadline);
    uv_timer_init(cards->inst->loop, &p->restart);
    uv_timer_init(cards->inst->loop, &p->renew);
    p->next.data = p->deadline.data = p->restart.data = p->renew.data = p;
    return p;
}

static void
on_start_deadline(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static void
on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

int
prober_start(struct prober *p, int64_t deadline_ms, struct err *e)
{
    bool over = false;
    uv_timer_t *timer = xcalloc(1, sizeof *timer);
    if (start_probe(p, e) < 0) {
        free(timer);
        return -1;
    }
    uv_timer_init(p->cards->inst->loop, timer);
    timer->data = &over;
    uv_timer_start(timer, on_start_deadline, (uint64_t)deadline_ms, 0);
    while (!over && !p->sampled_us && (p->talk || !p->unknown_since_us))
        uv_run(p->cards->inst->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)timer, on_timer_closed);
    if (p->sampled_us)
        return 0;
    return err_set(e, ERR_FAILED, "%s",
                   p->error ? p->error : "the probe does not answer; the driver may be stuck");
}

void
prober_close(struct prober *p)
{
    hang_up(p);
    uv_close((uv_handle_t *)&p->next, NULL);
    uv_close((uv_handle_t *)&p->deadline, NULL);
    uv_close((uv_handle_t *)&p->restart, NULL);
    uv_close((uv_handle_t *)&p->renew, NULL);
}

void
prober_free(struct prober *p)
{
    killedprobes_close(&p->killed);
    free(p->sim_spec);
    free(p->backend);
    free(p->driver);
    free(p->error);
    free(p);
}

const char *
prober_backend(const struct prober *p)
{
    return p->backend;
}

const char *
prober_driver(const struct prober *p)
{
    return p->driver;
}

int64_t
prober_unknown_since_us(const struct prober *p)
{
    return p->unknown_since_us;
}

const char *
prober_error(const struct prober *p)
{
    return p->error;
}

bool
prober_reads_log(const struct prober *p)
{
    return p->reads_log;
}

int64_t
prober_restarts(const struct prober *p)
{
    return p->restarts;
}

int64_t
prober_sampled_us(const struct prober *p)
{
    return p->sampled_us;
}
