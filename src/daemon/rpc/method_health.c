/* `health`: whether the daemon and what it needs are well, one check after the other, in
 * words. Computed on request from known state and a few cheap local checks; nothing here
 * blocks. "warn" is for an administrator to look at some day; "bad" keeps jobs from starting
 * or being stored, or a GPU from working. Limits are set so that a machine in normal use shows
 * neither. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "core/ledger/ledger.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/clock_watch.h"
#include "daemon/common/counters.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/nursery/nursery_link.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/rpc/rpc_server.h"
#include "store/store.h"
#include "sys/self.h"

#define S               INT64_C(1000000)
#define JUMP_SHOWN_US   (3600 * S)                /* for how long a jump is reported */
#define EARLIEST_US     (INT64_C(1735689600) * S) /* 2025: an earlier clock is surely wrong */
#define REJECTED_US     (300 * S)
#define SLOW_COMMIT_US  S
#define DISK_WARN_MIB   256
#define DISK_BAD_MIB    4 /* needed by a full disk's reserve and a log */
#define MEMORY_WARN_PCT 3
#define FDS_WARN_PCT    80

enum verdict { OK, WARN, BAD };

struct checkup {
    const struct roles *roles;
    struct jsonw *out;
    enum verdict worst;
};

static void say(struct checkup *c, enum verdict v, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static const char *
verdict_word(enum verdict v)
{
    static const char *const words[] = {[OK] = "ok", [WARN] = "warn", [BAD] = "bad"};
    return words[v];
}

static void
say(struct checkup *c, enum verdict v, const char *name, const char *fmt, ...)
{
    auto_buf struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    jsonw_object(c->out);
    jsonw_kstr(c->out, "name", name);
    jsonw_kstr(c->out, "state", verdict_word(v));
    jsonw_kstr(c->out, "text", buf_str(&text));
    jsonw_end_object(c->out);
    if (v > c->worst)
        c->worst = v;
}

/* --- the GPUs --- */

static void
check_probe(const struct rpc *rpc, struct checkup *c)
{
    int64_t silent_us = prober_unknown_since_us(rpc->cards->prober);
    const char *error = prober_error(rpc->cards->prober),
               *backend = prober_backend(rpc->cards->prober);
    char age[24], replaced[48];
    if (silent_us || prober_sampled_us(rpc->cards->prober) == 0) {
        if (silent_us)
            format_duration((clock_wall_us() - silent_us) / 1000, age);
        say(c, BAD, "probe", "the GPUs have not answered%s%s%s%s; GPU jobs wait",
            silent_us ? " for " : " yet", silent_us ? age : "", error ? ": " : "",
            error ? error : "");
        return;
    }
    format_duration((clock_boot_us() - prober_sampled_us(rpc->cards->prober)) / 1000, age);
    snprintf(replaced, sizeof replaced, "; replaced %lld times so far",
             (long long)prober_restarts(rpc->cards->prober));
    say(c, OK, "probe", "sampled %s ago by %s%s", age, backend ? backend : "?",
        prober_restarts(rpc->cards->prober) ? replaced : "");
}

static bool
is_prohibited(const struct card *c)
{
    return card_state(c) == GPU_UP && c->info.compute == GPU_COMPUTE_PROHIBITED;
}

static enum verdict
card_verdict(const struct card *c)
{
    switch (card_state(c)) {
    case GPU_UP:
        return is_prohibited(c) ? WARN : OK;
    case GPU_PAUSED:
    case GPU_DRAINING:
        return WARN;
    case GPU_LOST:
    case GPU_UNKNOWN:
    case GPU_SICK:
        return BAD;
    }
    return BAD;
}

/* One line for all healthy GPUs together, and one for each other GPU. */
static void
check_cards(struct rpc *rpc, struct checkup *c)
{
    int n = 0, up = 0;
    for (int i = 0; i < ledger_n_cards(rpc->inst->ledger); i++) {
        auto_buf struct buf text = BUF_INIT;
        const struct card *card = ledger_card(rpc->inst->ledger, i);
        if (card->gone)
            continue;
        n++;
        enum verdict v = card_verdict(card);
        up += v == OK;
        /* If nothing is known of any GPU, the probe's line says so. */
        if (v == OK ||
            (card_state(card) == GPU_UNKNOWN && prober_unknown_since_us(rpc->cards->prober)))
            continue;
        if (is_prohibited(card))
            buf_addf(&text, "gpu %d accepts no processes (compute mode 'prohibited')", i);
        else
            health_say(rpc->cards, i, &text);
        say(c, v, "gpu", "%s", buf_str(&text));
    }
    for (int i = 0; health_unanswered(rpc->cards, i); i++)
        say(c, WARN, "gpu", "%s; it is asked again at times", health_unanswered(rpc->cards, i));
    if (n == 0)
        say(c, WARN, "gpu", "no GPUs; 'berth doctor' says why");
    else if (up == n)
        say(c, OK, "gpu", n == 1 ? "the GPU is available" : "all %d GPUs are available", n);
    else
        say(c, up > 0 ? OK : WARN, "gpu", "%d of %d GPUs are available", up, n);
}

/* --- the disk --- */

/* The file systems of state and logs, which are on a disk of this machine (berthd.c refuses
 * others). */
static void
check_disk(const struct instance *inst, struct checkup *c, const char *name, const char *path)
{
    const struct err *trouble = turn_disk_trouble(inst);
    struct statvfs fs;
    char room[24];
    if (statvfs(path, &fs)) {
        say(c, BAD, name, "%s no longer exists", path);
        return;
    }
    int64_t free_mib = (int64_t)((double)fs.f_bavail * (double)fs.f_frsize / (1 << 20));
    format_mib(free_mib, room);
    if (trouble)
        say(c, BAD, name, "%s; no new jobs are accepted, running jobs continue", trouble->text);
    else if (free_mib < DISK_BAD_MIB)
        say(c, BAD, name, "%s has %s left; free some space", path, room);
    else if (fs.f_files > 0 && fs.f_favail == 0)
        say(c, BAD, name, "%s has no room for more files (inodes)", path);
    else
        say(c, free_mib < DISK_WARN_MIB ? WARN : OK, name, "%s has %s left", path, room);
}

static void
check_disks(const struct instance *inst, struct checkup *c)
{
    struct stat state, logs;
    check_disk(inst, c, "disk", inst->places.state);
    if (stat(inst->places.state, &state) == 0 && stat(inst->places.logs, &logs) == 0 &&
        state.st_dev != logs.st_dev)
        check_disk(inst, c, "logs", inst->places.logs);
}

static void
check_database(const struct rpc *rpc, struct checkup *c)
{
    const struct tally_times *t = tally_times(rpc->tally);
    double mib = (double)store_bytes(rpc->inst->store) / (1 << 20);
    if (t->error[0])
        say(c, BAD, "database",
            "the newest changes could not be written and are tried again: %s", t->error);
    else if (t->committed_us == 0)
        say(c, OK, "database", "%.1f MiB; nothing written since the daemon's start", mib);
    else
        say(c, t->slow_us > SLOW_COMMIT_US ? WARN : OK, "database",
            "%.1f MiB; the newest commit took %.1f ms, the slowest lately %.1f ms%s", mib,
            (double)t->commit_us / 1e3, (double)t->slow_us / 1e3,
            t->slow_us > SLOW_COMMIT_US ? ": the disk is slow, and so is every start" : "");
}

/* --- the daemon --- */

static void
check_daemon(const struct instance *inst, struct checkup *c)
{
    char up[24];
    format_duration((clock_boot_us() - inst->started_boot_us) / 1000, up);
    if (inst->stopping)
        say(c, WARN, "daemon", "pid %d is stopping and starts no more jobs", getpid());
    else
        say(c, OK, "daemon", "pid %d, up %s", getpid(), up);
}

static void
check_socket(const struct instance *inst, struct checkup *c)
{
    struct stat st;
    if (stat(inst->places.socket, &st) < 0 || !S_ISSOCK(st.st_mode))
        say(c, WARN, "socket", "%s was removed; it will be created again", inst->places.socket);
    else
        say(c, OK, "socket", "%s", inst->places.socket);
}

static void
check_clients(const struct rpc *rpc, struct checkup *c)
{
    int64_t at_us, n = server_turned_away(rpc->server, &at_us);
    bool lately = n > 0 && clock_boot_us() - at_us < REJECTED_US;
    say(c, lately ? WARN : OK, "clients", "%d connected, %lld refused%s",
        server_client_count(rpc->server), (long long)n,
        lately ? ", the last within five minutes; the daemon's log says whose" : "");
}

static void
check_descriptors(const struct self *self, struct checkup *c)
{
    if (self->open_fds < 0 || self->max_fds <= 0)
        return;
    bool many = self->open_fds > self->max_fds * FDS_WARN_PCT / 100;
    say(c, many ? WARN : OK, "files", "%d of %lld descriptors are in use%s", self->open_fds,
        (long long)self->max_fds, many ? "; each running job and client takes one" : "");
}

static void
check_memory(const struct self *self, struct checkup *c)
{
    int64_t available, total;
    char ours[24], left[24], all[24];
    self_read_memory(&available, &total);
    if (available < 0 || total <= 0 || self->resident_bytes < 0)
        return;
    bool scarce = available < total * MEMORY_WARN_PCT / 100;
    say(c, scarce ? WARN : OK, "memory", "the daemon has %s; %s of the machine's %s are free%s",
        format_mib(self->resident_bytes >> 20, ours), format_mib(available >> 20, left),
        format_mib(total >> 20, all), scarce ? ", the kernel may soon end processes" : "");
}

static void
check_shepherds(const struct rpc *rpc, struct checkup *c)
{
    if (nursery_is_alive(rpc->attempts->nursery))
        say(c, OK, "shepherds", "the process that forks supervisors is running");
    else
        say(c, WARN, "shepherds",
            "the process that forks supervisors has exited; the next start creates another");
}

/* --- starts --- */

static void
say_user(void *ctx, uint32_t uid, int64_t since_us, const char *text)
{
    const struct checkup *c = ctx;
    char age[24];
    format_duration((clock_wall_us() - since_us) / 1000, age);
    say(ctx, WARN, "starts",
        "jobs of %s have not started for %s%s%s; they wait and will be retried",
        daemon_user_name(uid), age, roles_is_hidden(c->roles, uid) ? "" : ": ",
        roles_is_hidden(c->roles, uid) ? "" : text);
}

static void
check_starts(const struct rpc *rpc, struct checkup *c)
{
    const char *trouble = machine_says(rpc->attempts);
    char age[24];
    format_duration((clock_wall_us() - machine_since_us(rpc->attempts)) / 1000, age);
    if (trouble)
        say(c, BAD, "starts", "no job has started for %s: %s; jobs wait and will be retried",
            age, trouble);
    machine_each_user(rpc->attempts, say_user, c);
    if (watch_n_unswept(rpc->attempts) > 0)
        say(c, BAD, "starts",
            "%zu attempts wait until the processes left by their dead supervisors can be "
            "inspected",
            watch_n_unswept(rpc->attempts));
}

/* --- the clock --- */

static void
check_clock(struct instance *inst, struct checkup *c)
{
    const struct clock_watch *k = &inst->clock;
    char by[24], ago[24], now[32];
    clock_watch_look(&inst->clock);
    clock_rfc3339(clock_wall_us(), now);
    int64_t age_us = clock_boot_us() - k->jumped_boot_us;
    if (clock_wall_us() < EARLIEST_US)
        say(c, BAD, "clock", "it shows %s, which is impossible; begin times would be wrong",
            now);
    else if (k->jump_us && age_us < JUMP_SHOWN_US)
        say(c, WARN, "clock",
            "it was set %s by %s, %s ago; limits and run times are not affected",
            k->jump_us > 0 ? "ahead" : "back",
            format_duration((k->jump_us > 0 ? k->jump_us : -k->jump_us) / 1000, by),
            format_duration(age_us / 1000, ago));
    else
        say(c, OK, "clock", "%s, no jump within the last hour", now);
}

int
method_health(struct rpc *rpc, struct caller *caller, json_t *params, struct jsonw *out,
              struct err *e)
{
    struct checkup c = {.roles = rpc->roles, .out = out};
    struct self self;

    (void)caller, (void)params, (void)e;
    self_read(&self);
    jsonw_object(out);
    jsonw_kint(out, "version", 1);
    jsonw_karray(out, "checks");
    if (turn_disk_trouble(rpc->inst)) /* it explains other failures */
        check_disks(rpc->inst, &c);
    check_starts(rpc, &c);
    check_daemon(rpc->inst, &c);
    check_probe(rpc, &c);
    check_cards(rpc, &c);
    if (!turn_disk_trouble(rpc->inst))
        check_disks(rpc->inst, &c);
    check_database(rpc, &c);
    check_socket(rpc->inst, &c);
    check_clients(rpc, &c);
    check_shepherds(rpc, &c);
    check_descriptors(&self, &c);
    check_memory(&self, &c);
    check_clock(rpc->inst, &c);
    jsonw_end_array(out);
    jsonw_kstr(out, "state", verdict_word(c.worst));
    jsonw_end_object(out);
    return 0;
}
