/* The nursery's children: see children.h. A supervisor exits when nothing of its job is left,
 * so whatever a killed supervisor leaves must be ended. Without a cgroup to identify those
 * processes, the kernel does: they become children of the nearest subreaper above, which is
 * the nursery. Any child that the nursery has not forked is such a process. Called by
 * nursery_main.c.
 *
 * This also finds processes that have left their session and cleared their environment, and
 * needs no daemon. It does not find leftovers if supervisor and nursery are killed at the same
 * time. */
#include "shepherd/nursery/children.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "shepherd/attempt/kill.h"
#include "shepherd/nursery/again.h"
#include "sys/procs.h"

#define LINKS_MAX    16 /* with more jobs at once, the others exit after their attempt */
#define REAP_MAX     256
#define PASS_MS      2
#define PASSES_SOON  50
#define TRY_AGAIN_MS 5000 /* interval after many passes, for processes that survive KILL */

void
children_init(struct children *b)
{
    *b = (struct children){0};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void
children_free(struct children *b)
{
    children_release(b);
    free(b->v);
    *b = (struct children){0};
}

/* A folder that is reused no longer belongs to the child that had it before. */
static void
take_down(struct children *b, struct child *c, int lock_fd)
{
    struct stat st = {0};
    (void)fstat(lock_fd, &st);
    for (size_t i = 0; i < b->n; i++)
        if (b->v[i].ino == st.st_ino && b->v[i].dev == st.st_dev)
            b->v[i].ino = 0;
    c->dev = st.st_dev;
    c->ino = st.st_ino;
}

void
children_add(struct children *b, pid_t pid, int lock_fd, int link)
{
    struct child c = {.pid = pid, .link = link};
    b->v = xgrow(b->v, b->n, &b->cap, sizeof *b->v);
    take_down(b, &c, lock_fd);
    b->v[b->n++] = c;
}

bool
children_has(const struct children *b, int lock_fd)
{
    struct stat st;
    if (fstat(lock_fd, &st) < 0)
        return false;
    for (size_t i = 0; i < b->n; i++)
        if (b->v[i].ino == st.st_ino && b->v[i].dev == st.st_dev)
            return true;
    return false;
}

/* --- reusable supervisors --- */

static void
release(struct child *c)
{
    if (c->link >= 0)
        close(c->link);
    c->link = -1;
}

void
children_release(struct children *b)
{
    for (size_t i = 0; i < b->n; i++)
        release(&b->v[i]);
}

bool
children_have_room(const struct children *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += b->v[i].link >= 0;
    return n < LINKS_MAX;
}

/* True if it has reported that it is idle, and took the attempt. */
static bool
takes(struct child *c, const int fds[NURSERY_FDS])
{
    char word;
    if (recv(c->link, &word, 1, MSG_DONTWAIT) == 1 && word == AGAIN_IDLE &&
        nursery_send_packet(c->link, NURSERY_AHEAD, fds, MSG_DONTWAIT) == 0)
        return true;
    release(c);
    return false;
}

/* Idle reports are only read here, so an idle supervisor wakes nobody. */
bool
children_hand_over(struct children *b, const int fds[NURSERY_FDS])
{
    struct pollfd p[LINKS_MAX];
    size_t whose[LINKS_MAX];
    nfds_t n = 0;
    for (size_t i = 0; i < b->n && n < LINKS_MAX; i++)
        if (b->v[i].link >= 0) {
            p[n] = (struct pollfd){.fd = b->v[i].link, .events = POLLIN};
            whose[n++] = i;
        }
    if (n == 0 || poll(p, n, 0) <= 0)
        return false;
    for (nfds_t k = 0; k < n; k++) {
        struct child *c = &b->v[whose[k]];
        if (p[k].revents && takes(c, fds)) {
            take_down(b, c, fds[1]);
            return true;
        }
    }
    return false;
}

/* --- ended children --- */

static ssize_t
index_of(const struct children *b, pid_t pid)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->v[i].pid == pid)
            return (ssize_t)i;
    return -1;
}

void
children_reap(struct children *b)
{
    int status, n = 0;
    pid_t pid = 0;
    while (n++ < REAP_MAX && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
        ssize_t i = index_of(b, pid);
        if (i >= 0) {
            release(&b->v[i]);
            b->v[i] = b->v[--b->n];
        }
        if (i >= 0 && status != 0) {
            b->orphaned = true;
            b->passes = 0;
        }
        b->due_us = 0; /* there may be new orphans: run a pass now */
    }
    b->reaps_on = pid > 0;
}

static bool
is_forked_here(const void *whose, pid_t pid)
{
    return index_of(whose, pid) >= 0;
}

int
children_end_orphans(struct children *b)
{
    int64_t now = clock_boot_us();
    if (!b->orphaned)
        return -1;
    if (now < b->due_us)
        return (int)((b->due_us - now + 999) / 1000);
    struct kill_known known = {is_forked_here, b};
    b->orphaned = kill_pass(kill_find_orphans, &known, b->passes++) > 0;
    if (!b->orphaned)
        return -1;
    int ms = children_are_ending(b) ? PASS_MS : TRY_AGAIN_MS;
    b->due_us = now + ms * INT64_C(1000);
    return ms;
}

bool
children_are_ending(const struct children *b)
{
    return b->orphaned && b->passes < PASSES_SOON;
}
