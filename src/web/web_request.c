/* Requests: see web_request.h. Each is checked in this order: is it for us (Host, no other
 * site's page), may the visitor see it (peer, token), what does it ask for (route). It is
 * answered at once, or suspended until the cache or the log reader has the answer. */
#include "web/web_request.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "web/http/gate.h"
#include "web/http/reply.h"
#include "web/http/respond.h"
#include "web/http/visitors.h"
#include "web/http/web_peer.h"
#include "web/http/web_stream.h"
#include "web/pages/asset.h"
#include "web/pages/cache.h"
#include "web/pages/web_page.h"
#include "web/route.h"
#include "web/web_login.h"

#define LOG_BYTES 65536

struct request {
    struct request *next, **at; /* in the list of waiting requests */
    struct web *web;
    struct MHD_Connection *connection;
    struct route route;
    struct query query;
    bool is_page; /* the answer is HTML for a person */
    bool begun;
    bool suspended;
    struct waiter *waiter;
    struct reading *reading;
    struct reply *reply; /* the answer, once it is there */
    struct login *login; /* a form being received */
    struct err refused;  /* an invalid argument */
};

static const char *
header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* --- waiting --- */

static void
wait_for(struct request *r)
{
    struct web *w = r->web;

    r->suspended = true;
    r->next = w->waiting;
    r->at = &w->waiting;
    if (w->waiting)
        w->waiting->at = &r->next;
    w->waiting = r;
    MHD_suspend_connection(r->connection);
}

static void
resume(struct request *r)
{
    if (!r->suspended)
        return;
    r->suspended = false;
    *r->at = r->next;
    if (r->next)
        r->next->at = r->at;
    MHD_resume_connection(r->connection);
    r->web->on_resume(r->web->ctx);
}

static void
answer(struct request *r, struct reply *reply)
{
    reply_unref(r->reply);
    r->reply = reply_ref(reply);
    resume(r);
}

/* The same for a reply made only for this request. */
static void
answer_own(struct request *r, struct reply *reply)
{
    answer(r, reply);
    reply_unref(reply);
}

static void
answer_words(struct request *r, int status, const char *title, const char *words)
{
    if (r->is_page)
        answer_own(r, page_words(r->web->page, status, title, words));
    else
        answer_own(r, respond_words(status, words));
}

void
request_end_all(struct web *w)
{
    w->ending = true;
    while (w->waiting)
        answer_words(w->waiting, 503, "Stopping", "berth-web is being stopped");
}

/* --- answers --- */

static void
on_data(void *ctx, struct reply *data)
{
    struct request *r = ctx;

    r->waiter = NULL;
    if (r->route.kind == ROUTE_PAGE)
        answer_own(r, page_make(r->web->page, &r->query, data));
    else
        answer(r, data);
}

static void
on_log(void *ctx, struct reply *reply)
{
    struct request *r = ctx;

    r->reading = NULL;
    answer(r, reply);
}

/* Reads the log that the job's object names. */
static void
on_job_of_log(void *ctx, struct reply *data)
{
    struct request *r = ctx;
    const json_t *job = json_object_get(data->tree, "job");
    const char *path = json_string_value(json_object_get(job, "log"));
    const json_t *uid = json_object_get(job, "uid");

    r->waiter = NULL;
    if (!job) {
        answer(r, data);
        return;
    }
    if (!path || !json_is_integer(uid)) {
        answer_words(r, 403, "No log", "only the owner may see this job's log");
        return;
    }
    r->reading = logtail_read(&r->web->logtail, path, (uid_t)json_integer_value(uid),
                              r->query.bytes ? (size_t)r->query.bytes : LOG_BYTES, on_log, r);
    if (!r->reading)
        answer_words(r, 503, "Try again",
                     "too many logs are being read now; a file server may not be responding");
}

static enum MHD_Result
take_argument(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct request *r = cls;

    (void)kind;
    if (!r->refused.code)
        (void)query_set(&r->query, name, value ? value : "", &r->refused);
    return MHD_YES;
}

static void
ask(struct request *r)
{
    r->query = (struct query){.kind = r->route.query, .job = r->route.job};
    MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, take_argument, r);
    if (r->refused.code) {
        answer_own(r, reply_error(&r->refused));
        return;
    }
    if (r->route.kind == ROUTE_LOG) {
        const struct query job = {.kind = QUERY_JOB, .job = r->route.job};
        cache_get(r->web->cache, &job, on_job_of_log, r, &r->waiter);
    } else {
        cache_get(r->web->cache, &r->query, on_data, r, &r->waiter);
    }
}

static void
give_asset(struct request *r)
{
    for (const struct asset *a = assets; a->name; a++)
        if (strcmp(a->name, r->route.asset) == 0) {
            struct buf bytes = BUF_INIT;
            buf_add(&bytes, a->bytes, a->n);
            answer_own(r, reply_new(200, a->type, &bytes));
            return;
        }
    answer_words(r, 404, "Not found", "there is no file with this name");
}

/* --- gate --- */

static struct visitor *
visitor_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

/* True if the peer is root or this process's user. Queried once per connection. */
static bool
is_own_peer(const struct request *r)
{
    /* libmicrohttpd 1.0 returns both results in the same buffer, so read one before the next
     * call. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const int fd = info ? info->connect_fd : -1;
    struct visitor *visitor = visitor_of(r->connection);
    char *known;
    uid_t uid;

    if (fd < 0 || !visitor)
        return false;
    known = visitor_peer(visitor);
    if (!*known)
        *known = peer_uid(fd, &uid, NULL) == 0 && (uid == 0 || uid == geteuid()) ? 'y' : 'n';
    return *known == 'y';
}

static bool
is_allowed_peer(struct request *r)
{
    if (!r->web->check_peers || r->web->gate->token || is_own_peer(r))
        return true;
    answer_words(
        r, 403, "Not allowed",
        "this page belongs to another user of this machine; its owner can start berth-web with "
        "--allow-local for all users, or with --token-file for those who have a token");
    return false;
}

static bool
is_for_us(struct request *r)
{
    if (!gate_host_is_ours(r->web->gate, header(r, "Host"))) {
        answer_words(r, 421, "Unknown host name",
                     "this server does not have that name; 'berth-web --host NAME' adds one");
        return false;
    }
    if (gate_is_cross_site(header(r, "Sec-Fetch-Site"), header(r, "Sec-Fetch-Mode"))) {
        answer_words(r, 403, "Cross-site request", "requests from other sites are refused");
        return false;
    }
    return true;
}

static bool
is_own_form(struct request *r)
{
    if (gate_origin_is_ours(header(r, "Origin"), header(r, "Host")))
        return true;
    answer_words(r, 403, "Cross-site request", "the form was sent from another site");
    return false;
}

static bool
is_open(struct request *r, const char *url)
{
    const struct gate *g = r->web->gate;

    if (r->route.is_open || gate_is_open(g, header(r, "Authorization"), header(r, "Cookie")))
        return true;
    if (r->is_page) {
        answer_own(r, page_login(r->web->page, false, gate_next_path(url)));
        r->reply->status = 401;
    } else {
        answer_words(r, 401, "Log in", "a token is required: Authorization: Bearer TOKEN");
    }
    return false;
}

/* --- handling --- */

static void
begin(struct request *r, const char *url, const char *method)
{
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;

    r->begun = true;
    if (r->reply || !is_open(r, url))
        return;
    if (r->web->ending) {
        answer_words(r, 503, "Stopping", "berth-web is being stopped");
        return;
    }
    if (r->login) {
        login_finish(r->login, r->web->gate, r->web->page, &r->reply);
        return;
    }
    if (!reads) {
        answer_words(r, 405, "Read only", "this server answers only GET and HEAD");
        return;
    }
    switch (r->route.kind) {
    case ROUTE_PAGE:
    case ROUTE_DATA:
    case ROUTE_LOG:
        ask(r);
        break;
    case ROUTE_ASSET:
        give_asset(r);
        break;
    case ROUTE_LOGIN:
        answer_own(r, page_login(r->web->page, false, "/"));
        break;
    case ROUTE_EVENTS:
        break;
    case ROUTE_LOGOUT:
    case ROUTE_NONE:
        answer_words(r, 404, "Not found", "there is no page with this address");
        break;
    }
}

/* Unknown paths get a page for a browser, and JSON for a program. */
static bool
is_page(const struct request *r, const char *url)
{
    const char *accept = header(r, "Accept");

    switch (r->route.kind) {
    case ROUTE_PAGE:
    case ROUTE_LOGIN:
        return true;
    case ROUTE_LOGOUT:
    case ROUTE_NONE:
        return accept && strstr(accept, "text/html") && strncmp(url, "/api/", 5) != 0;
    case ROUTE_DATA:
    case ROUTE_LOG:
    case ROUTE_ASSET:
    case ROUTE_EVENTS:
        break;
    }
    return false;
}

static bool
is_form(const struct request *r, const char *method)
{
    return strcmp(method, "POST") == 0 &&
           (r->route.kind == ROUTE_LOGIN || r->route.kind == ROUTE_LOGOUT);
}

static struct request *
request_new(struct web *w, struct MHD_Connection *connection, const char *url,
            const char *method)
{
    struct request *r = xcalloc(1, sizeof *r);

    r->web = w;
    r->connection = connection;
    route_find(url, &r->route);
    r->is_page = is_page(r, url);
    /* Refusals are decided before the body arrives, so that an unauthorised client's body is
     * never parsed. */
    if (is_for_us(r) && is_allowed_peer(r) && is_form(r, method) && is_own_form(r))
        r->login = login_new(connection, r->route.kind == ROUTE_LOGOUT);
    return r;
}

static enum MHD_Result
listen_to_stream(struct request *r)
{
    const char *only =
        MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, "only");
    bool all = !only || strcmp(only, "rev") != 0;
    struct MHD_Response *response = stream_listen(r->web->stream, r->connection, all);

    if (response)
        return respond_stream(r->connection, response);
    answer_words(r, 503, "Too many", "too many open pages; close some tabs");
    return respond(r->connection, r->reply, NULL);
}

enum MHD_Result
request_handle(void *cls, struct MHD_Connection *connection, const char *url,
               const char *method, const char *version, const char *upload, size_t *n,
               void **own)
{
    struct request *r = *own;
    struct visitor *visitor = visitor_of(connection);

    (void)version;
    if (!r) {
        *own = request_new(cls, connection, url, method);
        return MHD_YES;
    }
    if (*n > 0) {
        if (r->login)
            login_take(r->login, upload, *n);
        *n = 0;
        return MHD_YES;
    }
    if (!r->begun) {
        if (visitor)
            visitor_asks(visitor);
        begin(r, url, method);
    }
    if (r->reply && visitor)
        visitor_is_answered(visitor);
    if (r->reply)
        return respond(connection, r->reply, r->login ? login_cookie(r->login) : NULL);
    if (r->route.kind == ROUTE_EVENTS)
        return listen_to_stream(r);
    wait_for(r);
    return MHD_YES;
}

void
request_completed(void *cls, struct MHD_Connection *connection, void **own,
                  enum MHD_RequestTerminationCode how)
{
    struct request *r = *own;
    struct visitor *visitor = visitor_of(connection);

    (void)cls;
    (void)how;
    if (visitor)
        visitor_is_done(visitor);
    if (!r)
        return;
    *own = NULL;
    if (r->waiter)
        cache_forget(r->waiter);
    if (r->reading)
        logtail_forget(r->reading);
    if (r->suspended) {
        *r->at = r->next;
        if (r->next)
            r->next->at = r->at;
    }
    login_free(r->login);
    reply_unref(r->reply);
    free(r);
}

/* visitor_peer is unset for a new connection; later it is 'y' or 'n'. */
void
request_connection(void *cls, struct MHD_Connection *connection, void **own,
                   enum MHD_ConnectionNotificationCode how)
{
    const struct web *web = cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (how == MHD_CONNECTION_NOTIFY_STARTED) {
        *own = visitors_enter(web->visitors, info ? info->connect_fd : -1);
    } else {
        if (*own)
            visitor_leave(*own);
        *own = NULL;
    }
}
