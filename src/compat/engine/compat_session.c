/* The event loop and the requests of front ends; see compat_session.h. */
#include "compat/engine/compat_session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <uthash.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/ask/many_requests.h"
#include "sys/signals.h"
#include "wire/client.h"

#define AWAIT_US       300000000 /* wait for another user's daemon to restart or be repaired */
#define AWAIT_STEP_MS  500
#define RECONNECTS_MAX 5
#define LOOK_US        1000000 /* poll files: some file systems do not notify */

static void
on_notify(void *ctx, const char *method, json_t *params)
{
    struct compat_session *s = ctx;

    if (strcmp(method, "event") == 0)
        json_array_append(s->events, params);
}

int
compat_open(struct compat_session *s, const struct compat_home *home, struct err *e)
{
    s->signals = signals_to_fd((const int[]){SIGINT, SIGTERM, SIGHUP, 0}, e);
    if (s->signals < 0)
        return -1;
    s->events = json_array();
    s->watch = watch_new();
    if (compat_link_open(&s->link, home, e) < 0)
        return -1;
    client_listen(s->link.client, on_notify, NULL, s);
    return 0;
}

void
compat_watch(struct compat_session *s, const char *path)
{
    struct run_file *f = &s->files[s->n_files];

    if (s->n_files == SESSION_FILES_MAX)
        err_abort("more than %d files to watch", SESSION_FILES_MAX);
    f->shown = path;
    (void)run_file_has_changed(f); /* only later changes count */
    watch_file(s->watch, s->n_files++, path);
}

/* Earliest time at which a file is to be read, at most `until`. */
static int64_t
first_due(const struct compat_session *s, int64_t until)
{
    for (int i = 0; i < s->n_files; i++) {
        if (s->files[i].due_us && s->files[i].due_us < until)
            until = s->files[i].due_us;
    }
    return until;
}

/* True if a file is to be read now. */
static bool
take_due(struct compat_session *s)
{
    bool any = false;

    for (int i = 0; i < s->n_files; i++) {
        struct run_file *f = &s->files[i];

        if (!f->due_us && run_file_has_changed(f))
            f->due_us = clock_boot_us();
        if (!f->due_us || f->due_us > clock_boot_us())
            continue;
        f->due_us = 0;
        (void)run_file_has_changed(f);
        watch_file(s->watch, i, f->shown);
        any = true;
    }
    return any;
}

/* Wait until something happens or until boot time `until` (0: only handle what is here
 * already). Returns WOKE_* bits. */
static int
wait_until(struct compat_session *s, int64_t until)
{
    struct err e = {0};
    int woke = 0;

    for (;;) {
        struct pollfd p[3] = {
            {.fd = client_fd(s->link.client), .events = POLLIN},
            {.fd = s->signals, .events = POLLIN},
            {.fd = watch_fd(s->watch), .events = POLLIN},
        };
        int64_t now = clock_boot_us(), due = first_due(s, until);
        int64_t look = now + LOOK_US < due ? now + LOOK_US : due;

        if (client_pump(s->link.client, &e) < 0)
            woke |= WOKE_LOST;
        if (json_array_size(s->events) > 0)
            woke |= WOKE_EVENT;
        if (woke)
            look = now;
        if (poll(p, 3, look <= now ? 0 : (int)((look - now + 999) / 1000)) < 0 &&
            errno != EINTR)
            err_abort("poll: %s", strerror(errno));
        if (p[1].revents)
            woke |= WOKE_SIGNAL;
        if (p[2].revents)
            watch_read(s->watch, s->files, clock_boot_us());
        if (take_due(s))
            woke |= WOKE_FILE;
        if (!(woke & WOKE_LOST) && client_pump(s->link.client, &e) < 0)
            woke |= WOKE_LOST;
        if (json_array_size(s->events) > 0)
            woke |= WOKE_EVENT;
        if (woke || clock_boot_us() >= until)
            return woke;
    }
}

/* The next pending signal; 0: none. */
static int
read_signal(struct compat_session *s)
{
    struct signalfd_siginfo info;

    return read(s->signals, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo
                                                                        : 0;
}

static int
find_again(struct compat_session *s, struct err *e)
{
    int64_t until = clock_boot_us() + (s->link.cli.socket ? AWAIT_US : 0);
    bool waits = false;

    while (compat_link_again(&s->link, e) < 0) {
        struct pollfd p = {.fd = s->signals, .events = POLLIN};

        if (e->code != ERR_UNREACHABLE)
            return -1;
        if (clock_boot_us() >= until)
            return waits ? err_set(e, ERR_FAILED,
                                   "the daemon has not come back; its jobs go on, and the same "
                                   "command finds them again")
                         : -1;
        if (!waits)
            cli_say("the daemon has gone; its jobs go on. Waiting %d minutes for it to come "
                    "back",
                    AWAIT_US / 60000000);
        waits = true;
        if (poll(&p, 1, AWAIT_STEP_MS) > 0)
            return err_set(e, ERR_FAILED,
                           "stopped while the daemon is away; its jobs go on, and the same "
                           "command finds them again");
    }
    if (waits)
        cli_say("the daemon is back");
    s->listening = false;
    client_listen(s->link.client, on_notify, NULL, s);
    return 0;
}

/* --- the loop --- */

/* After compat_end, only wait for the front end's jobs to end. */
static int
work(struct compat_session *s, int woke, int *status, struct err *e)
{
    if (!s->end_us)
        return s->front->work(s->ctx, woke, status, e);
    if (!s->stop_called && s->front->stop(s->ctx, e) < 0)
        return -1;
    s->stop_called = true;
    s->front->take_events(s->ctx);
    *status = s->front->any_left(s->ctx);
    return *status == 0 || clock_boot_us() >= s->end_us;
}

static int64_t
work_due(const struct compat_session *s)
{
    if (!s->end_us)
        return s->front->until(s->ctx);
    return s->stop_called ? s->end_us : 0;
}

static int
retell(struct compat_session *s, struct err *e)
{
    s->stop_called = false;
    return s->end_us ? 0 : s->front->retell(s->ctx, e);
}

static int
take_signal(struct compat_session *s, int number)
{
    return s->end_us ? s->front->any_left(s->ctx) : s->front->signalled(s->ctx, number);
}

static int
mend(struct compat_session *s, struct err *e)
{
    for (int i = 0; i < RECONNECTS_MAX; i++) {
        if (find_again(s, e) == 0 && retell(s, e) == 0)
            return 0;
        if (e->code != ERR_UNREACHABLE)
            return -1;
    }
    return -1;
}

/* Also wake when lines left out of a full queue may be sent again. */
static int
wait_for_more(struct compat_session *s, int64_t until)
{
    int woke = wait_until(s, s->room_us && s->room_us < until ? s->room_us : until);

    if (!s->room_us || clock_boot_us() < s->room_us)
        return woke;
    s->room_us = 0;
    return woke | WOKE_ROOM;
}

/* A changed file is reported only once, so WOKE_FILE is kept while a lost daemon is found
 * again. */
int
compat_run(struct compat_session *s, struct err *e)
{
    int woke = 0;

    for (;;) {
        int sig = woke & WOKE_SIGNAL ? read_signal(s) : 0, status = 0, rc;
        bool lost = woke & WOKE_LOST;

        if (sig && (status = take_signal(s, sig)) >= 0)
            return status;
        rc = lost ? 0 : work(s, woke, &status, e);
        lost |= rc < 0 && e->code == ERR_UNREACHABLE;
        if (lost)
            rc = mend(s, e);
        if (rc != 0)
            return rc < 0 ? -1 : status;
        woke = lost && woke & WOKE_FILE ? WOKE_FILE : wait_for_more(s, work_due(s));
    }
}

int
compat_end(struct compat_session *s, int64_t within_us, struct err *e)
{
    s->end_us = clock_boot_us() + within_us;
    return compat_run(s, e);
}

/* --- asking --- */

int
compat_call(struct compat_session *s, const char *method, json_t *params, json_t **result,
            struct err *e)
{
    return client_call(s->link.client, method, params, result, e);
}

int
compat_call_for(struct compat_session *s, const char *method, json_t *ids, json_t *params,
                json_t **result, struct err *e)
{
    json_t *select = json_array(), *id;
    size_t i;

    json_array_foreach(ids, i, id)
        json_array_append_new(select, json_sprintf("%lld", (long long)json_integer_value(id)));
    json_decref(ids);
    params = params ? params : json_object();
    json_object_set_new(params, "select", select);
    if (json_array_size(select) > 0)
        return many_call(s->link.client, method, params, result, e);
    json_decref(params);
    return 0;
}

int
compat_each(struct compat_session *s, json_t *ids, struct err *e)
{
    auto_json json_t *result = NULL;
    json_t *object;
    size_t i;

    if (compat_call_for(s, "jobs", ids, json_pack("{s:b}", "all", 1), &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "jobs"), i, object)
    {
        void *job = compat_job_of(s, answer_int(object, "id", 0));

        if (job)
            s->front->adopt(s->ctx, job, object);
    }
    return 0;
}

/* --- events --- */

json_t *
compat_events(struct compat_session *s)
{
    json_t *came = s->events, *fresh = json_array(), *ev;
    size_t i;

    s->events = json_array(); /* requests of the front end may add more */
    json_array_foreach(came, i, ev)
    {
        int64_t seq = answer_int(ev, "seq", 0);

        if (seq > 0 && seq <= s->seq)
            continue;
        s->seq = seq > 0 ? seq : s->seq;
        json_array_append(fresh, ev);
    }
    json_decref(came);
    if (s->room_us && json_array_size(fresh) > 0 && s->told_us + s->room_step_us < s->room_us)
        s->room_us = s->told_us + s->room_step_us;
    return fresh;
}

const char *
compat_full(struct compat_session *s)
{
    if (!s->full || s->full_said)
        return NULL;
    s->full_said = true;
    return s->full;
}

/* --- numbers --- */

struct compat_id {
    int64_t id;
    void *job;
    UT_hash_handle hh;
};

static struct compat_id *
find_id(const struct compat_session *s, int64_t id)
{
    struct compat_id *known;

    HASH_FIND(hh, s->ids, &id, sizeof id, known);
    return known;
}

void *
compat_job_of(const struct compat_session *s, int64_t id)
{
    const struct compat_id *known = find_id(s, id);

    return known ? known->job : NULL;
}

void
compat_unbind(struct compat_session *s, int64_t *slot)
{
    struct compat_id *known = find_id(s, *slot);

    if (known) {
        HASH_DEL(s->ids, known);
        free(known);
    }
    *slot = 0;
}

void
compat_bind(struct compat_session *s, int64_t *slot, int64_t id, void *job)
{
    struct compat_id *known;

    if (*slot == id || id == 0)
        return;
    compat_unbind(s, slot);
    *slot = id;
    known = find_id(s, id);
    if (!known) {
        known = xcalloc(1, sizeof *known);
        known->id = id;
        HASH_ADD(hh, s->ids, id, sizeof known->id, known);
    }
    known->job = job;
}

static void
forget_ids(struct compat_session *s)
{
    struct compat_id *known = s->ids, *next;

    HASH_CLEAR(hh, s->ids);
    for (; known; known = next) {
        next = known->hh.next;
        free(known);
    }
}

void
compat_close(struct compat_session *s)
{
    compat_link_close(&s->link);
    forget_ids(s);
    watch_free(s->watch);
    json_decref(s->events);
    free(s->full);
    if (s->signals >= 0)
        close(s->signals);
    *s = (struct compat_session){.signals = -1};
}
