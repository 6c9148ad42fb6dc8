/* See mps_client.h. attempt.c calls it before it starts the command, outcome.c at its end. The
 * lock is released with the supervisor, however that ends. */
#include "shepherd/common/mps_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "wire/members.h"

/* The keeper may first have to wait for another one to end. */
#define PATIENCE_US (MPS_TURN_US + MPS_ANSWER_US + INT64_C(5000000))
#define PAUSE_NS    2000000

static const struct member members[] = {
    {MEMBER(TEXT, mps_wish, dir), .needed = true},
    {MEMBER(NUMBER, mps_wish, uid), .max = UINT32_MAX - 1},
    {MEMBER(NUMBER, mps_wish, since_us), .max = INT64_MAX},
    {0},
};

int
mps_wish_read(const json_t *spec, struct mps_wish *out, struct err *e)
{
    const json_t *mps = json_object_get(spec, "mps");
    *out = (struct mps_wish){0};
    if (!mps || members_read(mps, members, out, e) == 0)
        return 0;
    return err_prefix(e, "'mps'");
}

static int
open_files(const struct mps_wish *wish, struct mps_client *c, struct err *e)
{
    char name[MPS_USERS_SIZE];
    auto_close int dir = open(wish->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        c->users_fd =
            openat(dir, mps_users_name(wish->uid, name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (c->users_fd >= 0)
        c->keeper_fd = openat(dir, MPS_KEEPER, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (c->keeper_fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open what is in %s", wish->dir);
    return 0;
}

/* 1: ready. 0: not yet. -1: it failed. */
static int
look(const struct mps_wish *wish, struct mps_client *c, struct err *e)
{
    struct mps_state *s = &c->joined;
    if (!mps_state_read(c->keeper_fd, s) || s->uid != wish->uid)
        return 0;
    if (s->phase == MPS_READY)
        return mps_state_lives(s);
    if (s->phase == MPS_FAILED && s->said_us >= wish->since_us)
        return err_set(e, ERR_FAILED, "%s", s->text);
    return 0;
}

static int
wait_for_it(const struct mps_wish *wish, bool (*is_over)(void *ctx), void *ctx,
            struct mps_client *c, struct err *e)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int64_t until_us = clock_boot_us() + PATIENCE_US;
    bool locked = false;
    for (;;) {
        locked = locked || flock(c->users_fd, LOCK_SH | LOCK_NB) == 0;
        int found = locked ? look(wish, c, e) : 0;
        if (found != 0)
            return found > 0 ? 0 : -1;
        if (is_over(ctx))
            return err_set(e, ERR_FAILED, "the job was called off");
        if (clock_boot_us() > until_us)
            return err_set(e, ERR_FAILED, "it was not ready within %d s",
                           (int)(PATIENCE_US / 1000000));
        nanosleep(&pause, NULL);
    }
}

int
mps_join(const struct mps_wish *wish, bool (*is_over)(void *ctx), void *ctx,
         struct mps_client *out, struct err *e)
{
    *out = (struct mps_client)MPS_CLIENT_NONE;
    if (open_files(wish, out, e) == 0 && wait_for_it(wish, is_over, ctx, out, e) == 0)
        return 0;
    mps_leave(out);
    return -1;
}

void
mps_leave(struct mps_client *c)
{
    if (c->users_fd >= 0)
        close(c->users_fd);
    if (c->keeper_fd >= 0)
        close(c->keeper_fd);
    *c = (struct mps_client)MPS_CLIENT_NONE;
}

static bool
is_same_control(const struct mps_state *a, const struct mps_state *b)
{
    return a->control_pid == b->control_pid && a->control_ticks == b->control_ticks;
}

void
mps_lost(const struct mps_client *c, char *out, size_t size)
{
    struct mps_state now;
    out[0] = '\0';
    if (c->keeper_fd < 0 || !mps_state_read(c->keeper_fd, &now))
        return;
    bool is_same = now.pid == c->joined.pid && now.ticks == c->joined.ticks;
    if (is_same && now.phase == MPS_READY && mps_state_lives(&now))
        return;
    if (is_same_control(&now, &c->joined) && mps_control_lives(&now))
        return; /* another keeper has taken it over, or will */
    if (is_same && now.phase == MPS_DIED)
        snprintf(out, size, "%s", now.text);
    else if (now.died_pid == c->joined.pid && now.died_ticks == c->joined.ticks)
        snprintf(out, size, "%s", now.died_text);
    else
        snprintf(out, size, "its keeper was killed");
}
