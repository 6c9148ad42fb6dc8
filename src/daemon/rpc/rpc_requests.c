/* JSON-RPC 2.0 on a client's line: a request is answered by its method, at once or later with
 * a ticket. Every answer is held until the turn is durable (server_release). The methods are
 * in method_*.c and listed in methods.c. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "daemon/common/instance.h"
#include "daemon/common/pace.h"
#include "daemon/common/turn_due.h"
#include "daemon/request/budget.h"
#include "daemon/request/file_upload.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/rpc/rpc_server_priv.h"
#include "daemon/state/state.h"
#include "store/store.h"

#define TOKEN_MIN 16
#define TOKEN_MAX 64
/* Bytes counted for an unanswered request, so that a user may have about 1,000 by default. */
#define TICKET_BYTES       INT64_C(65536)
#define RPC_PARSE_ERROR    -32700
#define RPC_BAD_REQUEST    -32600
#define RPC_UNKNOWN_METHOD -32601

struct ticket {
    struct client *client;
    char *id;
    int64_t kept; /* bytes counted for its user until the answer */
    bool changes;
    bool progress; /* the client wants progress messages until then */
};

static struct reply *
hold(struct client *c, char *id, bool changes)
{
    c->held = xgrow(c->held, c->n_held, &c->cap_held, sizeof *c->held);
    struct reply *r = &c->held[c->n_held++];
    *r = (struct reply){.text = BUF_INIT, .id = id, .changes = changes};
    if (changes)
        turn_touch(c->server->rpc->inst);
    else
        turn_touch_unplanned(c->server->rpc->inst);
    return r;
}

void
rpc_write_error(struct buf *out, const char *id, int code, const char *kind, const char *text)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "jsonrpc", "2.0");
    jsonw_key(&w, "id");
    jsonw_raw(&w, id, strlen(id));
    jsonw_kobject(&w, "error");
    jsonw_kint(&w, "code", code);
    jsonw_kstr(&w, "message", text);
    if (kind) {
        jsonw_kobject(&w, "data");
        jsonw_kstr(&w, "kind", kind);
        jsonw_end_object(&w);
    }
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

/* Takes over the result: it may be 64 MiB, and a copy would block the loop for 50 ms. */
static void
write_result(struct reply *r, struct buf *result)
{
    buf_adds(&r->text, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_adds(&r->text, r->id);
    buf_adds(&r->text, ",\"result\":");
    r->result = *result;
    *result = (struct buf)BUF_INIT;
    buf_adds(&r->result, "}\n");
}

/* An id is a string, a number or null; anything else is answered as null. */
static char *
id_text(const json_t *id)
{
    char *text = NULL;
    if (json_is_string(id) || json_is_integer(id))
        text = json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
    return text ? text : xstrdup("null");
}

static void
answer_protocol_error(struct client *c, const json_t *id, int code, const char *text)
{
    struct reply *r = hold(c, id_text(id), false);
    if (code != RPC_UNKNOWN_METHOD)
        file_uploads_unread(c->server->rpc->uploads, c);
    rpc_write_error(&r->text, r->id, code, "usage", text);
}

/* If a client lost its connection before the answer and repeats the request, sends it the
 * stored answer. */
static bool
answer_again(struct client *c, const json_t *id, const char *token)
{
    auto_free char *text = store_answer_get(c->server->rpc->inst->store, c->uid, token);
    if (!text)
        return false;
    struct buf result = BUF_INIT;
    buf_adds(&result, text);
    write_result(hold(c, id_text(id), true), &result);
    return true;
}

void
rpc_serve(struct rpc *rpc, const struct caller *c)
{
    rpc->roles->caller = c;
    rpc->inst->state->asker =
        c ? (struct asker){.is_known = true, .admin = c->admin, .uid = c->uid}
          : (struct asker){0};
}

/* token: of a request that must not be carried out twice; otherwise NULL. */
static void
call_method(struct client *c, const struct method *m, const json_t *root, const char *token,
            size_t len)
{
    const json_t *id = json_object_get(root, "id");
    json_t *params = json_object_get(root, "params");
    struct caller caller = {.client = c,
                            .uid = c->uid,
                            .group = c->group,
                            .pid = c->pid,
                            .admin = c->admin,
                            .since_us = c->since_us,
                            .id = id,
                            .method = m->name,
                            .len = len,
                            .token = token,
                            .progress = json_is_true(json_object_get(root, "progress"))};
    auto_buf struct buf result = BUF_INIT;
    struct jsonw w;
    struct err e = {0};
    if (token && (answer_again(c, id, token) || works_take_up(c->server->rpc, &caller))) {
        file_uploads_drop_client(c->server->rpc->uploads,
                                 c); /* the parts of the file that preceded it */
        return;
    }
    jsonw_init(&w, &result);
    jsonw_bound(&w, budget_answer_max(c->server->rpc->budget, c->uid));
    rpc_serve(c->server->rpc, &caller);
    int rc = m->run(c->server->rpc, &caller, params, &w, &e);
    rpc_serve(c->server->rpc, NULL);
    if (m->changes)
        server_changed(c->server, c->group);
    if (rc == METHOD_LATER)
        return;
    if (rc == 0 && w.full)
        rc = budget_too_long(&w, &e);
    /* With a full disk, requests that need no disk are carried out but their answer is not
     * stored. */
    if (token && rc == 0 && !turn_disk_trouble(c->server->rpc->inst))
        store_answer_put(c->server->rpc->inst->store, c->uid, token, buf_str(&result), &e);
    struct reply *r = hold(c, id_text(id), m->changes && rc == 0);
    if (rc == 0)
        write_result(r, &result);
    else
        rpc_write_error(&r->text, r->id, err_exit_status(e.code), err_name(e.code), e.text);
}

/* A token belongs to one method: the answer of another method does not apply. A part of a jobs
 * file changes nothing, and what was kept of it was lost with the connection, so its token is
 * ignored. */
static void
call_once(struct client *c, const struct method *m, const json_t *root, const char *token,
          size_t len)
{
    const json_t *params = json_object_get(root, "params");
    bool changes = m->changes && !json_is_true(json_object_get(params, "more"));
    auto_free char *key = token && changes ? xasprintf("%s %s", m->name, token) : NULL;
    call_method(c, m, root, key, len);
}

void
rpc_handle(struct client *c, struct parsed *p, size_t len)
{
    json_t *root = p->root;
    if (p->e.code) {
        file_uploads_unread(c->server->rpc->uploads, c);
        struct reply *r = hold(c, id_text(NULL), false);
        rpc_write_error(&r->text, r->id, err_exit_status(p->e.code), err_name(p->e.code),
                        p->e.text);
        return;
    }
    if (!root) {
        answer_protocol_error(c, NULL, RPC_PARSE_ERROR, p->not_json);
        free(p->not_json);
        return;
    }
    const json_t *id = json_object_get(root, "id");
    const char *name = json_string_value(json_object_get(root, "method"));
    json_t *params = json_object_get(root, "params");
    const json_t *again = json_object_get(root, "token");
    const char *token = json_string_value(again);
    const struct method *m = name ? c->server->find(name) : NULL;
    pace_spent(c->server->rpc->pace, PACE_REST, UINT32_MAX);
    if (!json_is_object(root) || !name || (params && !json_is_object(params)))
        answer_protocol_error(
            c, id, RPC_BAD_REQUEST,
            "a request must be {\"id\", \"method\": name, \"params\": {...}}");
    else if (!m)
        answer_protocol_error(c, id, RPC_UNKNOWN_METHOD, "no such method");
    else if (again && (!token || strlen(token) < TOKEN_MIN || strlen(token) > TOKEN_MAX))
        answer_protocol_error(
            c, id, RPC_BAD_REQUEST,
            "\"token\" must be a string of 16 to 64 bytes, different for each request");
    else
        call_once(c, m, root, token, len);
    json_decref(root);
    pace_spent(c->server->rpc->pace, m ? m->name : "line", c->uid);
    if (len >= LARGE_BYTES)
        server_trim_soon(c->server);
}

void
ticket_keep(struct ticket *t, int64_t bytes)
{
    t->kept += bytes;
    server_keep_waiting(t->client->server, t->client->group, bytes);
}

struct ticket *
server_ticket(struct caller *c)
{
    struct ticket *t = xcalloc(1, sizeof *t);
    t->client = c->client;
    t->client->n_tickets++;
    t->id = id_text(c->id);
    ticket_keep(t, TICKET_BYTES + (int64_t)strlen(t->id));
    const struct method *m = c->client->server->find(c->method);
    t->changes = m && m->changes;
    t->progress = c->progress;
    return t;
}

void
server_say_progress(const struct ticket *t)
{
    struct buf line = BUF_INIT;
    if (!t->progress)
        return;
    buf_addf(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"progress\",\"params\":{\"id\":%s}}\n",
             t->id);
    rpc_client_send(t->client, &line);
}

void
server_answer(struct ticket *t, struct buf *result)
{
    write_result(hold(t->client, TAKE(t->id), t->changes), result);
    ticket_free(t);
}

void
server_refuse(struct ticket *t, const struct err *why)
{
    struct reply *r = hold(t->client, TAKE(t->id), false);
    rpc_write_error(&r->text, r->id, err_exit_status(why->code), err_name(why->code),
                    why->text);
    ticket_free(t);
}

void
ticket_free(struct ticket *t)
{
    if (!t)
        return;
    server_keep_waiting(t->client->server, t->client->group, -t->kept);
    t->client->n_tickets--;
    free(t->id);
    free(t);
}

bool
ticket_is_of(const struct ticket *t, const struct client *client)
{
    return t->client == client;
}
