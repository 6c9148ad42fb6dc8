/* The main loop of `berth run`: the daemon's messages, changes of files, the keyboard. It
 * sleeps in poll; once a second it checks the files (for file systems without notifications)
 * and redraws the bar. A lost daemon is found again or restarted, and gets the files again;
 * the events since the last one seen are requested, so that none is missed. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/many_requests.h"
#include "cli/common/cli.h"
#include "cli/common/quote.h"
#include "cli/run/run_verb.h"
#include "cli/table/render.h"
#include "sys/signals.h"
#include "wire/client.h"

#define TICK_MS           1000
#define TWICE_US          2000000 /* time limit for the second Ctrl-C */
#define RECONNECTS_MAX    5 /* within RECONNECT_SPAN_US: more mean that the daemon is broken */
#define RECONNECT_SPAN_US 30000000
#define RECOUNT_US        100000 /* interval for the bar, with more than RECOUNT_EACH jobs */
#define RECOUNT_EACH      500

struct loop {
    struct run *run;
    int signals;
    int64_t tick_us;      /* when the next check of the files is due */
    int64_t interrupt_us; /* time of the first Ctrl-C; 0: none */
    int reconnects;
    int64_t reconnect_us;     /* time of the first of them */
    struct run_counts counts; /* for the bar */
    int64_t counted_us;
    bool counts_are_old;
    int status; /* exit status, once done */
    bool done;
};

void
run_add_way_back(const struct run *run, struct buf *out)
{
    buf_adds(out, "berth");
    if (run->cli->dir) {
        buf_adds(out, " --dir ");
        quote_add(out, run->cli->dir);
    }
    if (run->files[0].is_stdin) {
        buf_adds(out, " queue");
        return;
    }
    buf_adds(out, " run");
    for (int i = 0; i < run->n_files; i++) {
        buf_addc(out, ' ');
        quote_add(out, run->files[i].shown);
    }
}

static void
finish(struct loop *l, int status)
{
    l->done = true;
    l->status = status;
}

static void
say_below_bar(struct run *run)
{
    auto_buf struct buf erase = BUF_INIT;

    run_flush(run);
    progress_erase(&run->progress, &erase);
    cli_put(&erase);
}

/* --- signals --- */

static void
cancel_jobs(struct loop *l)
{
    struct run *run = l->run;
    json_t *select = json_array();
    struct err e = {0};

    for (size_t i = 0; i < run->jobs.n; i++) {
        const struct run_job *job = &run->jobs.all[i];

        if (!render_state_is_final(job->state))
            json_array_append_new(select, json_sprintf("%lld", (long long)job->id));
    }
    if (json_array_size(select) == 0)
        json_decref(select);
    else if (many_call(run->client, "cancel", json_pack("{s:o}", "select", select), NULL, &e) <
             0)
        cli_fail(&e);
    else
        cli_say("the file's jobs are cancelled");
    finish(l, 128 + SIGINT);
}

static void
say_detached(struct run *run, const char *more)
{
    auto_buf struct buf back = BUF_INIT;

    run_add_way_back(run, &back);
    say_below_bar(run);
    cli_say("detached; the jobs continue. To return to them: %s%s", buf_str(&back), more);
}

static void
on_interrupt(struct loop *l)
{
    if (l->interrupt_us) {
        say_below_bar(l->run);
        cancel_jobs(l);
        return;
    }
    l->interrupt_us = clock_boot_us();
    l->run->progress.on = false;
    say_detached(l->run, "\nberth: Ctrl-C once more within two seconds cancels them");
}

static void
on_signals(struct loop *l)
{
    struct signalfd_siginfo s;

    while (!l->done && read(l->signals, &s, sizeof s) == (ssize_t)sizeof s) {
        if (s.ssi_signo == SIGWINCH) {
            l->run->term.columns = term_columns();
            l->run->progress.columns = l->run->term.columns;
        } else if (s.ssi_signo == SIGINT) {
            on_interrupt(l);
        } else {
            say_detached(l->run, "");
            finish(l, 128 + (int)s.ssi_signo);
        }
    }
}

/* --- the daemon --- */

static int
sync_all(struct run *run, bool fresh, struct err *e)
{
    for (int i = 0; i < run->n_files; i++) {
        if (run_file_sync(run, &run->files[i], fresh, e) < 0)
            return -1;
    }
    return 0;
}

static int
reconnect(struct loop *l, struct err *e)
{
    struct run *run = l->run;
    int64_t now = clock_boot_us();

    if (now - l->reconnect_us > RECONNECT_SPAN_US) {
        l->reconnect_us = now;
        l->reconnects = 0;
    }
    if (++l->reconnects > RECONNECTS_MAX)
        return err_set(e, ERR_UNREACHABLE, "the daemon keeps exiting; its log says why");
    say_below_bar(run);
    cli_say("the daemon has exited; the jobs continue");
    run->client = connect_back(run->cli, &run->opt.daemon, run->client, e);
    if (!run->client)
        return -1;
    cli_say("the daemon has returned");
    client_listen(run->client, run_on_notify, NULL, run);
    if (sync_all(run, false, e) < 0 || run_subscribe(run, e) < 0 || run_reconcile(run, e) < 0)
        return -1;
    return 0;
}

/* True if the daemon was stopped on purpose, so that we must not restart it. */
static bool
was_stopped(const struct run *run)
{
    return run->stopped_by[0] || (run->client && client_was_stopped(run->client));
}

/* Restores a lost connection, with a limit on attempts; any other error ends the run. */
static void
mend(struct loop *l, struct err *e)
{
    auto_buf struct buf back = BUF_INIT;

    if (e->code == ERR_UNREACHABLE && l->run->stopped_by[0])
        err_set(e, ERR_UNREACHABLE, "%s has stopped the daemon", l->run->stopped_by);
    while (e->code == ERR_UNREACHABLE && !was_stopped(l->run)) {
        struct err again = {0};

        if (reconnect(l, &again) == 0)
            return;
        *e = again;
        if (!l->run->client || l->reconnects > RECONNECTS_MAX)
            break;
    }
    run_add_way_back(l->run, &back);
    say_below_bar(l->run);
    cli_fail(e);
    cli_say("running jobs continue without it. To return to them: %s", buf_str(&back));
    finish(l, err_exit_status(e->code));
}

/* --- the files --- */

static void
look_at_files(struct loop *l)
{
    struct run *run = l->run;

    for (int i = 0; i < run->n_files; i++) {
        if (run_file_has_changed(&run->files[i]) && run->files[i].due_us == 0)
            run->files[i].due_us = clock_boot_us();
    }
}

static void
reload_file(struct loop *l, int i)
{
    struct run *run = l->run;
    struct run_file *f = &run->files[i];
    struct err e = {0};

    f->due_us = 0;
    if (run_file_reload(run, f) == 0)
        return;
    watch_file(run->watch, i, f->shown);
    if (run_subscribe_more(run, &e) == 0 && run_file_sync(run, f, false, &e) == 0 &&
        run_reconcile(run, &e) == 0)
        return;
    if (e.code == ERR_UNREACHABLE) {
        mend(l, &e);
    } else {
        say_below_bar(run);
        cli_say("%s: the queue is unchanged: %s", f->words, e.text);
    }
}

static void
reload_due(struct loop *l)
{
    for (int i = 0; i < l->run->n_files && !l->done; i++) {
        struct run_file *f = &l->run->files[i];

        if (f->due_us && clock_boot_us() >= f->due_us)
            reload_file(l, i);
    }
}

/* --- the loop --- */

static void
recount(struct loop *l)
{
    const struct run_jobs *jobs = &l->run->jobs;
    int64_t now = clock_boot_us();

    l->counts_are_old = jobs->n > RECOUNT_EACH && now - l->counted_us < RECOUNT_US;
    if (l->counts_are_old)
        return;
    run_jobs_count(jobs, &l->counts);
    l->counted_us = now;
}

static void
draw(struct loop *l)
{
    struct run *run = l->run;
    const struct run_counts *c = &l->counts;
    auto_buf struct buf out = BUF_INIT;

    if (!run->progress.on)
        return;
    recount(l);
    struct progress_counts p = {
        .total = c->total,
        .done = c->done,
        .running = c->running,
        .waiting = c->waiting,
        .failed = c->done - c->completed - c->cancelled,
        .done_at_begin = c->before,
    };

    progress_draw(&run->progress, &p, clock_boot_us(), &out);
    cli_put(&out);
}

static bool
all_ended(struct run *run)
{
    for (int i = 0; i < run->n_files; i++) {
        if (run->files[i].due_us)
            return false;
    }
    return !run->opt.watch && run_jobs_have_ended(&run->jobs);
}

static int
wait_ms(const struct loop *l)
{
    int64_t now = clock_boot_us();
    int64_t due = l->tick_us;

    for (int i = 0; i < l->run->n_files; i++) {
        if (l->run->files[i].due_us && l->run->files[i].due_us < due)
            due = l->run->files[i].due_us;
    }
    if (l->interrupt_us && l->interrupt_us + TWICE_US < due)
        due = l->interrupt_us + TWICE_US;
    if (l->counts_are_old && l->counted_us + RECOUNT_US < due)
        due = l->counted_us + RECOUNT_US;
    return due <= now ? 0 : (int)((due - now + 999) / 1000);
}

static void
turn(struct loop *l)
{
    struct run *run = l->run;
    struct err e = {0};
    struct pollfd p[3] = {
        {.fd = client_fd(run->client), .events = POLLIN},
        {.fd = l->signals, .events = POLLIN},
        {.fd = watch_fd(run->watch), .events = POLLIN},
    };

    if (poll(p, 3, wait_ms(l)) < 0 && errno != EINTR)
        err_abort("poll: %s", strerror(errno));
    on_signals(l);
    if (l->done)
        return;
    if (p[2].revents)
        watch_read(run->watch, run->files, clock_boot_us());
    if (clock_boot_us() >= l->tick_us) {
        l->tick_us = clock_boot_us() + TICK_MS * 1000;
        look_at_files(l);
    }
    reload_due(l);
    if (!l->done && client_pump(run->client, &e) < 0) {
        run_drain_events(run);
        mend(l, &e);
    }
}

int
run_follow(struct run *run, struct err *lost)
{
    struct err e = {0};
    struct loop l = {
        .run = run,
        .signals = signals_to_fd((const int[]){SIGINT, SIGTERM, SIGHUP, SIGWINCH, 0}, &e)};

    if (l.signals < 0)
        return cli_fail(&e);
    l.tick_us = clock_boot_us() + TICK_MS * 1000;
    if (lost->code)
        mend(&l, lost);
    while (!l.done) {
        run_drain_events(run);
        if (l.interrupt_us && clock_boot_us() - l.interrupt_us >= TWICE_US)
            finish(&l, 128 + SIGINT);
        else if (!l.interrupt_us && all_ended(run))
            finish(&l, -1);
        else
            draw(&l);
        if (!l.done)
            turn(&l);
    }
    say_below_bar(run);
    close(l.signals);
    return l.status < 0 ? run_summary(run) : l.status;
}
