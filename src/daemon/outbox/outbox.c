/* Delivers the letters in the outbox: see outbox.h. Each user has a queue of their own with a
 * limit on concurrent deliveries, so that one user's slow hooks do not delay another's. A
 * process forked by the nursery makes each delivery (outbox_send.c). Called by turn.c around
 * each commit. */
#include "daemon/outbox/outbox.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/queue/job.h"
#include "daemon/common/instance.h"
#include "daemon/common/peer_lines.h"
#include "daemon/common/turn_due.h"
#include "daemon/outbox/outbox_priv.h"
#include "store/store.h"

#define AT_ONCE      16 /* processes, for all users */
#define AT_ONCE_USER 4

/* Seconds before the next try of a webhook or mail; after the last try it is given up. Tries
 * that the machine prevents are repeated for as long as that lasts. */
static const int pauses_s[COURIER_TRIES_MAX - 1] = {1, 10, 60, 300};

struct courier *
courier_new(struct instance *inst, const struct courier_host *host)
{
    struct courier *c = xcalloc(1, sizeof *c);
    c->inst = inst;
    c->host = *host;
    uv_timer_init(inst->loop, &c->timer);
    c->timer.data = c;
    return c;
}

static struct letter *
letter_new(struct courier *c, const struct store_letter *row)
{
    struct letter *l = xcalloc(1, sizeof *l);
    l->id = row->id;
    l->job = row->job;
    l->uid = row->uid;
    l->tries = row->tries;
    l->channel = row->kind[0];
    l->site = row->site;
    l->courier = c;
    return l;
}

struct box *
courier_box(struct courier *c, const struct letter *l)
{
    const uint64_t whose = (uint64_t)l->site << 32 | l->uid;
    struct box *b;
    HASH_FIND(hh, c->boxes, &whose, sizeof whose, b);
    if (b)
        return b;
    b = xcalloc(1, sizeof *b);
    b->whose = whose;
    HASH_ADD(hh, c->boxes, whose, sizeof b->whose, b);
    return b;
}

static void
wait_in_line(struct courier *c, struct letter *l)
{
    struct box *b = courier_box(c, l);
    DL_APPEND(b->waiting, l);
}

static int
on_row(const struct store_letter *row, void *arg)
{
    struct courier *c = arg;
    wait_in_line(c, letter_new(c, row));
    c->n++;
    return 0;
}

int
courier_load(struct courier *c, struct err *e)
{
    return store_outbox_walk(c->inst->store, 0, INT64_MAX, on_row, c, e);
}

/* Messages about one job on one channel are sent in order: a job's end never before its start,
 * even while the start waits for another try. */
static uint64_t
told_key(const struct letter *l)
{
    return l->job | (uint64_t)(uint8_t)l->channel << 32 | (uint64_t)l->site << 40;
}

static struct told *
find_told(const struct courier *c, const struct letter *l)
{
    const uint64_t key = told_key(l);
    struct told *t;
    HASH_FIND(hh, c->told, &key, sizeof key, t);
    return t;
}

static bool
must_wait(const struct courier *c, const struct letter *l)
{
    const struct told *t = find_told(c, l);
    return t && t->id != l->id;
}

static void
tell(struct courier *c, const struct letter *l)
{
    struct told *t = find_told(c, l);
    if (t)
        return;
    t = xcalloc(1, sizeof *t);
    t->key = told_key(l);
    t->id = l->id;
    HASH_ADD(hh, c->told, key, sizeof t->key, t);
}

static void
forget(struct courier *c, const struct letter *l)
{
    struct told *t = find_told(c, l);
    HASH_DEL(c->told, t);
    free(t);
}

static struct letter *
next_of(const struct courier *c, const struct box *b)
{
    struct letter *l;
    if (b->n_running >= AT_ONCE_USER || c->n_running >= AT_ONCE)
        return NULL;
    DL_FOREACH(b->waiting, l)
    {
        if (!must_wait(c, l))
            return l;
    }
    return NULL;
}

/* Sends one letter of the box if possible. */
static bool
send_one(struct courier *c, struct box *b)
{
    struct letter *l = next_of(c, b);
    if (!l)
        return false;
    DL_DELETE(b->waiting, l);
    tell(c, l);
    if (courier_send(l) == 0) {
        DL_APPEND(c->running, l);
        b->n_running++;
        c->n_running++;
    } else {
        DL_APPEND(c->over, l);
        turn_touch(c->inst);
    }
    return true;
}

/* Sends as many letters as may run at once, round robin over the users: a box that has sent
 * one moves to the end. */
static void
pump(struct courier *c)
{
    struct box *b, *next;
    bool more = !c->closing && !c->inst->leaving && c->inst->ready;
    while (more) {
        more = false;
        HASH_ITER(hh, c->boxes, b, next)
        {
            if (!send_one(c, b))
                continue;
            more = true;
            HASH_DEL(c->boxes, b);
            HASH_ADD(hh, c->boxes, whose, sizeof b->whose, b);
        }
    }
    HASH_ITER(hh, c->boxes, b, next)
    {
        if (b->waiting || b->n_running > 0)
            continue;
        HASH_DEL(c->boxes, b);
        free(b);
    }
}

/* --- retries --- */

static void
on_timer(uv_timer_t *timer)
{
    struct courier *c = timer->data;
    int64_t now = clock_boot_us();
    while (c->later && c->later->due_us <= now) {
        struct letter *l = c->later;
        DL_DELETE(c->later, l);
        find_told(c, l)->later = false;
        wait_in_line(c, l);
    }
    if (c->later)
        uv_timer_start(timer, on_timer, (uint64_t)((c->later->due_us - now) / 1000 + 1), 0);
    pump(c);
}

static int
by_due(const struct letter *a, const struct letter *b)
{
    return (a->due_us > b->due_us) - (a->due_us < b->due_us);
}

static void
try_later(struct courier *c, struct letter *l)
{
    int at = l->tries + l->setbacks - 1;
    at = at < 0 ? 0 : at > COURIER_TRIES_MAX - 2 ? COURIER_TRIES_MAX - 2 : at;
    l->result = UNKNOWN;
    find_told(c, l)->later = true;
    l->due_us = clock_boot_us() + pauses_s[at] * INT64_C(1000000);
    DL_INSERT_INORDER(c->later, l, by_due);
    if (c->later == l)
        uv_timer_start(&c->timer, on_timer, (uint64_t)pauses_s[at] * 1000, 0);
}

/* --- around a commit --- */

void
courier_post(struct courier *c, const struct store_letter *letter)
{
    struct store_letter row = *letter;
    struct err e; /* errors stick to the store; store_commit reports them */
    if (store_outbox_add(c->inst->store, &row, &e) < 0)
        return;
    struct letter *l = letter_new(c, &row);
    DL_APPEND(c->fresh, l);
}

void
courier_save(struct courier *c)
{
    struct err e;
    for (const struct letter *l = c->over; l; l = l->next) {
        if (l->result == AGAIN)
            store_outbox_tried(c->inst->store, l->id, l->tries, &e);
        else
            store_outbox_remove(c->inst->store, l->id, &e);
    }
}

void
courier_saved(struct courier *c)
{
    struct letter *over = c->over, *fresh = c->fresh, *l, *next;
    c->over = c->fresh = NULL;
    for (l = over; l; l = next) {
        next = l->next;
        if (l->result == AGAIN) {
            try_later(c, l);
        } else {
            forget(c, l);
            free(l);
            c->n--;
        }
    }
    for (l = fresh; l; l = next) {
        next = l->next;
        wait_in_line(c, l);
        c->n++;
    }
    if (c->n > 0)
        pump(c);
}

void
courier_not_saved(struct courier *c)
{
    struct letter *l, *next;
    DL_FOREACH_SAFE(c->fresh, l, next)
    {
        DL_DELETE(c->fresh, l);
        free(l);
    }
}

/* Number of letters that wait for a retry, of their own or of an earlier letter about the
 * same job. */
static size_t
count_later(const struct courier *c)
{
    const struct letter *l;
    const struct box *b, *next;
    size_t n;
    DL_COUNT(c->later, l, n);
    HASH_ITER(hh, c->boxes, b, next)
    {
        DL_FOREACH(b->waiting, l)
        {
            const struct told *t = find_told(c, l);
            n += t && t->id != l->id && t->later;
        }
    }
    return n;
}

bool
courier_is_idle(const struct courier *c, bool now)
{
    return c->n == (now ? count_later(c) : 0) && !c->fresh;
}

size_t
courier_count(const struct courier *c)
{
    size_t fresh = 0;
    const struct letter *l;
    DL_COUNT(c->fresh, l, fresh);
    return c->n + fresh;
}

/* --- closing --- */

static void
free_all(struct letter *head)
{
    struct letter *l, *next;
    for (l = head; l; l = next) {
        next = l->next;
        free(l);
    }
}

void
courier_close(struct courier *c)
{
    struct letter *l, *next;
    c->closing = true;
    uv_close((uv_handle_t *)&c->timer, NULL);
    for (l = c->running; l; l = next) {
        next = l->next;
        peer_lines_close(l->answer);
        free(l);
    }
    c->running = NULL;
}

void
courier_free(struct courier *c)
{
    struct box *b, *next;
    HASH_ITER(hh, c->boxes, b, next)
    {
        free_all(b->waiting);
        HASH_DEL(c->boxes, b);
        free(b);
    }
    struct told *t, *next_told;
    HASH_ITER(hh, c->told, t, next_told)
    {
        HASH_DEL(c->told, t);
        free(t);
    }
    free_all(c->fresh);
    free_all(c->over);
    free_all(c->later);
    free(c);
}
