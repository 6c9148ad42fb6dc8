/* The daemon's socket: connections, and when output is sent. See rpc_server.h for the main
 * rule: an answer is sent only after its turn is durable. Called by berthd.c and turn.c.
 * rpc_client.c handles one connection, rpc_requests.c requests and their answers. */
#include "daemon/rpc/rpc_server.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/common/instance.h"
#include "daemon/common/pace.h"
#include "daemon/common/turn_due.h"
#include "daemon/request/budget.h"
#include "daemon/request/event_filter.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/long_lines.h"
#include "daemon/rpc/rpc.h"
#include "daemon/rpc/rpc_server_priv.h"
#include "daemon/rpc/user_shares.h"
#include "daemon/service/socket_name.h"
#include "wire/frame.h"

#define TRIM_MS             500
#define ACCEPTS_MAX         64 /* per round of the loop: one or two milliseconds */
#define SAY_AGAIN_US        INT64_C(1000000)
#define GATHER_MAX          ((size_t)64 << 10) /* bytes of events sent together */
#define FOLLOWER_UNREAD_MAX ((size_t)8 << 20)  /* unread bytes that drop a follower */

void
server_count_turned_away(struct server *s)
{
    s->turned_away++;
    s->turned_away_us = clock_boot_us();
}

/* The C library would otherwise keep forever the memory that long requests needed briefly. */
static void
on_trim(uv_timer_t *timer)
{
    struct server *s = timer->data;
    pace_spent(s->rpc->pace, PACE_REST, UINT32_MAX);
    malloc_trim(0);
    pace_spent(s->rpc->pace, "trim", UINT32_MAX);
}

void
server_trim_soon(struct server *s)
{
    if (!s->closing && !uv_is_active((uv_handle_t *)&s->trim))
        uv_timer_start(&s->trim, on_trim, TRIM_MS, 0);
}

static void
on_closed_unused(uv_handle_t *handle)
{
    free(handle->data);
}

/* Sends the reason before the connection is closed. */
static void
turn_away(struct client *c, const struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    rpc_write_error(&text, "null", err_exit_status(e->code), err_name(e->code), e->text);
    uv_buf_t b = uv_buf_init(text.data, (unsigned)text.len);
    (void)uv_try_write((uv_stream_t *)&c->pipe, &b, 1);
    server_count_turned_away(c->server);
}

/* Drops one connection of that user: the newest idle one, or else the newest. */
static void
make_room(struct server *s, uid_t crowd)
{
    struct client *last = NULL;
    for (struct client *c = s->clients; c; c = c->next) { /* newest first */
        if (c->group != crowd)
            continue;
        if (!last || (!client_is_idle(last) && client_is_idle(c)))
            last = c;
    }
    if (!last)
        return;
    if (clock_boot_us() - s->turned_away_us > SAY_AGAIN_US)
        log_warn("client=%d dropped: all connections are in use, user %u has the most, and "
                 "another user has none",
                 (int)last->pid, last->uid);
    server_count_turned_away(s);
    client_drop(last);
}

static bool
admit(struct client *c)
{
    struct server *s = c->server;
    const struct config *conf = &s->rpc->inst->config;
    struct err e = {0};
    uid_t crowd = 0;
    peers_set_limits(s->peers, conf->user_max_connections, conf->user_max_buffer_mib << 20);
    if (peers_enter(s->peers, c->uid, s->n_clients, clock_boot_us(), &c->group, &crowd, &e) <
        0) {
        turn_away(c, &e);
        return false;
    }
    if (crowd)
        make_room(s, crowd);
    return true;
}

static bool
identify(struct client *c)
{
    uv_os_fd_t fd;
    struct ucred cred;
    socklen_t len = sizeof cred;
    if (uv_fileno((uv_handle_t *)&c->pipe, &fd) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
        return false;
    c->uid = cred.uid;
    c->pid = cred.pid;
    c->admin = roles_is_admin(c->server->rpc->roles, fd, &cred);
    return roles_is_served(c->server->rpc->roles, c->uid);
}

/* Logs at most once per second: the caller is still there, so accept fails again at once. */
static void
say_accept_fails(struct server *s, int status)
{
    int64_t now_us = clock_boot_us();
    if (now_us - s->accept_failed_us < SAY_AGAIN_US)
        return;
    s->accept_failed_us = now_us;
    log_warn("accept: %s", uv_strerror(status));
}

/* Ends the round however fast callers come: a caller that is not accepted here is the first of
 * the next round (server_new_round), and until then libuv accepts no more. */
static void
on_connection(uv_stream_t *listener, int status)
{
    struct server *s = listener->data;
    if (status < 0) {
        say_accept_fails(s, status);
        return;
    }
    s->caller_waits = s->n_accepted == ACCEPTS_MAX;
    if (s->caller_waits)
        return;
    s->n_accepted++;
    struct client *c = xcalloc(1, sizeof *c);
    c->server = s;
    c->since_us = clock_boot_us();
    uv_pipe_init(s->rpc->inst->loop, &c->pipe, 0);
    c->pipe.data = c;
    frame_init(&c->in, FRAME_MAX_PEER);
    if (uv_accept(listener, (uv_stream_t *)&c->pipe) || s->closing || !identify(c) ||
        !admit(c)) {
        uv_close((uv_handle_t *)&c->pipe, on_closed_unused);
        return;
    }
    c->in.max = budget_request_max(s->rpc->budget, c->uid);
    c->next = s->clients;
    if (c->next)
        c->next->prev = c;
    s->clients = c;
    s->n_clients++;
    turn_touch_unplanned(s->rpc->inst); /* an idle daemon has a client now */
    client_read(c);
}

struct server *
server_open(struct rpc *rpc, const struct method *(*find)(const char *name), struct err *e)
{
    struct server *s = xcalloc(1, sizeof *s);
    s->rpc = rpc;
    s->find = find;
    s->listener = listener_open(rpc->inst, on_connection, s, e);
    if (!s->listener) {
        free(s);
        return NULL;
    }
    s->peers = peers_new(rpc->inst->places.system, "/etc/subuid");
    s->long_lines = long_lines_new(rpc->inst->loop, rpc->budget, s->peers);
    uv_timer_init(rpc->inst->loop, &s->resume);
    s->resume.data = s;
    uv_timer_init(rpc->inst->loop, &s->trim);
    s->trim.data = s;
    uv_unref((uv_handle_t *)&s->trim);
    return s;
}

void
server_close(struct server *s)
{
    if (s->closing)
        return;
    s->closing = true;
    listener_close(s->listener);
    uv_close((uv_handle_t *)&s->resume, NULL);
    uv_close((uv_handle_t *)&s->trim, NULL);
    for (struct client *c = s->clients; c; c = c->next) {
        uv_read_stop((uv_stream_t *)&c->pipe);
        uv_unref((uv_handle_t *)&c->pipe);
        c->reading = NULL;
    }
    long_lines_close(s->long_lines);
}

/* Tells clients if a user stopped this daemon: without that a client expects another daemon to
 * follow. */
void
server_hang_up(struct server *s)
{
    while (s->clients) {
        struct client *c = s->clients;
        auto_buf struct buf word = BUF_INIT;
        if (s->rpc->inst->stop_asked)
            buf_adds(&word, "{\"jsonrpc\":\"2.0\",\"method\":\"stopped\",\"params\":{}}\n");
        rpc_client_send(c, &word);
        if (s->clients == c)
            client_drop(c);
    }
}

void
server_free(struct server *s)
{
    listener_free(s->listener);
    long_lines_free(s->long_lines);
    peers_free(s->peers);
    free(s);
}

void
server_new_round(struct server *s)
{
    peers_new_round(s->peers);
    s->n_accepted = 0;
    if (s->caller_waits && !s->closing) {
        s->caller_waits = false;
        listener_go_on(s->listener);
    }
}

bool
server_may_work(struct server *s, uid_t group)
{
    return peers_may_ask(s->peers, group, clock_boot_us());
}

void
server_charge(struct server *s, uid_t group, int64_t us)
{
    peers_charge(s->peers, group, us, clock_boot_us());
}

/* If this exceeds the maximum, the user's next received bytes cause the drop (rpc_client.c,
 * account). */
void
server_keep(struct server *s, uid_t group, int64_t bytes)
{
    (void)peers_keep(s->peers, group, bytes);
}

void
server_keep_waiting(struct server *s, uid_t group, int64_t bytes)
{
    peers_keep_waiting(s->peers, group, bytes);
}

bool
server_may_wait(const struct server *s, uid_t group)
{
    return peers_may_wait(s->peers, group);
}

void
server_changed(struct server *s, uid_t group)
{
    for (int i = 0; i < s->n_changers; i++)
        if (s->changers[i] == group)
            return;
    if (s->n_changers < CHANGERS_MAX)
        s->changers[s->n_changers++] = group;
}

void
server_charge_turn(struct server *s, int64_t us)
{
    for (int i = 0; i < s->n_changers; i++)
        server_charge(s, s->changers[i], us / s->n_changers);
    s->n_changers = 0;
}

int
server_client_count(const struct server *s)
{
    return s->n_clients;
}

int64_t
server_turned_away(const struct server *s, int64_t *at_us)
{
    if (at_us)
        *at_us = s->turned_away_us;
    return s->turned_away;
}

bool
server_has_callers(const struct server *s)
{
    return s->caller_waits || listener_has_callers(s->listener);
}

void
server_release(struct server *s, const struct err *failed)
{
    struct client *next;
    for (struct client *c = s->clients; c; c = next) {
        next = c->next;
        if (c->n_held == 0)
            continue;
        struct buf out = BUF_INIT;
        for (int i = 0; i < c->n_held; i++) {
            struct reply *r = &c->held[i];
            if (failed && r->changes) {
                rpc_write_error(&out, r->id, err_exit_status(failed->code),
                                err_name(failed->code), failed->text);
                buf_free(&r->result);
            } else {
                buf_add(&out, r->text.data, r->text.len);
            }
            if (r->result.len >= LARGE_BYTES) {
                rpc_client_send(c, &out);
                rpc_client_send(c, &r->result);
            } else {
                buf_add(&out, buf_str(&r->result), r->result.len);
                buf_free(&r->result);
            }
            buf_free(&r->text);
            free(r->id);
        }
        c->n_held = 0;
        rpc_client_send(c, &out);
    }
}

void
server_follow(struct client *client, struct event_filter *filter)
{
    event_filter_free(&client->filter);
    client->filter = *filter;
    *filter = (struct event_filter){0};
    client->following = true;
}

bool
server_is_followed(const struct server *s, const char *kind)
{
    for (const struct client *c = s->clients; c; c = c->next)
        if (c->following && event_filter_takes(&c->filter, kind))
            return true;
    return false;
}

void
server_publish(struct server *s, const struct event_view *ev)
{
    struct client *next;
    for (struct client *c = s->clients; c; c = next) {
        next = c->next;
        const struct viewer viewer = {.uid = c->uid, .admin = c->admin};
        if (!c->following || !event_filter_lets(&c->filter, ev) ||
            roles_hides_event(s->rpc->roles, &viewer, ev->job, ev->line, ev->n))
            continue;
        if (client_unread(c) > FOLLOWER_UNREAD_MAX) {
            log_info("client=%d event=follower-behind it left %zu MiB of events unread",
                     (int)c->pid, client_unread(c) >> 20);
            client_drop(c);
            continue;
        }
        buf_adds(&c->unsent, "{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":");
        buf_add(&c->unsent, ev->line, ev->n);
        buf_adds(&c->unsent, "}\n");
        if (c->unsent.len >= GATHER_MAX)
            client_send_gathered(c);
    }
}

void
server_publish_end(struct server *s)
{
    struct client *next;
    for (struct client *c = s->clients; c; c = next) {
        next = c->next;
        if (c->following)
            client_send_gathered(c);
    }
}
