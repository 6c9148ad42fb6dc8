/* See mps_keeper.h. The daemon has one forked for each job that is to be a client; one that
 * finds another at work for the same user stays only until its job is there. The other takes
 * the card's lock, starts the control daemon, says when it answers, and stays for as long as
 * jobs hold the user's lock (sys/mps_place.h): it needs no daemon, and outlives it as
 * supervisors do. What the control daemon leaves behind, its servers, falls to the keeper.
 *
 * A control daemon that ends under its jobs takes them along, so its servers are ended, and
 * the next job has another one started. */
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

#include "base/clock.h"
#include "base/err.h"
#include "shepherd/attempt/attempt.h"
#include "shepherd/attempt/kill.h"
#include "shepherd/mps/mps_control.h"
#include "sys/mps_place.h"
#include "sys/procs.h"

#define TURN_US   INT64_C(15000000) /* until another user's, or one that ends, has gone */
#define ANSWER_US INT64_C(10000000)
#define ARRIVE_US INT64_C(15000000) /* until the job's supervisor holds the lock */
#define ASK_MS    2000
#define QUIT_MS   10000
#define TERM_US   INT64_C(2000000)
#define LEFT_US   INT64_C(10000000)
#define PAUSE_NS  2000000
#define AGAIN_MS  1000

struct keeper {
    struct mps_control control;
    struct mps_state state;
    int keeper_fd, users_fd, sig_fd;
    pid_t waiter; /* waits for the users' lock; 0: none does */
    bool unused;  /* it has got that lock */
    bool told;    /* to end */
    bool gone;    /* the control daemon is */
    int status;   /* waitpid's, of that */
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
    snprintf(k->state.text, sizeof k->state.text, "%s", text);
    if (mps_state_write(k->keeper_fd, &k->state) < 0)
        fprintf(stderr, "berth-mps: cannot write its state: %s\n", strerror(errno));
}

/* --- one for each user and card --- */

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

/* The daemon closes its end once the job's supervisor holds the lock, or needs it no longer. */
static void
await_job(void)
{
    struct pollfd p = {.fd = FD_CTL, .events = POLLIN};
    int64_t until_us = clock_boot_us() + ARRIVE_US, left_us = ARRIVE_US;
    while (left_us > 0 && poll(&p, 1, (int)(left_us / 1000) + 1) < 0 && errno == EINTR)
        left_us = until_us - clock_boot_us();
}

/* Whether the one that has the card is ours to use. */
static bool
is_kept(const struct keeper *k)
{
    struct mps_state s;
    return mps_state_read(k->keeper_fd, &s) && s.uid == k->control.order.uid &&
           (s.phase == MPS_STARTING || s.phase == MPS_READY) && mps_state_lives(&s);
}

enum turn { TURN_OURS, TURN_KEPT, TURN_LATE };

/* Holding the users' lock while it looks: so one that is at work does not end meanwhile. */
static enum turn
take_turn(struct keeper *k)
{
    int64_t until_us = clock_boot_us() + TURN_US;
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
}

static int
bring_up(struct keeper *k, char *why, size_t size)
{
    struct err e;
    int64_t until_us = clock_boot_us() + ANSWER_US;
    if (mps_control_prepare(FD_FOLDER, &k->control, &e) < 0 ||
        mps_control_start(&k->control, &e) < 0) {
        snprintf(why, size, "%.110s", e.text);
        return -1;
    }
    while (!mps_control_answers(&k->control, ASK_MS)) {
        reap(k);
        if (k->gone) {
            mps_control_explain(&k->control, k->status, why, size);
            return -1;
        }
        if (clock_boot_us() > until_us) {
            snprintf(why, size, "%.60s has not answered for %d s", k->control.order.program,
                     (int)(ANSWER_US / 1000000));
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

/* Its servers, and whatever else its user has made of it. */
static void
end_the_rest(struct keeper *k)
{
    int64_t until_us = clock_boot_us() + LEFT_US;
    for (unsigned pass = 0; clock_boot_us() < until_us; pass++) {
        if (groups_are_populated(&k->control.groups))
            groups_kill(&k->control.groups);
        if (kill_pass(kill_find_own, NULL, pass) == 0 &&
            !groups_are_populated(&k->control.groups))
            break;
        reap(k);
        pause_shortly();
    }
    reap(k);
    groups_remove(&k->control.order.groups);
}

static void
bring_down(struct keeper *k)
{
    if (k->waiter > 0)
        kill(k->waiter, SIGKILL);
    if (k->control.pid > 0) {
        (void)mps_control_tell(&k->control, "quit\n", QUIT_MS);
        if (!await_end(k, QUIT_MS * INT64_C(1000)) && kill(k->control.pid, SIGTERM) == 0)
            (void)await_end(k, TERM_US);
    }
    end_the_rest(k);
    mps_control_end_folder(FD_FOLDER, &k->control);
}

/* --- its time --- */

/* A process of its own sleeps until the lock is free, which no poll can wait for; what it gets
 * is ours, as the lock belongs to the open file that both have. */
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

/* Until the job has come that it was started for, the lock is not asked for: nobody might have
 * it yet. */
static void
attend(struct keeper *k)
{
    int64_t arrive_us = clock_boot_us() + ARRIVE_US;
    bool has_come = false;
    while (!k->gone && !k->unused && !k->told) {
        struct pollfd p[] = {{.fd = k->sig_fd, .events = POLLIN},
                             {.fd = has_come ? -1 : FD_CTL, .events = POLLIN}};
        if (has_come && k->waiter == 0)
            wait_for_users(k); /* where no process is to be had, again in a moment */
        (void)poll(p, 2, k->waiter > 0 ? -1 : AGAIN_MS);
        has_come |= p[1].revents != 0 || clock_boot_us() > arrive_us;
        read_signals(k);
    }
}

/* Jobs of one that has died may still ask why. */
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
name_self(struct keeper *k)
{
    struct mps_state before;
    struct proc self;
    if (proc_read(getpid(), &self) < 0)
        return false;
    k->state = (struct mps_state){.uid = k->control.order.uid,
                                  .pid = self.pid,
                                  .ticks = self.start_ticks,
                                  .began_us = clock_boot_us()};
    if (mps_state_read(k->keeper_fd, &before))
        remember_death(k, &before);
    return true;
}

static void
keep(struct keeper *k)
{
    char why[sizeof k->state.text] = "";
    if (!name_self(k))
        return;
    say(k, MPS_STARTING, "");
    if (bring_up(k, why, sizeof why) < 0) {
        bring_down(k);
        say(k, MPS_FAILED, why);
        return;
    }
    say(k, MPS_READY, "");
    attend(k);
    bool died = k->gone;
    if (died) {
        mps_control_explain(&k->control, k->status, why, sizeof why);
        say(k, MPS_DIED, why); /* before its servers go, and with them the jobs */
    }
    bring_down(k);
    if (!died)
        say(k, MPS_ENDED, "");
}

static int
take_signals(struct keeper *k, struct err *e)
{
    sigset_t all, wanted;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    k->sig_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    return k->sig_fd < 0 ? err_errno(e, ERR_FAILED, errno, "cannot take signals") : 0;
}

int
mps_keeper_run(void)
{
    struct keeper k = {.control = MPS_CONTROL_INIT, .keeper_fd = -1, .users_fd = -1};
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
    switch (take_turn(&k)) {
    case TURN_OURS:
        keep(&k);
        break;
    case TURN_KEPT:
        await_job();
        break;
    case TURN_LATE:
        break;
    }
    mps_control_free(&k.control);
    return 0;
}
