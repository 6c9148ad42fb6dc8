/* See mps_keeper.h. The daemon has a keeper forked for each job that is an MPS client. If
 * another keeper is already at work for the same user, the new one stays only until its job
 * has joined. Otherwise it takes the GPU's lock, starts the control daemon, announces when
 * that answers, and stays while jobs hold the user's lock (sys/mps_place.h). Like supervisors,
 * it needs no daemon and outlives it. It inherits the processes that the control daemon leaves
 * behind, its servers.
 *
 * If a control daemon ends while it has jobs, they are lost, so its servers are ended too, and
 * the next job has a new one started.
 *
 * A killed keeper leaves a control daemon, its servers and the jobs. The nursery ends those it
 * can find. If the nursery was killed too, the next keeper on the GPU, started for a job or
 * because the daemon noticed (job_mps.c), either takes over the control daemon, if it belongs
 * to its user and answers, or ends all of it before it starts another. */
#include "shepherd/mps/mps_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "shepherd/attempt/attempt.h"
#include "shepherd/mps/mps_control.h"
#include "shepherd/mps/mps_left.h"
#include "sys/mps_place.h"
#include "sys/procs.h"
#include "sys/signals.h"

#define ARRIVE_US INT64_C(15000000) /* for the job's supervisor to take the lock */
#define ASK_MS    2000
#define QUIT_MS   10000
#define TERM_US   INT64_C(2000000)
#define LEFT_US   INT64_C(10000000)
#define PAUSE_NS  2000000
#define AGAIN_MS  1000
#define LOOK_MS   20

/* A keeper whose control daemon is slow to end is waited for; otherwise the next user's job
 * could not become a client. */
_Static_assert(MPS_TURN_US > 2 * QUIT_MS * INT64_C(1000) + TERM_US + LEFT_US,
               "a keeper that ends slowly has not gone when the next one gives up");

struct keeper {
    struct mps_control control;
    struct mps_state state;
    int keeper_fd, users_fd, sig_fd;
    int control_fd;  /* pidfd of a control daemon that is not our child; -1: none */
    bool taken_over; /* the control daemon is not our child */
    pid_t waiter;    /* child that waits for the users' lock; 0: none */
    bool unused;     /* it got that lock */
    bool told;       /* asked to end */
    bool gone;       /* the control daemon has ended */
    int status;      /* its waitpid status */
};

static void
pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static void
say(struct keeper *k, enum mps_phase phase, const char *text)
{
    k->state.phase = phase;
    k->state.said_us = clock_boot_us();
    snprintf(k->state.text, sizeof k->state.text, "%s", text);
    if (mps_state_write(k->keeper_fd, &k->state) < 0)
        fprintf(stderr, "berth-mps: cannot write its state: %s\n", strerror(errno));
}

/* --- one per user and GPU --- */

static int
open_files(struct keeper *k, struct err *e)
{
    char name[MPS_USERS_SIZE];
    const struct mps_order *o = &k->control.order;
    k->users_fd =
        openat(FD_FOLDER, mps_users_name(o->uid, name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    k->keeper_fd = openat(FD_FOLDER, MPS_KEEPER, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return k->users_fd < 0 || k->keeper_fd < 0
               ? err_errno(e, ERR_FAILED, errno, "cannot open what is in %s", o->dir)
               : 0;
}

/* True if the GPU's keeper serves our user. */
static bool
is_kept(const struct keeper *k)
{
    struct mps_state s;
    return mps_state_read(k->keeper_fd, &s) && s.uid == k->control.order.uid &&
           (s.phase == MPS_STARTING || s.phase == MPS_READY) && mps_state_lives(&s);
}

/* True once the daemon has closed its end: the job's supervisor holds the lock, or no longer
 * needs it. */
static bool
has_arrived(int wait_ms)
{
    struct pollfd p = {.fd = FD_CTL, .events = POLLIN};
    return poll(&p, 1, wait_ms) > 0;
}

enum turn { TURN_OURS, TURN_KEPT, TURN_LATE };

/* Takes the GPU's lock, or finds a keeper at work. Holds the users' lock while checking, so
 * that such a keeper does not end meanwhile. */
static enum turn
take_turn(struct keeper *k)
{
    int64_t until_us = clock_boot_us() + MPS_TURN_US;
    bool holds = false;
    for (;;) {
        holds = holds || flock(k->users_fd, LOCK_SH | LOCK_NB) == 0;
        if (holds && flock(k->keeper_fd, LOCK_EX | LOCK_NB) == 0)
            return TURN_OURS;
        if (holds && is_kept(k))
            return TURN_KEPT;
        if (clock_boot_us() > until_us)
            return TURN_LATE;
        pause_shortly();
    }
}

/* Waits until the job has joined, in case the other keeper is killed before that. */
static enum turn
stand_by(struct keeper *k)
{
    int64_t until_us = clock_boot_us() + ARRIVE_US;
    while (!has_arrived(LOOK_MS) && clock_boot_us() < until_us) {
        struct mps_state s;
        if (flock(k->keeper_fd, LOCK_EX | LOCK_NB) < 0)
            continue;
        bool refused = mps_state_read(k->keeper_fd, &s) && s.phase == MPS_FAILED;
        return refused ? TURN_LATE : TURN_OURS; /* our job has seen that failure as well */
    }
    return TURN_KEPT;
}

/* --- the control daemon --- */

static void
reap(struct keeper *k)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == k->control.pid) {
            k->gone = true;
            k->status = status;
            k->control.pid = 0;
        } else if (pid == k->waiter) {
            k->waiter = 0;
            k->unused = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
    }
    if (k->taken_over && k->control.pid > 0 && !mps_control_lives(&k->state)) {
        k->gone = true;
        k->status = -1; /* only its parent can know */
        k->control.pid = 0;
    }
}

static void
say_control(struct keeper *k)
{
    k->state.control_pid = k->control.pid;
    k->state.control_ticks = k->control.ticks;
    say(k, MPS_STARTING, "");
}

static int
bring_up(struct keeper *k, char *why, size_t size)
{
    struct err e;
    int64_t until_us = clock_boot_us() + MPS_ANSWER_US;
    if (mps_control_start(&k->control, &e) < 0) {
        snprintf(why, size, "%.110s", e.text);
        return -1;
    }
    say_control(k);
    while (!mps_control_answers(&k->control, ASK_MS)) {
        reap(k);
        if (k->gone) {
            mps_control_explain(&k->control, k->status, why, size);
            return -1;
        }
        if (clock_boot_us() > until_us) {
            snprintf(why, size, "%.60s has not answered for %d s", k->control.order.program,
                     (int)(MPS_ANSWER_US / 1000000));
            return -1;
        }
        pause_shortly();
    }
    return 0;
}

static bool
await_end(struct keeper *k, int64_t for_us)
{
    int64_t until_us = clock_boot_us() + for_us;
    for (;;) {
        reap(k);
        if (k->control.pid == 0 || clock_boot_us() > until_us)
            return k->control.pid == 0;
        pause_shortly();
    }
}

/* Ends servers and any other processes that a user started from a control daemon. False: some
 * do not end. */
static bool
end_all(struct keeper *k, const struct mps_left *left, const struct groups_wish *where)
{
    int64_t until_us = clock_boot_us() + LEFT_US;
    bool ended = false;
    for (unsigned pass = 0; !ended && clock_boot_us() < until_us; pass++) {
        ended = mps_left_kill(left, pass);
        reap(k);
        if (!ended)
            pause_shortly();
    }
    groups_remove(where);
    return ended;
}

static void
bring_down(struct keeper *k)
{
    struct mps_control *c = &k->control;
    struct proc control = {.pid = c->pid, .start_ticks = c->ticks};
    const struct mps_left left = {&c->groups, c->mark, c->order.uid, c->pid, c->ticks};
    if (k->waiter > 0)
        kill(k->waiter, SIGKILL);
    if (c->pid > 0) {
        (void)mps_control_tell(c, "quit\n", QUIT_MS);
        if (!await_end(k, QUIT_MS * INT64_C(1000)) && proc_signal(&control, SIGTERM) == 0)
            (void)await_end(k, TERM_US);
    }
    k->state.left = !end_all(k, &left, &c->order.groups);
    mps_control_end_folder(FD_FOLDER, c);
}

/* --- what a killed keeper left --- */

static struct groups_wish
groups_of(const struct mps_state *s)
{
    struct groups_wish where = {.path = s->group[0] ? s->group : NULL, .n_minors = -1};
    where.v1[CGROUP_V1_PIDS] = s->group_pids[0] ? s->group_pids : NULL;
    return where;
}

static bool
end_left(struct keeper *k, const struct mps_state *before)
{
    const struct groups_wish where = groups_of(before);
    auto_free char *mark = mps_mark(k->control.order.dir, before->left_uid);
    auto_groups struct groups groups = GROUPS_NONE;
    groups_open(&where, &groups);
    const struct mps_left left = {&groups, mark, before->left_uid, before->control_pid,
                                  before->control_ticks};
    return end_all(k, &left, &where);
}

/* Records leftovers that do not end, for the next keeper. */
static void
pass_on(struct keeper *k, const struct mps_state *before)
{
    k->state.left = true;
    k->state.left_uid = before->left_uid;
    k->state.control_pid = before->control_pid;
    k->state.control_ticks = before->control_ticks;
    memcpy(k->state.group, before->group, sizeof k->state.group);
    memcpy(k->state.group_pids, before->group_pids, sizeof k->state.group_pids);
}

/* Takes over a running control daemon, so that its jobs go on. */
static bool
take_over(struct keeper *k, const struct mps_state *before)
{
    struct mps_control *c = &k->control;
    if (before->left_uid != c->order.uid || !mps_control_lives(before))
        return false;
    pass_on(k, before);
    c->pid = before->control_pid;
    c->ticks = before->control_ticks;
    k->control_fd = proc_pidfd(c->pid);
    const struct groups_wish where = groups_of(&k->state);
    groups_open(&where, &c->groups);
    k->taken_over = mps_control_lives(before) && mps_control_answers(c, ASK_MS);
    if (k->taken_over) {
        c->order.groups = where;
        return true;
    }
    groups_close(&c->groups);
    c->pid = 0;
    /* The pidfd of an ended process would always be ready. */
    if (k->control_fd >= 0)
        close(TAKE_FD(k->control_fd));
    return false;
}

/* --- its work --- */

/* A child blocks until the lock is free, which poll cannot wait for. The lock it gets is ours
 * too, because it belongs to the open file that both share. */
static void
wait_for_users(struct keeper *k)
{
    (void)flock(k->users_fd, LOCK_UN);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
            _exit(1);
        while (flock(k->users_fd, LOCK_EX) < 0)
            if (errno != EINTR)
                _exit(1);
        _exit(0);
    }
    k->waiter = pid > 0 ? pid : 0;
}

static void
read_signals(struct keeper *k)
{
    struct signalfd_siginfo si;
    while (read(k->sig_fd, &si, sizeof si) == (ssize_t)sizeof si)
        k->told |= si.ssi_signo == SIGTERM;
    reap(k);
}

/* Does not ask for the lock until the job has joined: nobody might hold it yet. */
static void
attend(struct keeper *k)
{
    int64_t arrive_us = clock_boot_us() + ARRIVE_US;
    bool has_come = false;
    while (!k->gone && !k->unused && !k->told) {
        struct pollfd p[] = {{.fd = k->sig_fd, .events = POLLIN},
                             {.fd = has_come ? -1 : FD_CTL, .events = POLLIN},
                             {.fd = k->control_fd, .events = POLLIN}};
        if (has_come && k->waiter == 0)
            wait_for_users(k); /* if fork fails, retried after AGAIN_MS */
        bool hears = k->waiter > 0 && (!k->taken_over || k->control_fd >= 0);
        (void)poll(p, 3, hears ? -1 : AGAIN_MS);
        has_come |= p[1].revents != 0 || clock_boot_us() > arrive_us;
        read_signals(k);
    }
}

/* Remembers the last death: jobs of that control daemon may still ask for the reason. */
static void
remember_death(struct keeper *k, const struct mps_state *before)
{
    bool died = before->phase == MPS_DIED;
    k->state.died_pid = died ? before->pid : before->died_pid;
    k->state.died_ticks = died ? before->ticks : before->died_ticks;
    snprintf(k->state.died_text, sizeof k->state.died_text, "%s",
             died ? before->text : before->died_text);
}

static bool
name_self(struct keeper *k, const struct mps_state *before)
{
    struct proc self;
    if (proc_read(getpid(), &self) < 0)
        return false;
    k->state = (struct mps_state){
        .uid = k->control.order.uid, .pid = self.pid, .ticks = self.start_ticks};
    remember_death(k, before);
    return true;
}

/* A path too long to store is dropped: leftovers are found without it. */
static void
keep_path(char out[MPS_GROUP_SIZE], const char *path)
{
    bool fits = path && strlen(path) < MPS_GROUP_SIZE && !strchr(path, '\n');
    snprintf(out, MPS_GROUP_SIZE, "%s", fits ? path : "");
}

/* Announces the control daemon before any process of it exists. */
static void
announce(struct keeper *k)
{
    const struct mps_order *o = &k->control.order;
    k->state.left = true;
    k->state.left_uid = o->uid;
    k->state.control_pid = 0;
    keep_path(k->state.group, o->groups.path);
    keep_path(k->state.group_pids, o->groups.v1[CGROUP_V1_PIDS]);
    say(k, MPS_STARTING, "");
}

/* 1: a control daemon left behind answers. 0: nothing is left. -1 with the reason. */
static int
deal_with_left(struct keeper *k, const struct mps_state *before, bool prepared, char *why,
               size_t size)
{
    bool ours = before->left_uid == k->control.order.uid;
    if (prepared && take_over(k, before))
        return 1;
    /* Its jobs depend on it, even if the account cannot be looked up now. */
    if (!prepared && ours && mps_control_lives(before)) {
        pass_on(k, before);
        return -1;
    }
    if (end_left(k, before)) {
        k->state.left = false;
        return 0;
    }
    pass_on(k, before);
    snprintf(why, size, "what is left of the MPS of user %u does not end",
             (unsigned)before->left_uid);
    return -1;
}

/* 1: the control daemon answers. 0: none is wanted. -1 with the reason, which jobs have not
 * seen yet. */
static int
have_one(struct keeper *k, const struct mps_state *before, char *why, size_t size)
{
    struct err e;
    bool prepared = mps_control_prepare(FD_FOLDER, &k->control, &e) == 0;
    if (!prepared)
        snprintf(why, size, "%.110s", e.text);
    int has = before->left ? deal_with_left(k, before, prepared, why, size) : 0;
    if (has != 0 || k->control.order.mend)
        return has;
    if (!prepared)
        return -1;
    announce(k);
    if (bring_up(k, why, size) == 0)
        return 1;
    bring_down(k);
    return -1;
}

static void
keep(struct keeper *k)
{
    char why[sizeof k->state.text] = "";
    struct mps_state before;
    if (!mps_state_read(k->keeper_fd, &before))
        before = (struct mps_state){0};
    if (!name_self(k, &before) || (k->control.order.mend && !before.left))
        return;
    if (!before.left)
        say(k, MPS_STARTING, "");
    int has = have_one(k, &before, why, sizeof why);
    if (has <= 0) {
        mps_control_end_folder(FD_FOLDER, &k->control);
        say(k, has < 0 ? MPS_FAILED : MPS_ENDED, why);
        return;
    }
    say(k, MPS_READY, "");
    attend(k);
    bool died = k->gone;
    if (died) {
        mps_control_explain(&k->control, k->status, why, sizeof why);
        say(k, MPS_DIED, why); /* before its servers end, and with them the jobs */
    }
    bring_down(k);
    say(k, died ? MPS_DIED : MPS_ENDED, why);
}

static int
take_signals(struct keeper *k, struct err *e)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    k->sig_fd = signals_to_fd((const int[]){SIGCHLD, SIGTERM, 0}, e);
    return k->sig_fd < 0 ? -1 : 0;
}

int
mps_keeper_run(void)
{
    struct keeper k = {
        .control = MPS_CONTROL_INIT, .keeper_fd = -1, .users_fd = -1, .control_fd = -1};
    struct err e;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_NAME, "berth-mps");
    (void)!chdir("/");
    umask(077);
    if (take_signals(&k, &e) < 0 || mps_control_read(FD_LOCK, &k.control, &e) < 0 ||
        open_files(&k, &e) < 0) {
        fprintf(stderr, "berth-mps: %s\n", e.text);
        mps_control_free(&k.control);
        return 0;
    }
    enum turn turn = take_turn(&k);
    if (turn == TURN_KEPT)
        turn = stand_by(&k);
    if (turn == TURN_OURS)
        keep(&k);
    mps_control_free(&k.control);
    return 0;
}
