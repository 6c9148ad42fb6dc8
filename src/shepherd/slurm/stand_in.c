/* The batch script of a Slurm job that is one attempt: see stand_in.h. A TERM without a stop
 * message from the daemon in the folder is from Slurm itself, which sends it to the supervisor
 * and the command too. */
#include "shepherd/slurm/stand_in.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "shepherd/slurm/measure.h"
#include "shepherd/slurm/node_attempt.h"
#include "sys/signals.h"

int
stand_in_signals(struct err *e)
{
    return signals_to_fd((const int[]){SIGTERM, SIGCHLD, 0}, e);
}

bool
stand_in_was_told(int sig_fd)
{
    struct signalfd_siginfo si;
    bool told = false;
    while (read(sig_fd, &si, sizeof si) == (ssize_t)sizeof si)
        told |= si.ssi_signo == SIGTERM;
    return told;
}

static int
patience_ms(const struct node_attempt *a, struct measure *m)
{
    int ms = measure_ask(m);
    int64_t left_ms = (a->pulse_us - clock_boot_us()) / 1000 + 1;
    if (left_ms < 0)
        left_ms = 0;
    return ms < 0 || ms > left_ms ? (int)left_ms : ms;
}

/* Runs until the supervisor, which outlives the command, has exited. */
static void
follow(struct node_attempt *a, struct measure *m, int sig_fd)
{
    int status = 0;
    for (bool gone = false; !gone;) {
        struct pollfd p[] = {{.fd = sig_fd, .events = POLLIN},
                             {.fd = a->talk, .events = POLLIN},
                             {.fd = m->fd, .events = POLLIN}};
        node_attempt_pulse(a, clock_boot_us());
        if (poll(p, 3, patience_ms(a, m)) < 0)
            continue;
        if (stand_in_was_told(sig_fd) && !node_attempt_pass_on_stop(a))
            (void)kill(a->supervisor, SIGTERM);
        if (p[2].revents)
            measure_read(m);
        if (p[1].revents)
            node_attempt_read(a);
        gone = waitpid(a->supervisor, &status, WNOHANG) == a->supervisor;
    }
    node_attempt_left(a, status);
}

static int
fail(const struct node_attempt *a, const struct err *e, int status)
{
    fprintf(stderr, "berth-shepherd: job=%u %s\n", a->job, e->text);
    return status;
}

static int
run_attempt(struct node_attempt *a, int sig_fd)
{
    struct measure m;
    struct err e = {0};
    int mark = node_attempt_mark(a, "", &e);
    if (mark > 0)
        (void)err_set(&e, ERR_FAILED, "another Slurm job runs this attempt");
    if (mark)
        return fail(a, &e, mark > 0 ? SLURM_TAKEN : SLURM_UNREADABLE);
    if (node_attempt_is_stopped(a))
        return node_attempt_end_unbegun(a, &e) < 0 ? fail(a, &e, 1) : 0;
    measure_begin(&m);
    if (node_attempt_start(a, NULL, &m, &e) < 0) {
        (void)fail(a, &e, 1);
        return node_attempt_end_unstarted(a, e.errnum, &e) < 0 ? fail(a, &e, 1) : 1;
    }
    follow(a, &m, sig_fd);
    measure_end(&m);
    return a->status < 0 ? 1 : a->status;
}

int
slurm_run(const char *folder)
{
    struct node_attempt a;
    struct err e = {0};
    int status = SLURM_UNREADABLE;
    int rc = node_attempt_open(&a, AT_FDCWD, folder, &e);
    /* Before the mark: whoever has made it must report how the attempt ended. */
    auto_close int sig_fd = rc < 0 ? -1 : stand_in_signals(&e);
    if (sig_fd >= 0)
        status = run_attempt(&a, sig_fd);
    else
        fprintf(stderr, "berth-shepherd: %s: %s\n", folder, e.text);
    node_attempt_close(&a);
    return status;
}
