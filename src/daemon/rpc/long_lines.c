/* See long_lines.h. Called by rpc_client.c. The thread takes lines from one list and appends
 * the parsed ones to another, which the loop empties. If the thread cannot be created (no
 * process left on the machine), the loop parses the line itself. */
#include "daemon/rpc/long_lines.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/request/budget.h"
#include "daemon/rpc/user_shares.h"
#include "wire/json_text.h"

struct reading {
    struct reading *next;
    uid_t uid, group;
    const char *line; /* borrowed, or part of left */
    size_t len;
    reading_done_fn done; /* used by the loop only; NULL: no client waits for it any more */
    void *arg;
    struct frame left;
    int64_t kept; /* bytes of left, as user_shares.c counts them */
    struct parsed parsed;
};

struct long_lines {
    const struct budget *budget; /* borrowed, as is peers */
    struct peers *peers;
    uv_async_t async;
    pthread_t thread;
    bool runs;

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t more;
    struct reading *asked, *done; /* in order of arrival */
    const struct reading *now;    /* being parsed by the thread; NULL: none */
    bool ends;
};

void
line_parse(const struct budget *b, uid_t uid, const char *line, size_t len, struct parsed *out)
{
    json_error_t why;
    int64_t began_us = clock_thread_us();
    *out = (struct parsed){.root = NULL};
    if (budget_check_line(b, uid, line, len, &out->e) == 0) {
        out->root = json_text_read(line, len, &why);
        if (!out->root)
            out->not_json = xasprintf("not JSON: %s (byte %d)", why.text, why.position);
    }
    out->took_us = clock_thread_us() - began_us;
}

static void
append(struct reading **at, struct reading *r)
{
    while (*at)
        at = &(*at)->next;
    *at = r;
    r->next = NULL;
}

static void *
read_on(void *arg)
{
    struct long_lines *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->ends) {
        struct reading *r = l->asked;
        if (!r) {
            pthread_cond_wait(&l->more, &l->lock);
            continue;
        }
        l->asked = r->next;
        l->now = r;
        pthread_mutex_unlock(&l->lock);
        line_parse(l->budget, r->uid, r->line, r->len, &r->parsed);
        pthread_mutex_lock(&l->lock);
        l->now = NULL;
        append(&l->done, r);
        uv_async_send(&l->async);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static bool
start_thread(struct long_lines *l)
{
    sigset_t all, before;
    if (l->runs)
        return true;
    json_object_seed(0); /* both threads use it */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* only the loop handles signals */
    l->runs = pthread_create(&l->thread, NULL, read_on, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return l->runs;
}

static void
reading_free(struct reading *r)
{
    json_decref(r->parsed.root);
    free(r->parsed.not_json);
    frame_free(&r->left);
    free(r);
}

/* The client has disconnected, but the time was spent all the same. */
static void
charge_left(struct long_lines *l, const struct reading *r)
{
    peers_charge(l->peers, r->group, r->parsed.took_us, clock_boot_us());
    peers_keep(l->peers, r->group, -r->kept);
}

static void
on_done(uv_async_t *async)
{
    struct long_lines *l = async->data;
    pthread_mutex_lock(&l->lock);
    struct reading *r = l->done, *next;
    l->done = NULL;
    pthread_mutex_unlock(&l->lock);
    for (; r; r = next) {
        next = r->next;
        if (r->done) {
            struct parsed parsed = r->parsed;
            r->parsed = (struct parsed){.root = NULL};
            r->done(r->arg, &parsed, r->len);
        } else {
            charge_left(l, r);
        }
        reading_free(r);
    }
}

struct long_lines *
long_lines_new(uv_loop_t *loop, const struct budget *budget, struct peers *peers)
{
    struct long_lines *l = xcalloc(1, sizeof *l);
    l->budget = budget;
    l->peers = peers;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->more, NULL);
    uv_async_init(loop, &l->async, on_done);
    l->async.data = l;
    uv_unref((uv_handle_t *)&l->async);
    return l;
}

static void
free_all(struct reading *r)
{
    struct reading *next;
    for (; r; r = next) {
        next = r->next;
        reading_free(r);
    }
}

void
long_lines_close(struct long_lines *l)
{
    pthread_mutex_lock(&l->lock);
    l->ends = true;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
    if (l->runs)
        pthread_join(l->thread, NULL);
    free_all(l->asked);
    free_all(l->done);
    l->asked = l->done = NULL;
    uv_close((uv_handle_t *)&l->async, NULL);
}

void
long_lines_free(struct long_lines *l)
{
    pthread_cond_destroy(&l->more);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

struct reading *
reading_begin(struct long_lines *l, uid_t uid, uid_t group, const char *line, size_t len,
              reading_done_fn done, void *arg)
{
    if (l->ends || !start_thread(l))
        return NULL;
    struct reading *r = xcalloc(1, sizeof *r);
    *r = (struct reading){
        .uid = uid, .group = group, .line = line, .len = len, .done = done, .arg = arg};
    frame_init(&r->left, 0);
    pthread_mutex_lock(&l->lock);
    append(&l->asked, r);
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
    return r;
}

/* False: parsing has begun. */
static bool
forget_asked(struct long_lines *l, struct reading *r)
{
    struct reading **at = &l->asked;
    pthread_mutex_lock(&l->lock);
    while (*at && *at != r)
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found)
        *at = r->next;
    pthread_mutex_unlock(&l->lock);
    return found;
}

void
reading_leave(struct long_lines *l, struct reading *r, struct frame *f)
{
    r->done = NULL; /* only the loop uses it, as well as left and kept */
    r->left = *f;
    frame_init(f, f->max);
    if (forget_asked(l, r)) {
        reading_free(r);
        return;
    }
    r->kept = (int64_t)r->left.bytes.len;
    peers_keep(l->peers, r->group, r->kept);
}

static bool
is_among(const struct reading *list, uid_t group)
{
    while (list && list->group != group)
        list = list->next;
    return list != NULL;
}

bool
long_lines_has(struct long_lines *l, uid_t group)
{
    pthread_mutex_lock(&l->lock);
    bool has = (l->now && l->now->group == group) || is_among(l->asked, group) ||
               is_among(l->done, group);
    pthread_mutex_unlock(&l->lock);
    return has;
}
