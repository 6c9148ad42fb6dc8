/* Names of users: see user_names.h. One thread looks up one name at a time; a mutex guards its
 * queue and its answers, and only the loop uses the rest. rpc_client.c holds the requests of a
 * user whose name is still being looked up. */
#include "daemon/common/user_names.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/job.h"

#define USER_NAME_MAX 64
#define PATIENCE_US   INT64_C(2000000)  /* how long a client waits for its user's name */
#define AGAIN_US      INT64_C(60000000) /* before a missing name is looked up again */
#define WAIT_NS       250000000L        /* how long the loop waits for a name */
#define NS_PER_S      1000000000L
#define ENTRY_MAX     ((size_t)1 << 20) /* bytes of a directory entry */
/* A user can appear under tens of thousands of subordinate uids. The bound exceeds what one
 * iteration of the loop looks up, so no name is evicted while in use. */
#define NAMES_MAX 16384

enum knowledge { NEVER_ASKED, ASKED, KNOWN, NAMELESS };

struct user_name {
    UT_hash_handle hh;
    uid_t uid;
    enum knowledge knowledge;
    int64_t asked_us; /* boot clock */
    char name[USER_NAME_MAX];
};

/* Uid or gid by name. */
struct name_id {
    UT_hash_handle hh;
    char *name; /* owned */
    id_t id;
    bool is_asked, is_answered, is_there;
};

enum query_kind { NAME_BY_UID, UID_BY_NAME, GID_BY_NAME };

struct query {
    struct query *next;
    enum query_kind kind;
    char *by_name; /* owned; NULL with NAME_BY_UID */
    id_t id;
    bool found;
    bool no_answer;           /* the directory is away: not even that there is none */
    char name[USER_NAME_MAX]; /* with NAME_BY_UID */
};

/* The cache and its thread. Losing either costs only time. */
static struct {
    struct user_name *names; /* by uid, least recently used first */
    struct name_id *uids;    /* by name; users named in the settings */
    struct name_id *gids;    /* the same for groups */
    int n_asked;             /* pending lookups by name */
    bool ids_differ;         /* an answer differs from the previous one */
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_cond_t done; /* signalled after each answer */
    struct query *asked, *answered;
    uv_async_t *async; /* NULL: answers are ignored */
    users_answered_fn resume;
    void *resume_arg;
    int64_t slow_until_us; /* boot clock: until then the loop does not wait for names */
} users = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* --- thread --- */

/* Returns as getpwuid_r(3) does. */
static int
look_up_user(struct query *q, char *text, size_t size)
{
    struct passwd entry, *found = NULL;
    int rc = q->kind == UID_BY_NAME ? getpwnam_r(q->by_name, &entry, text, size, &found)
                                    : getpwuid_r((uid_t)q->id, &entry, text, size, &found);
    q->found = found != NULL;
    if (found) {
        q->id = found->pw_uid;
        snprintf(q->name, sizeof q->name, "%s", found->pw_name);
    }
    return rc;
}

static int
look_up_group(struct query *q, char *text, size_t size)
{
    struct group entry, *found = NULL;
    int rc = getgrnam_r(q->by_name, &entry, text, size, &found);
    q->found = found != NULL;
    if (found)
        q->id = found->gr_gid;
    return rc;
}

static void
look_up(struct query *q)
{
    size_t size = 4096;
    int rc;
    char *text = xmalloc(size);
    while ((rc = q->kind == GID_BY_NAME ? look_up_group(q, text, size)
                                        : look_up_user(q, text, size)) == ERANGE &&
           size < ENTRY_MAX) {
        size *= 4;
        text = xrealloc(text, size);
    }
    q->no_answer = rc != 0;
    free(text);
}

static void
query_free(struct query *q)
{
    free(q->by_name);
    free(q);
}

static void *__attribute__((noreturn)) ask_on(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&users.lock);
    for (;;) {
        struct query *q = users.asked;
        if (!q) {
            pthread_cond_wait(&users.more, &users.lock);
            continue;
        }
        users.asked = q->next;
        pthread_mutex_unlock(&users.lock);
        look_up(q);
        pthread_mutex_lock(&users.lock);
        q->next = users.answered;
        users.answered = q;
        pthread_cond_signal(&users.done);
        if (users.async)
            uv_async_send(users.async);
    }
}

static int
start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the loop's thread */
    int rc = pthread_create(&thread, &attr, ask_on, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

/* --- loop --- */

static void
drop_oldest(void)
{
    struct user_name *oldest = users.names;
    HASH_DEL(users.names, oldest);
    free(oldest);
}

static struct user_name *
find(uid_t uid)
{
    struct user_name *u;
    HASH_FIND(hh, users.names, &uid, sizeof uid, u);
    if (u) {
        HASH_DEL(users.names, u); /* most recently used last */
    } else {
        if (HASH_COUNT(users.names) >= NAMES_MAX)
            drop_oldest();
        u = xcalloc(1, sizeof *u);
        u->uid = uid;
        snprintf(u->name, sizeof u->name, "uid:%u", uid);
    }
    HASH_ADD(hh, users.names, uid, sizeof u->uid, u);
    return u;
}

static struct name_id *
find_id(enum query_kind kind, const char *name)
{
    struct name_id **all = kind == GID_BY_NAME ? &users.gids : &users.uids, *n;
    HASH_FIND_STR(*all, name, n);
    if (!n) {
        n = xcalloc(1, sizeof *n);
        n->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, *all, n->name, strlen(n->name), n);
    }
    return n;
}

/* What was known stays so while the directory is away. */
static void
take_id(const struct query *q)
{
    struct name_id *n = find_id(q->kind, q->by_name);
    users.n_asked -= n->is_asked;
    n->is_asked = false;
    if (q->no_answer && n->is_there)
        return;
    users.ids_differ |=
        !n->is_answered || n->is_there != q->found || (q->found && n->id != q->id);
    n->is_answered = true;
    n->is_there = q->found;
    n->id = q->id;
}

static void
take_name(const struct query *q)
{
    struct user_name *u = find((uid_t)q->id);
    u->knowledge = q->name[0] ? KNOWN : NAMELESS;
    if (q->name[0])
        snprintf(u->name, sizeof u->name, "%s", q->name);
}

static void
take_answers(void)
{
    pthread_mutex_lock(&users.lock);
    struct query *q = users.answered, *next;
    users.answered = NULL;
    pthread_mutex_unlock(&users.lock);
    for (; q; q = next) {
        next = q->next;
        if (q->by_name)
            take_id(q);
        else
            take_name(q);
        query_free(q);
    }
}

static void
on_answers(uv_async_t *async)
{
    (void)async;
    take_answers();
    bool differ = users.ids_differ && users.n_asked == 0;
    if (differ) {
        users.ids_differ = false;
        log_info("event=users-found those that the settings name");
    }
    users.resume(users.resume_arg, differ);
}

/* Takes ownership of the query. False: no thread can be started. */
static bool
send_query(struct query *q)
{
    struct query **at = &users.asked;
    int rc = !users.async ? UV_ECANCELED : users.has_thread ? 0 : start_thread();
    if (rc) {
        if (users.async)
            log_warn("event=no-user-names cannot start a thread: %s", strerror(rc));
        query_free(q);
        return false;
    }
    users.has_thread = true;
    pthread_mutex_lock(&users.lock);
    while (*at)
        at = &(*at)->next;
    *at = q;
    pthread_cond_signal(&users.more);
    pthread_mutex_unlock(&users.lock);
    return true;
}

static void
ask(struct user_name *u)
{
    struct query *q = xcalloc(1, sizeof *q);
    q->id = u->uid;
    u->asked_us = clock_boot_us();
    u->knowledge = send_query(q) ? ASKED : NAMELESS;
}

/* A working directory answers in less than a millisecond, so waiting avoids ever showing a
 * number. A slow one costs the loop this wait at most once a minute. */
static void
await_answer(const struct user_name *u)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    while (u->knowledge == ASKED && rc == 0) {
        pthread_mutex_lock(&users.lock);
        while (!users.answered && rc == 0)
            rc = pthread_cond_timedwait(&users.done, &users.lock, &until);
        pthread_mutex_unlock(&users.lock);
        take_answers();
    }
    if (u->knowledge == ASKED)
        users.slow_until_us = clock_boot_us() + AGAIN_US;
}

static struct user_name *
find_asked(uid_t uid)
{
    struct user_name *u = find(uid);
    if (u->knowledge == NEVER_ASKED ||
        (u->knowledge == NAMELESS && clock_boot_us() - u->asked_us > AGAIN_US)) {
        ask(u);
        if (u->knowledge == ASKED && clock_boot_us() >= users.slow_until_us)
            await_answer(u);
    }
    return u;
}

void
users_start(uv_loop_t *loop, users_answered_fn answered, void *arg)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&users.done, &attr);
    pthread_condattr_destroy(&attr);
    users.resume = answered;
    users.resume_arg = arg;
    users.async = xcalloc(1, sizeof *users.async);
    uv_async_init(loop, users.async, on_answers);
    uv_unref((uv_handle_t *)users.async);
}

static void
on_closed(uv_handle_t *handle)
{
    free(handle);
}

void
users_close(void)
{
    pthread_mutex_lock(&users.lock);
    uv_async_t *async = users.async;
    users.async = NULL;
    pthread_mutex_unlock(&users.lock);
    uv_close((uv_handle_t *)async, on_closed);
}

static void
ask_id(enum query_kind kind, const char *name)
{
    struct name_id *n = find_id(kind, name);
    if (n->is_asked)
        return;
    struct query *q = xcalloc(1, sizeof *q);
    q->kind = kind;
    q->by_name = xstrdup(name);
    n->is_asked = send_query(q);
    users.n_asked += n->is_asked;
}

static void
find_id_now(enum query_kind kind, const char *name)
{
    struct query q = {.kind = kind, .by_name = xstrdup(name)};
    look_up(&q);
    take_id(&q);
    users.ids_differ = false;
    free(q.by_name);
}

void
users_ask_uid(const char *name)
{
    ask_id(UID_BY_NAME, name);
}

void
users_find_uid(const char *name)
{
    find_id_now(UID_BY_NAME, name);
}

int
users_uid(const char *name, uid_t *uid)
{
    const struct name_id *n = find_id(UID_BY_NAME, name);
    *uid = (uid_t)n->id;
    return !n->is_answered ? -1 : n->is_there;
}

void
users_ask_gid(const char *name)
{
    ask_id(GID_BY_NAME, name);
}

void
users_find_gid(const char *name)
{
    find_id_now(GID_BY_NAME, name);
}

bool
users_gid(const char *name, gid_t *gid)
{
    const struct name_id *n = find_id(GID_BY_NAME, name);
    *gid = (gid_t)n->id;
    return n->is_there;
}

bool
users_is_settled(uid_t uid)
{
    const struct user_name *u = find_asked(uid);
    return u->knowledge != ASKED || clock_boot_us() - u->asked_us > PATIENCE_US;
}

const char *
users_name(uid_t uid)
{
    const struct user_name *u = find_asked(uid);
    return u->knowledge == KNOWN ? u->name : NULL;
}

const char *
daemon_user_name(uid_t uid)
{
    return find_asked(uid)->name;
}

const char *
daemon_name_of(uid_t uid, const char *kept)
{
    struct user_name *u = find_asked(uid);
    if (u->knowledge != KNOWN && kept && kept[0])
        snprintf(u->name, sizeof u->name, "%s", kept);
    return u->name;
}

const char *
daemon_owner_name(const struct job *job)
{
    return daemon_name_of(job->uid, job->user);
}
