/* berthd: start-up, main loop and exit. Start-up has a fixed order - settings, lock on the
 * state, store, GPUs, recovery, socket - and each step may fail with a message; clients are
 * promised nothing before the last one. On exit, running jobs keep running: their supervisors
 * do not need a daemon, and the next daemon finds them. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/file.h"
#include "base/fs_kind.h"
#include "base/libc.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/job_mps.h"
#include "daemon/common/counters.h"
#include "daemon/common/pace.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/daemon.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/card_locks.h"
#include "daemon/gpu/card_numbers.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/gpu/telemetry.h"
#include "daemon/idle_work.h"
#include "daemon/outbox/outbox.h"
#include "daemon/part_wiring.h"
#include "daemon/recover.h"
#include "daemon/reload.h"
#include "daemon/request/admit.h"
#include "daemon/request/budget.h"
#include "daemon/request/file_upload.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/daemon_log.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/rpc/waiters.h"
#include "daemon/rules.h"
#include "daemon/service/daemon_options.h"
#include "daemon/service/kept_options.h"
#include "daemon/service/notify.h"
#include "daemon/service/start_note.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/state/learned_demands.h"
#include "daemon/turn/past_store.h"
#include "daemon/turn/promises_kept.h"
#include "daemon/turn/runs_kept.h"
#include "daemon/turn/turn.h"
#include "daemon/turn/turn_loop.h"
#include "daemon/turn_wiring.h"
#include "daemon/view/expected_starts.h"
#include "daemon/view/views.h"
#include "store/store.h"
#include "sys/keyring.h"

#define LEAVE_MS     1000
#define MAPPED_BYTES (8 << 20) /* larger blocks get a mapping of their own */

/* --- exit --- */

/* A client that does not read its answer must not delay the exit. */
static void
on_patience_over(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    server_hang_up(d->rpc->server);
}

static void
leave(struct daemon *d, const char *why)
{
    if (d->inst.leaving)
        return;
    d->inst.leaving = d->inst.stopping = true;
    d->left_why = why;
    log_info("event=leaving why=\"%s\" jobs=%zu", why, queue_n(d->inst.queue));
    notify_leaving(d->notify);
    startnote_stopped(&d->inst.places, -1); /* before the socket disappears */
    server_release(d->rpc->server, NULL);   /* answers held for the last commit */
    server_close(d->rpc->server);
    cards_close(d->cards);
    attempts_close(d->attempts);
    slurm_close(d->slurm);
    courier_close(d->courier);
    turn_loop_close(d->turn_loop);
    uv_timer_start(&d->idle_timer, on_patience_over, LEAVE_MS, 0);
    uv_unref((uv_handle_t *)&d->idle_timer);
    uv_close((uv_handle_t *)&d->on_term, NULL);
    uv_close((uv_handle_t *)&d->on_int, NULL);
    uv_close((uv_handle_t *)&d->on_hup, NULL);
}

static void
on_signal(uv_signal_t *handle, int number)
{
    struct daemon *d = handle->data;
    if (!d->inst.ready) {
        log_info("event=leaving why=\"signal %d during start\"", number);
        startnote_stopped(&d->inst.places, d->starting_fd);
        exit(1); /* nothing was promised yet; whoever waits for `ready` sees the exit */
    }
    works_finish(d->rpc);
    turn_run(
        d->inst.turn); /* commits what arrived; if that fails, supervisors keep the outcomes */
    leave(d, number == SIGINT ? "SIGINT" : "SIGTERM");
}

static void
on_hang_up(uv_signal_t *handle, int number)
{
    (void)number;
    struct daemon *d = handle->data;
    reload_settings(&d->rules, &d->names, d->options);
}

static void
on_idle_over(uv_timer_t *timer)
{
    const struct daemon *d = timer->data;
    if (queue_n(d->inst.queue) > 0 || works_change(d->rpc) ||
        !courier_is_idle(d->courier, false) || server_client_count(d->rpc->server) > 0 ||
        server_has_callers(d->rpc->server))
        return; /* the turn of their request arms the timer again */
    leave(timer->data, "idle");
}

/* Exits, or arms the idle timer, if nothing is left to do. */
static void
after_turn(struct daemon *d)
{
    if (!d->inst.ready || d->inst.leaving)
        return;
    bool empty = queue_n(d->inst.queue) == 0 && courier_is_idle(d->courier, d->inst.stopping);
    if (d->inst.stopping && (!d->inst.stop_when_empty || empty) && !works_change(d->rpc)) {
        leave(d, "on request");
        return;
    }
    bool idle = empty && server_client_count(d->rpc->server) == 0;
    if (!d->inst.leave_when_idle || d->inst.config.idle_exit_s == 0 || !idle)
        uv_timer_stop(&d->idle_timer);
    else if (!uv_is_active((uv_handle_t *)&d->idle_timer))
        uv_timer_start(&d->idle_timer, on_idle_over,
                       (uint64_t)d->inst.config.idle_exit_s * 1000, 0);
}

/* --- starting --- */

/* Each user has a folder of their own in it. All users may pass through; only root
 * creates files. */
static int
make_logs(struct daemon *d, struct err *e)
{
    mode_t old = umask(d->inst.places.system ? 022 : 077);
    int rc = file_mkdirs(d->inst.places.logs, 0755, e);
    umask(old);
    return rc;
}

static int
open_state(struct daemon *d, struct err *e)
{
    bool held = false;
    auto_free char *jobs = xasprintf("%s/jobs", d->inst.places.state);
    auto_free char *lock = xasprintf("%s/lock", d->inst.places.state);
    if (file_mkdirs(jobs, 0700, e) < 0 || make_logs(d, e) < 0)
        return -1;
    d->lock_fd = file_lock(lock, &held, e);
    if (d->lock_fd < 0)
        return held ? err_set(e, ERR_REFUSED, "a daemon is already running on %s",
                              d->inst.places.state)
                    : -1;
    d->starting_fd = startnote_begin(&d->inst.places); /* the store may take minutes to open */
    struct stat st;
    d->follows_dead = fstat(d->lock_fd, &st) == 0 && st.st_size > 0;
    d->inst.jobs_fd = open(jobs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->inst.jobs_fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", jobs);
    if (store_open(d->inst.places.state, &d->inst.store, e) < 0)
        return -1;
    snprintf(d->inst.name, sizeof d->inst.name, "%s", store_token(d->inst.store));
    shared_folder_load(&d->inst);
    return 0;
}

/* An instance with unfinished jobs on simulated GPUs stays simulated: restarted without --sim,
 * it must not move those jobs to real GPUs. The same holds after a daemon that died, since
 * whoever starts the next one may not know its options. */
static char *
choose_sim(struct daemon *d, const char *asked, struct err *e)
{
    auto_close int state = open(d->inst.places.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_buf struct buf before = BUF_INIT;
    struct err none;
    if (file_read_at(state, "sim", 256, &before, &none) < 0)
        buf_clear(&before);
    if (!asked && before.len > 0 && (queue_n(d->inst.queue) > 0 || d->follows_dead))
        return xstrdup(buf_str(&before));
    if (!asked) {
        unlinkat(state, "sim", 0);
        return NULL;
    }
    if (file_write_atomic_at(state, "sim", asked, strlen(asked), 0600, false, e) < 0)
        log_warn("%s", e->text);
    return xstrdup(asked);
}

static void
make_ledger(struct daemon *d)
{
    struct ledger_policy p;
    ledger_policy_init(&p);
    p.margin_mib = (int32_t)d->inst.config.margin_mib;
    p.idle_mib = (int32_t)d->inst.config.idle_threshold_mib;
    p.spike_permille = (int32_t)(d->inst.config.spike_buffer * 1000 + 0.5);
    p.spread = d->inst.config.placement == PLACEMENT_SPREAD;
    d->inst.ledger = ledger_new(&p);
    ledger_set_wall_offset(d->inst.ledger, clock_wall_us() - clock_boot_us());
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    ledger_set_host(d->inst.ledger, (int32_t)sysconf(_SC_NPROCESSORS_ONLN),
                    (int64_t)pages * page / (1024 * 1024));
}

static int64_t
wall_us(void *arg)
{
    (void)arg;
    return clock_wall_us();
}

static int64_t
boot_us(void *arg)
{
    (void)arg;
    return clock_boot_us();
}

static void
explain_end(void *arg, struct job *job)
{
    struct daemon *d = arg;
    health_job_over(d->cards, job);
}

static void
wake(void *arg, bool plan)
{
    if (plan)
        turn_touch(arg); /* arg: the instance */
    else
        turn_touch_unplanned(arg);
}

/* Creates the state with its view of the daemon, and the checks on what may enter it. */
static void
make_state(struct daemon *d)
{
    d->past = past_of_store(d->inst.store);
    d->around = (struct around){.arg = d,
                                .wall_us = wall_us,
                                .boot_us = boot_us,
                                .user_name = daemon_user_name,
                                .explain_end = explain_end};
    d->inst.state = &d->state;
    d->state = (struct state){.queue = d->inst.queue,
                              .ledger = d->inst.ledger,
                              .planner = d->inst.planner,
                              .fair = d->rules.fair,
                              .limits = &d->rules.limits,
                              .past = &d->past,
                              .around = &d->around,
                              .system = d->inst.places.system,
                              .changes = {.wake = wake, .wake_arg = &d->inst}};
    state_open(&d->state);
    d->budget = xcalloc(1, sizeof *d->budget);
    *d->budget = (struct budget){.config = &d->inst.config, .system = d->inst.places.system};
    d->admission = xcalloc(1, sizeof *d->admission);
    *d->admission = (struct admission){.state = d->inst.state,
                                       .config = &d->inst.config,
                                       .budget = d->budget,
                                       .store = d->inst.store};
    d->uploads = uploads_new(&d->inst, d->roles, d->budget, d->rules.models);
}

/* The daemon also works without readable GPUs: it supervises running jobs, runs jobs without
 * GPUs, and keeps the others waiting for the driver; health reports that. */
static int
find_cards(struct daemon *d, const struct options *o, struct err *e)
{
    auto_free char *sim = choose_sim(d, o->sim, e);
    d->cards->prober = prober_new(d->cards, sim);
    cards_recall(d->cards);
    if (prober_start(d->cards->prober, d->inst.config.probe_deadline_ms, e) < 0) {
        if (queue_n(d->inst.queue) == 0 && (sim || o->need_gpus))
            return -1;
        log_error("event=no-gpus %s", e->text);
        cards_recall_any(d->cards);
    }
    /* The machine's daemon does without GPUs that another daemon has locked, unless all are. A
     * user's daemon refuses to start: the machine's daemon is in charge there. */
    if (d->cards->lock_conflict && queue_n_active(d->inst.queue) == 0 &&
        (!d->inst.places.system || health_all_locked_out(d->cards)))
        return err_set(e, ERR_REFUSED, "%s", d->cards->lock_conflict);
    return 0;
}

/* Each client and each running job takes a descriptor. Call after the nursery has started, so
 * that jobs keep the limit of the process that started this daemon. */
static void
raise_descriptor_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r))
        return;
    r.rlim_cur = r.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &r))
        log_warn("event=descriptor-limit %s", strerror(errno));
}

static void
start_handles(struct daemon *d)
{
    uv_timer_init(d->inst.loop, &d->idle_timer);
    uv_signal_init(d->inst.loop, &d->on_term);
    uv_signal_init(d->inst.loop, &d->on_int);
    uv_signal_init(d->inst.loop, &d->on_hup);
    d->idle_timer.data = d;
    d->on_term.data = d->on_int.data = d->on_hup.data = d;
    uv_signal_start(&d->on_term, on_signal, SIGTERM);
    uv_signal_start(&d->on_int, on_signal, SIGINT);
    uv_signal_start(&d->on_hup, on_hang_up, SIGHUP);
}

static void
names_have_come(void *arg, bool ids_differ)
{
    struct daemon *d = arg;
    if (ids_differ)
        rules_take(&d->rules);
    if (d->rpc->server)
        server_resume(d->rpc->server);
}

static void
new_round(void *arg)
{
    const struct daemon *d = arg;
    server_new_round(d->rpc->server);
}

static void
make_parts(struct daemon *d)
{
    d->slurm = slurm_new(&d->inst);
    const struct courier_host deliver = courier_host_of(d);
    d->courier = courier_new(&d->inst, &deliver);
    d->tally = tally_new();
    d->pace = pace_new(d->inst.loop, d->tally);
}

/* Creates the parts that serve clients from the other parts. */
static void
make_readers(struct daemon *d)
{
    d->views = xcalloc(1, sizeof *d->views);
    *d->views = (struct views){.inst = &d->inst,
                               .roles = d->roles,
                               .attempts = d->attempts,
                               .cards = d->cards,
                               .slurm = d->slurm,
                               .pace = d->pace};
    d->rpc = xcalloc(1, sizeof *d->rpc);
    *d->rpc = (struct rpc){.inst = &d->inst,
                           .roles = d->roles,
                           .admission = d->admission,
                           .budget = d->budget,
                           .uploads = d->uploads,
                           .models = d->rules.models,
                           .views = d->views,
                           .attempts = d->attempts,
                           .cards = d->cards,
                           .slurm = d->slurm,
                           .courier = d->courier,
                           .tally = d->tally,
                           .pace = d->pace,
                           .waits = waits_new(d->inst.queue)};
    d->rules.views = d->views;
    d->idle_work = idle_work_new(&d->inst, d->admission, d->rpc, d->pace);
}

static int
start(struct daemon *d, const struct options *o, struct err *e)
{
    if (open_state(d, e) < 0)
        return -1;
    /* Not fatal: only the next daemon would lack the options. */
    if (recall_write(d->inst.places.state, o, e) < 0)
        log_warn("event=options-not-kept %s", e->text);
    /* Set by the service's unit file, so that it survives a changed ExecStart. */
    const char *unit = o->system ? getenv("BERTH_JOBS_UNIT") : NULL;
    d->attempts = attempts_new(&d->inst, &d->card_facts, &d->rules.limits, unit, e);
    if (!d->attempts)
        return -1;
    raise_descriptor_limit();
    start_handles(d);
    const struct cards_host processes = cards_host_of(d);
    d->cards = cards_new(&d->inst, &d->card_facts, &processes);
    users_start(d->inst.loop, names_have_come, d);
    d->inst.queue = queue_new();
    make_ledger(d);
    settings_names_start(&d->names, &d->inst);
    d->rules.inst = &d->inst;
    rules_make(&d->rules);
    make_state(d);
    make_parts(d);
    make_readers(d);
    turn_wire(d, after_turn);
    struct recovery recovery = {
        .inst = &d->inst, .attempts = d->attempts, .cards = d->cards, .slurm = d->slurm};
    if (runs_load(d->inst.store, d->inst.state->history, d->inst.planner, e) < 0 ||
        tally_load(d->tally, d->inst.store, e) < 0 || recover_load(&recovery, e) < 0 ||
        courier_load(d->courier, e) < 0 || find_cards(d, o, e) < 0)
        return -1;
    mps_look(d->attempts);
    crash_point("daemon-before-recovery");
    if (recover_attempts(&recovery, e) < 0)
        return -1;
    crash_point("daemon-after-recovery");
    d->rpc->server = server_open(d->rpc, methods_find, e);
    if (!d->rpc->server)
        return -1;
    learned_recover(d->inst.state);
    promises_load(d->inst.turn);
    pace_start(d->pace, new_round, d);
    d->inst.ready = true;
    turn_touch(&d->inst);
    return 0;
}

static void
say_ready(const struct options *o, const char *text)
{
    if (o->ready_fd < 0)
        return;
    (void)file_write_all(o->ready_fd, text, strlen(text));
    (void)file_write_all(o->ready_fd, "\n", 1);
    close(o->ready_fd);
}

/* Until a clean exit the lock file holds our pid, whether a service manager restarts us, and on
 * a line of its own our socket, for clients whose environment leads to another
 * (places_live_socket). A client that finds the lock free but the file not empty knows that a
 * daemon died (cli/ask/connect.c). */
static void
sign_lock(const struct daemon *d)
{
    auto_buf struct buf line = BUF_INIT;
    buf_addf(&line, "%d%s\n%s\n", (int)getpid(), d->notify ? " service" : "",
             d->inst.places.socket);
    if (ftruncate(d->lock_fd, 0) < 0 ||
        file_write_all_at(d->lock_fd, line.data, line.len, 0) < 0)
        log_warn("event=lock-not-signed %m");
}

/* Stores why this daemon exited (the text given to leave()), for clients that find
 * no daemon. */
static void
note_exit(const struct daemon *d)
{
    auto_close int state = open(d->inst.places.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e = {0};
    if (file_write_atomic_at(state, "exit", d->left_why, strlen(d->left_why), 0600, false,
                             &e) == 0)
        return;
    log_warn("event=exit-not-noted %s", e.text);
    unlinkat(state, "exit", 0); /* left by an earlier daemon */
}

static void
finish(struct daemon *d)
{
    struct err e = {0};
    uv_run(d->inst.loop, UV_RUN_DEFAULT);
    if (telemetry_save(d->cards, &e) < 0)
        log_warn("event=series-not-saved %s", e.text);
    if (store_checkpoint(d->inst.store, &e) < 0)
        log_warn("checkpoint: %s", e.text);
    if (queue_n(d->inst.queue) == 0)
        recall_forget(d->inst.places.state);
    store_close(d->inst.store);
    gpulock_free_all(d->cards);
    note_exit(d);
    startnote_stopped(&d->inst.places, -1); /* again: only now may the next one start */
    if (ftruncate(d->lock_fd, 0) < 0)
        log_warn("event=lock-not-cleared %m");
    close(d->lock_fd);
    uv_close((uv_handle_t *)&d->idle_timer, NULL);
    works_free(d->rpc);
    pace_close(d->pace);
    settings_names_close(&d->names);
    users_close();
    forecast_free(d->views);
    server_hang_up(d->rpc->server);
    uv_run(d->inst.loop, UV_RUN_DEFAULT);
    server_free(d->rpc->server);
    slurm_free(d->slurm);
    courier_free(d->courier);
    waits_free(d->rpc->waits);
    free(d->rpc);
    idle_work_free(d->idle_work);
    pace_free(d->pace);
    free(d->views);
    tally_free(d->tally);
    turn_free(d->inst.turn);
    turn_loop_free(d->turn_loop);
    uploads_free(d->uploads);
    free(d->admission);
    free(d->budget);
    free(d->roles);
    state_close(d->inst.state);
    queue_free(d->inst.queue);
    rules_free(&d->rules);
    ledger_free(d->inst.ledger);
    cards_free(d->cards);
    shared_folder_free(&d->inst);
    config_free(&d->inst.config);
    places_free(&d->inst.places);
    attempts_free(d->attempts);
    notify_free(d->notify);
    uv_loop_close(d->inst.loop);
}

/* All users reach the socket of the machine's daemon, but only root its state. */
static int
find_places(struct daemon *d, const struct options *o, struct err *e)
{
    if (!o->system)
        return places_find(o->dir, &d->inst.places, e);
    if (geteuid() != 0)
        return err_set(e, ERR_PERMISSION,
                       "--system needs root, because it runs jobs as the users who submit "
                       "them; without it the daemon serves only you");
    if (places_system(o->dir, &d->inst.places, e) < 0)
        return -1;
    /* Root's keys stay in the session keyring of the shell that started this daemon. */
    int why = keyring_leave();
    return why ? err_errno(e, ERR_FAILED, why, "cannot join a new session keyring") : 0;
}

/* If two daemons can hold the lock, both could run the queue. */
static int
refuse_network_state(const struct daemon *d, struct err *e)
{
    const char *kind;
    if (fs_kind_of(d->inst.places.state, &kind) != FS_NETWORK)
        return 0;
    return err_set(e, ERR_REFUSED,
                   "%s is on a network file system (%s), where locks and writes are "
                   "unreliable; choose a folder on a local disk with --dir or BERTH_DIR (jobs "
                   "for --on slurm need the setting slurm_folder then: a folder that the nodes "
                   "see)",
                   d->inst.places.state, kind);
}

static int
prepare(struct daemon *d, struct options *o, struct err *e)
{
    if (find_places(d, o, e) < 0 || refuse_network_state(d, e) < 0 ||
        recall_options(d->inst.places.state, o, e) < 0 ||
        daemon_options_read_config(o, &d->inst.places, &d->inst.config, e) < 0)
        return -1;
    d->roles = roles_new(&d->inst);
    auto_free char *base = xstrdup(d->inst.places.log);
    *strrchr(base, '/') = '\0';
    mode_t old = umask(d->inst.places.system ? 022 : 077);
    int rc = file_mkdirs(base, d->inst.places.system ? 0755 : 0700, e);
    umask(old);
    if (rc || logging_open(d->inst.places.log, o->ready_fd >= 0, e) < 0)
        return -1;
    logging_apply(&d->inst.config);
    return 0;
}

/* Answers can grow to 64 MiB. A block with its own mapping grows without copying and returns
 * to the kernel when freed; by default the C library raises its threshold and maps fewer and
 * fewer blocks. */
static void
map_what_is_large(void)
{
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
}

static int
make_loop(uv_loop_t *loop, struct err *e)
{
    int rc = uv_loop_init(loop);
    if (rc == 0)
        rc = uv_loop_configure(loop, UV_METRICS_IDLE_TIME); /* for pace.c */
    return rc ? err_set(e, ERR_FAILED, "cannot make a loop: %s", uv_strerror(rc)) : 0;
}

int
main(int argc, char **argv)
{
    struct options o;
    struct err e = {0};
    uv_loop_t loop;
    struct daemon d = {
        .inst.loop = &loop, .inst.jobs_fd = -1, .lock_fd = -1, .starting_fd = -1};
    log_set_program("berthd");
    map_what_is_large();
    d.options = &o;
    int rc = daemon_options_parse(argc, argv, &o, &e);
    if (rc > 0)
        return 0;
    /* Keeps descriptors that our starter left open from our children. */
    libc_cloexec_from(STDERR_FILENO + 1);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);  /* until there are settings to reload */
    signal(SIGCHLD, SIG_IGN); /* supervisors and probes are watched through sockets */
    umask(077);
    unsetenv("BERTH_MARK"); /* a daemon started from within a job is not part of that job */
    d.notify = notify_new();
    d.inst.started_us = clock_wall_us();
    d.inst.started_boot_us = clock_boot_us();
    d.inst.leave_when_idle = !o.stay && !o.system;
    if (rc < 0 || make_loop(&loop, &e) < 0 || prepare(&d, &o, &e) < 0 ||
        start(&d, &o, &e) < 0) {
        log_error("%s", e.text);
        say_ready(&o, e.text);
        startnote_failed(&d.inst.places, d.starting_fd);
        /* The instance is only half built; the kernel frees it faster than we could. */
        _exit(err_exit_status(e.code));
    }
    log_info("event=ready pid=%d socket=%s gpus=%d backend=%s", getpid(), d.inst.places.socket,
             ledger_n_cards(d.inst.ledger),
             prober_backend(d.cards->prober) ? prober_backend(d.cards->prober) : "none");
    sign_lock(&d);
    startnote_serving(&d.inst.places, d.starting_fd);
    say_ready(&o, "ready");
    notify_ready(d.notify, &d.inst);
    uv_run(&loop, UV_RUN_DEFAULT);
    finish(&d);
    free(o.recalled);
    return 0;
}
