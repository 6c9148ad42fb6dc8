/* Shares of the daemon: see user_shares.h. Called by rpc_server.c, rpc_client.c and
 * long_lines.c. A user's time is a token bucket that holds BUDGET_US and fills at a quarter of
 * the speed of the clock: cheap requests never notice it, and a user who floods the socket
 * leaves the rest to the others. It does not apply while no other user is connected; but no
 * user is served for longer than ROUND_US at a time, or a new client would wait behind
 * everything sent before. */
#include "daemon/rpc/user_shares.h"

#include <stdlib.h>

#include "base/err.h"
#include "daemon/rpc/subuids.h"

#define BUDGET_US INT64_C(50000)
#define SPEED     4
#define ROUND_US  INT64_C(20000)

struct peer {
    struct peer *next;
    uid_t group;
    int clients;
    int64_t bytes;
    int64_t waiting; /* those of them for requests that wait for their answer */
    int64_t budget_us;
    int64_t at_us;    /* when the bucket was last filled */
    int64_t round_us; /* spent in this round of the loop */
};

struct peers {
    bool shared;
    int64_t clients_max, bytes_max;
    struct subuids *subuids;
    struct peer *list; /* users with a connection, or with time to earn back: few */
};

struct peers *
peers_new(bool shared, const char *subuid)
{
    struct peers *p = xcalloc(1, sizeof *p);
    p->shared = shared;
    p->clients_max = p->bytes_max = INT64_MAX;
    p->subuids = subuids_new(subuid);
    return p;
}

void
peers_set_limits(struct peers *p, int64_t clients_max, int64_t bytes_max)
{
    p->clients_max = clients_max;
    p->bytes_max = bytes_max;
}

void
peers_free(struct peers *p)
{
    struct peer *next;
    if (!p)
        return;
    for (struct peer *x = p->list; x; x = next) {
        next = x->next;
        free(x);
    }
    subuids_free(p->subuids);
    free(p);
}

static struct peer *
find(const struct peers *p, uid_t group)
{
    struct peer *x = p->list;
    while (x && x->group != group)
        x = x->next;
    return x;
}

static bool
is_bound(const struct peers *p, uid_t group)
{
    return p->shared && group != 0;
}

/* The user with the most connections, who has to give one up for a user without any. */
static const struct peer *
find_crowd(const struct peers *p)
{
    const struct peer *most = NULL;
    for (const struct peer *x = p->list; x; x = x->next)
        if (x->group != 0 && x->clients > (most ? most->clients : 0))
            most = x;
    return most;
}

static void
fill(struct peer *x, int64_t now_us)
{
    if (x->at_us)
        x->budget_us += (now_us - x->at_us) / SPEED;
    if (x->budget_us > BUDGET_US)
        x->budget_us = BUDGET_US;
    x->at_us = now_us;
}

/* Frees users without connections whose bucket is full again, as a new one would be. */
static void
forget_gone(struct peers *p, int64_t now_us)
{
    struct peer **at = &p->list;
    while (*at) {
        struct peer *x = *at;
        fill(x, now_us);
        if (x->clients > 0 || x->bytes > 0 || x->budget_us < BUDGET_US) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        free(x);
    }
}

static struct peer *
add(struct peers *p, uid_t group)
{
    struct peer *x = xcalloc(1, sizeof *x);
    x->group = group;
    x->budget_us = BUDGET_US;
    x->next = p->list;
    p->list = x;
    return x;
}

int
peers_enter(struct peers *p, uid_t uid, int total, int64_t now_us, uid_t *group, uid_t *crowd,
            struct err *e)
{
    subuids_refresh(p->subuids);
    forget_gone(p, now_us);
    *group = subuids_group(p->subuids, uid);
    struct peer *x = find(p, *group);
    int has = x ? x->clients : 0;
    if (is_bound(p, *group) && has >= p->clients_max)
        return err_set(e, ERR_REFUSED,
                       "you have %d connections to the daemon, the maximum for one user "
                       "(user_max_connections); end some commands that wait or follow",
                       has);
    if (*group != 0 && total >= PEERS_CLIENTS_MAX) {
        const struct peer *most = find_crowd(p);
        if (!most || has > 0)
            return err_set(e, ERR_REFUSED, "the daemon has %d connections, its maximum",
                           PEERS_CLIENTS_MAX);
        *crowd = most->group;
    }
    if (!x)
        x = add(p, *group);
    x->clients++;
    return 0;
}

/* The entry outlives the last connection, or reconnecting would reset what was spent. */
void
peers_leave(struct peers *p, uid_t group)
{
    struct peer *x = find(p, group);
    if (x)
        x->clients--;
}

void
peers_keep_waiting(struct peers *p, uid_t group, int64_t bytes)
{
    struct peer *x = find(p, group);
    if (x)
        x->waiting += bytes;
    (void)peers_keep(p, group, bytes);
}

bool
peers_may_wait(const struct peers *p, uid_t group)
{
    const struct peer *x = find(p, group);
    return !x || !is_bound(p, group) || x->waiting < p->bytes_max / 2;
}

bool
peers_keep(struct peers *p, uid_t group, int64_t bytes)
{
    struct peer *x = find(p, group);
    if (!x)
        return true;
    x->bytes += bytes;
    return bytes <= 0 || !is_bound(p, group) || x->bytes <= p->bytes_max;
}

void
peers_charge(struct peers *p, uid_t group, int64_t us, int64_t now_us)
{
    struct peer *x = find(p, group);
    if (!x)
        return;
    x->round_us += us;
    if (!is_bound(p, group))
        return;
    fill(x, now_us);
    x->budget_us -= us;
}

void
peers_new_round(struct peers *p)
{
    for (struct peer *x = p->list; x; x = x->next)
        x->round_us = 0;
}

bool
peers_had_round(const struct peers *p, uid_t group)
{
    const struct peer *x = find(p, group);
    return x && x->round_us >= ROUND_US;
}

static bool
is_alone(const struct peers *p, const struct peer *x)
{
    for (const struct peer *other = p->list; other; other = other->next)
        if (other != x && other->clients > 0)
            return false;
    return true;
}

bool
peers_may_ask(struct peers *p, uid_t group, int64_t now_us)
{
    struct peer *x = is_bound(p, group) ? find(p, group) : NULL;
    if (!x)
        return true;
    fill(x, now_us);
    if (x->budget_us < 0 && is_alone(p, x))
        x->budget_us = 0; /* no other user had to wait */
    return x->budget_us >= 0;
}
