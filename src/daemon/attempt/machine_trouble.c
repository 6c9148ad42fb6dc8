/* Trouble of the machine: see machine_trouble.h. Reported by launch.c (the daemon's part of a
 * start) and supervisor_hear.c (the supervisor's part). Keeps one trouble for the whole
 * machine, with its newest text, and one per user for those that affect only that user. A
 * trial does what every start does except run a command: it makes a folder with a file in it
 * and a file among the logs, and has a process forked (NURSERY_TRY). Pauses between trials
 * double until a job has really started. A nursery is replaced if it does not answer a trial
 * in time, or cannot restore the jobs' cgroups after something has removed them. */
#include "daemon/attempt/machine_trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/plan/limits.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempt_folder.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/event_say.h"
#include "daemon/common/instance.h"
#include "daemon/common/peer_lines.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/nursery/nursery_link.h"
#include "sys/confine.h"
#include "sys/nursery_packets.h"

#define PAUSE_FIRST_MS      500 /* between trials; doubles */
#define PAUSE_MAX_MS        15000
#define USER_PAUSE_FIRST_MS 2000
#define USER_PAUSE_MAX_MS   60000
/* An account counts as deleted once every start in this time found none, and no two of them
 * were further apart than that: these are six starts at least. */
#define ACCOUNT_GONE_US (INT64_C(600) * 1000000)
#define NOBODY_GAP_US   (2 * USER_PAUSE_MAX_MS * INT64_C(1000))
#define ANSWER_MS       3000 /* for a forked process to answer */
#define LOOK_MS         2000 /* after a launch, for the supervisor's first message */
#define TEXT_MAX        400

struct user_trouble {
    uint32_t uid;
    bool barred; /* now; false: its jobs may try again, but none has started yet */
    int64_t since_us, pause_ms, until_us; /* wall clock; boot clock */
    /* Boot clock: since when no account was found, and when last; 0: otherwise troubled. */
    int64_t nobody_us, nobody_last_us;
    char text[TEXT_MAX];
};

struct machine {
    struct attempts *attempts;
    struct limits *limits;
    uv_timer_t next;          /* next trial, or timeout of the current one */
    uv_timer_t users;         /* end of the earliest user's pause */
    uv_timer_t look;          /* after launches */
    struct peer_lines *trial; /* the process forked for the current trial */
    bool bad;
    bool woken;       /* nursery was woken, and has not answered since */
    int64_t since_us; /* wall clock */
    int64_t pause_ms;
    char text[TEXT_MAX];
    struct user_trouble *list;
    uint32_t *barred; /* uids, for the planner */
    size_t n, cap;
};

static void try_out(struct machine *m);

static void
tell(struct instance *inst, const char *state, const char *text)
{
    struct jsonw *w = turn_event(inst, "daemon", NULL);
    jsonw_kstr(w, "state", state);
    if (text)
        jsonw_kstr(w, "text", text);
    turn_event_end(inst);
}

/* --- the whole machine --- */

static void
on_next(uv_timer_t *timer)
{
    try_out(timer->data);
}

/* Schedules the next trial, with a pause that doubles. */
static void
put_off(struct machine *m)
{
    m->pause_ms = m->pause_ms ? m->pause_ms * 2 : PAUSE_FIRST_MS;
    if (m->pause_ms > PAUSE_MAX_MS)
        m->pause_ms = PAUSE_MAX_MS;
    uv_timer_start(&m->next, on_next, (uint64_t)m->pause_ms, 0);
}

void
machine_trouble(struct attempts *a, const char *text)
{
    struct machine *m = a->machine;
    bool news = !m->bad || strcmp(m->text, text) != 0;
    snprintf(m->text, sizeof m->text, "%s", text);
    if (news)
        log_error("event=machine-trouble %s", m->text);
    if (m->bad)
        return;
    m->bad = true;
    m->since_us = clock_wall_us();
    tell(a->inst, "trouble", m->text);
    if (!m->trial) /* otherwise its end or timeout schedules the next one */
        put_off(m);
}

static void
well_again(struct machine *m)
{
    if (!m->bad)
        return;
    m->bad = false;
    log_info("event=machine-well");
    tell(m->attempts->inst, "well", NULL);
}

static void
still_bad(struct machine *m, const struct err *e)
{
    machine_trouble(m->attempts, e->text);
    if (!uv_is_active((uv_handle_t *)&m->next))
        put_off(m);
}

const char *
machine_says(const struct attempts *a)
{
    return a->machine->bad ? a->machine->text : NULL;
}

int64_t
machine_since_us(const struct attempts *a)
{
    return a->machine->since_us;
}

/* --- trials --- */

static void
end_trial(struct machine *m)
{
    if (!m->trial)
        return;
    peer_lines_close(TAKE(m->trial));
    uv_timer_stop(&m->next);
}

static bool
has_gone(const char *group)
{
    return group && access(group, F_OK) < 0 && errno == ENOENT;
}

/* A cgroup of the jobs that has been removed; NULL: none. The nursery restores its groups, if
 * it can, before it forks for a trial. */
static const char *
missing_group(const struct nursery *n)
{
    const struct confinement *place = nursery_place(n);
    const char *gone = has_gone(place->base) ? place->base : NULL;
    for (int i = 0; i < CGROUP_V1_N && !gone; i++)
        gone = has_gone(place->v1[i]) ? place->v1[i] : NULL;
    return gone;
}

/* Evaluates a trial. errnum 0: a process was forked and has answered. */
static void
judge(struct machine *m, int errnum)
{
    struct err e = {0};
    const char *gone = missing_group(m->attempts->nursery);
    end_trial(m);
    if (errnum) {
        err_errno(&e, ERR_FAILED, errnum, "no process can be started");
        still_bad(m, &e);
    } else if (gone) {
        struct err ignored; /* not replaced if jobs would end with its unit */
        m->woken = false;
        if (nursery_replace(m->attempts->nursery, &ignored) == 0)
            log_warn("event=cgroup-gone cgroup=%s the nursery has been replaced", gone);
        err_set(&e, ERR_FAILED,
                "the cgroup %s of jobs has been removed, and cannot be made again", gone);
        still_bad(m, &e);
    } else {
        m->woken = false;
        well_again(m);
    }
}

static void
on_line(void *arg, const char *line, size_t len)
{
    json_t *msg = line ? json_loadb(line, len, 0, NULL) : NULL;
    const char *event = json_string_value(json_object_get(msg, "event"));
    bool tried = event && strcmp(event, "tried") == 0;
    int errnum = (int)json_integer_value(json_object_get(msg, "errno"));
    json_decref(msg);
    judge(arg, tried ? 0 : errnum ? errnum : ECHILD);
}

/* The nursery took the request but does not answer: it is stopped or stuck. Wakes it first,
 * and replaces it if that does not help; attempts that it had not forked yet have not run. */
static void
on_late(uv_timer_t *timer)
{
    struct machine *m = timer->data;
    struct nursery *n = m->attempts->nursery;
    struct err e = {0};
    end_trial(m);
    err_set(&e, ERR_FAILED, "the process that forks supervisors does not answer");
    if (m->woken) {
        log_warn("event=nursery-silent replacing it");
        (void)nursery_replace(n, &e);
    } else {
        log_warn("event=nursery-silent waking it up");
        nursery_wake(n);
    }
    m->woken = !m->woken;
    still_bad(m, &e);
}

static int
start_trial(struct machine *m, struct err *e)
{
    struct attempts *a = m->attempts;
    auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open /dev/null");
    int ours = nursery_call(a->nursery, NURSERY_TRY, null, null, e);
    if (ours < 0)
        return -1;
    m->trial = peer_lines_open(a->inst->loop, ours, on_line, m, e);
    if (!m->trial)
        return -1;
    uv_timer_start(&m->next, on_late, ANSWER_MS, 0);
    return 0;
}

static void
try_out(struct machine *m)
{
    struct err e = {0};
    if (m->trial)
        return;
    if (folders_try(m->attempts->inst, &e) < 0 || start_trial(m, &e) < 0)
        still_bad(m, &e);
}

/* --- after launches --- */

static void
on_look(uv_timer_t *timer)
{
    struct machine *m = timer->data;
    if (!watch_has_silent(m->attempts, 0))
        return;
    if (!m->bad && watch_has_silent(m->attempts, LOOK_MS * INT64_C(1000)))
        try_out(m);
    uv_timer_start(timer, on_look, LOOK_MS, 0);
}

void
machine_launched(struct attempts *a)
{
    if (!uv_is_active((uv_handle_t *)&a->machine->look))
        uv_timer_start(&a->machine->look, on_look, LOOK_MS, 0);
}

/* --- users --- */

static struct user_trouble *
find_user(const struct machine *m, uint32_t uid)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->list[i].uid == uid)
            return &m->list[i];
    return NULL;
}

static struct user_trouble *
add_user(struct machine *m, uint32_t uid)
{
    if (m->n == m->cap) {
        m->cap = m->cap * 2 + 8;
        m->list = xrealloc(m->list, m->cap * sizeof *m->list);
        m->barred = xrealloc(m->barred, m->cap * sizeof *m->barred);
        m->limits->barred = m->barred;
    }
    m->list[m->n] = (struct user_trouble){.uid = uid, .since_us = clock_wall_us()};
    return &m->list[m->n++];
}

static void on_users(uv_timer_t *timer);

/* Updates the barred users for the planner, and the timer. */
static void
refresh_users(struct machine *m)
{
    int64_t now = clock_boot_us(), first = INT64_MAX;
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct user_trouble *u = &m->list[i];
        u->barred = u->barred && u->until_us > now;
        if (!u->barred)
            continue;
        m->barred[n++] = u->uid;
        if (u->until_us < first)
            first = u->until_us;
    }
    m->limits->n_barred = n;
    if (n > 0)
        uv_timer_start(&m->users, on_users, (uint64_t)((first - now) / 1000 + 1), 0);
    turn_touch(m->attempts->inst);
}

static void
on_users(uv_timer_t *timer)
{
    refresh_users(timer->data);
}

void
machine_trouble_of(struct attempts *a, uint32_t uid, const char *text)
{
    struct machine *m = a->machine;
    struct user_trouble *u = find_user(m, uid);
    if (!u)
        u = add_user(m, uid);
    u->nobody_us = 0;
    snprintf(u->text, sizeof u->text, "%s", text);
    if (u->barred)
        return; /* several starts under way met the same trouble */
    u->pause_ms = u->pause_ms ? u->pause_ms * 2 : USER_PAUSE_FIRST_MS;
    if (u->pause_ms > USER_PAUSE_MAX_MS)
        u->pause_ms = USER_PAUSE_MAX_MS;
    u->until_us = clock_boot_us() + u->pause_ms * 1000;
    u->barred = true;
    log_warn("event=user-trouble user=%s again_in_ms=%lld %s", daemon_user_name(uid),
             (long long)u->pause_ms, u->text);
    refresh_users(m);
}

bool
machine_account_is_gone(struct attempts *a, uint32_t uid, const char *text)
{
    const struct user_trouble *u = find_user(a->machine, uid);
    int64_t now = clock_boot_us();
    bool still = u && u->nobody_us && now - u->nobody_last_us <= NOBODY_GAP_US;
    int64_t since_us = still ? u->nobody_us : now;
    bool gone = now - since_us >= ACCOUNT_GONE_US;
    if (!gone)
        machine_trouble_of(a, uid, text);
    struct user_trouble *noted = find_user(a->machine, uid);
    noted->nobody_us = since_us;
    noted->nobody_last_us = now;
    return gone;
}

void
machine_started(struct attempts *a, uint32_t uid)
{
    struct machine *m = a->machine;
    struct user_trouble *u = m->n ? find_user(m, uid) : NULL;
    if (!m->bad)
        m->pause_ms = 0;
    if (!u)
        return;
    *u = m->list[--m->n];
    refresh_users(m);
}

const char *
machine_says_of(const struct attempts *a, uint32_t uid)
{
    const struct user_trouble *u = find_user(a->machine, uid);
    return a->machine->bad ? a->machine->text : u && u->barred ? u->text : NULL;
}

void
machine_each_user(const struct attempts *a, machine_user_fn fn, void *ctx)
{
    const struct machine *m = a->machine;
    for (size_t i = 0; i < m->n; i++)
        if (m->list[i].barred)
            fn(ctx, m->list[i].uid, m->list[i].since_us, m->list[i].text);
}

/* --- the module --- */

struct machine *
machine_new(struct attempts *a, struct limits *limits)
{
    struct machine *m = xcalloc(1, sizeof *m);
    m->attempts = a;
    m->limits = limits;
    uv_timer_init(a->inst->loop, &m->next);
    uv_timer_init(a->inst->loop, &m->users);
    uv_timer_init(a->inst->loop, &m->look);
    m->next.data = m->users.data = m->look.data = m;
    return m;
}

void
machine_close(struct machine *m)
{
    end_trial(m);
    uv_close((uv_handle_t *)&m->next, NULL);
    uv_close((uv_handle_t *)&m->users, NULL);
    uv_close((uv_handle_t *)&m->look, NULL);
}

void
machine_free(struct machine *m)
{
    free(m->list);
    free(m->barred);
    free(m);
}
