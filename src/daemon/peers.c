/* Shares of the daemon: see peers.h. Called by server.c alone. A user's time is a bucket that
 * holds BUDGET_US and fills at half the speed of the clock: requests that cost little never
 * notice it, and whoever floods the socket leaves the other half to everybody else. While
 * nobody else is connected it does not count. */
#include "daemon/peers.h"

#include <stdlib.h>

#include "base/err.h"

#define CLIENTS_MAX      1024 /* in all; root may still enter */
#define CLIENTS_USER_MAX 128
#define BYTES_USER_MAX   (INT64_C(512) << 20) /* eight of the longest requests */
#define BUDGET_US        INT64_C(500000)

struct peer {
    struct peer *next;
    uid_t uid;
    int clients;
    int64_t bytes;
    int64_t budget_us;
    int64_t at_us; /* when the bucket was last filled */
};

struct peers {
    bool shared;
    struct peer *list; /* those with a connection: few */
};

struct peers *
peers_new(bool shared)
{
    struct peers *p = xcalloc(1, sizeof *p);
    p->shared = shared;
    return p;
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
    free(p);
}

static struct peer *
find(const struct peers *p, uid_t uid)
{
    struct peer *x = p->list;
    while (x && x->uid != uid)
        x = x->next;
    return x;
}

static bool
is_bound(const struct peers *p, uid_t uid)
{
    return p->shared && uid != 0;
}

int
peers_enter(struct peers *p, uid_t uid, int total, struct err *e)
{
    struct peer *x = find(p, uid);
    if (uid != 0 && total >= CLIENTS_MAX)
        return err_set(e, ERR_REFUSED, "the daemon has %d connections, which is the most",
                       CLIENTS_MAX);
    if (x && is_bound(p, uid) && x->clients >= CLIENTS_USER_MAX)
        return err_set(e, ERR_REFUSED,
                       "you have %d connections to the daemon, which is the most for one user; "
                       "end some that wait or follow",
                       CLIENTS_USER_MAX);
    if (!x) {
        x = xcalloc(1, sizeof *x);
        x->uid = uid;
        x->budget_us = BUDGET_US;
        x->next = p->list;
        p->list = x;
    }
    x->clients++;
    return 0;
}

/* His debt outlives his last connection, or a new one would pay it. */
void
peers_leave(struct peers *p, uid_t uid)
{
    for (struct peer **at = &p->list; *at; at = &(*at)->next) {
        struct peer *x = *at;
        if (x->uid != uid)
            continue;
        x->clients--;
        if (x->clients == 0 && x->budget_us >= 0 && x->bytes <= 0) {
            *at = x->next;
            free(x);
        }
        return;
    }
}

bool
peers_keep(struct peers *p, uid_t uid, int64_t bytes)
{
    struct peer *x = find(p, uid);
    if (!x)
        return true;
    x->bytes += bytes;
    return bytes <= 0 || !is_bound(p, uid) || x->bytes <= BYTES_USER_MAX;
}

static void
fill(struct peer *x, int64_t now_us)
{
    if (x->at_us)
        x->budget_us += (now_us - x->at_us) / 2;
    if (x->budget_us > BUDGET_US)
        x->budget_us = BUDGET_US;
    x->at_us = now_us;
}

void
peers_charge(struct peers *p, uid_t uid, int64_t us, int64_t now_us)
{
    struct peer *x = is_bound(p, uid) ? find(p, uid) : NULL;
    if (!x)
        return;
    fill(x, now_us);
    x->budget_us -= us;
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
peers_may_ask(struct peers *p, uid_t uid, int64_t now_us)
{
    struct peer *x = is_bound(p, uid) ? find(p, uid) : NULL;
    if (!x)
        return true;
    fill(x, now_us);
    if (x->budget_us < 0 && is_alone(p, x))
        x->budget_us = 0; /* nobody was kept waiting */
    return x->budget_us >= 0;
}
