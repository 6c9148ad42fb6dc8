/* The login and logout forms: see web_login.h. A session is a cookie that scripts cannot read
 * and other sites' requests do not carry. */
#include "web/web_login.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "web/http/gate.h"
#include "web/http/reply.h"
#include "web/pages/web_page.h"

#define BODY_MAX   4096
#define SESSION_S  (30 * 24 * 3600)
#define FORM_BYTES 1024

struct login {
    struct MHD_Connection *connection;
    struct MHD_PostProcessor *form;
    bool leaves;
    size_t taken;
    struct buf token, next;
    char *cookie;
};

static enum MHD_Result
on_field(void *cls, enum MHD_ValueKind kind, const char *key, const char *filename,
         const char *content_type, const char *encoding, const char *data, uint64_t offset,
         size_t n)
{
    struct login *l = cls;

    (void)kind;
    (void)filename;
    (void)content_type;
    (void)encoding;
    (void)offset;
    if (!key)
        return MHD_YES;
    if (strcmp(key, "token") == 0)
        buf_add(&l->token, data, n);
    else if (strcmp(key, "next") == 0)
        buf_add(&l->next, data, n);
    return MHD_YES;
}

static const char *
header(const struct login *l, const char *name)
{
    return MHD_lookup_connection_value(l->connection, MHD_HEADER_KIND, name);
}

/* Our own page sends only this type. A parser for multipart bodies accepts much more than a
 * token. */
static bool
is_our_encoding(const char *type)
{
    const size_t n = strlen(MHD_HTTP_POST_ENCODING_FORM_URLENCODED);

    return type && strncasecmp(type, MHD_HTTP_POST_ENCODING_FORM_URLENCODED, n) == 0;
}

struct login *
login_new(struct MHD_Connection *connection, bool leaves)
{
    struct login *l = xcalloc(1, sizeof *l);

    l->connection = connection;
    l->leaves = leaves;
    /* Bodies of other types contain no token. */
    if (is_our_encoding(header(l, MHD_HTTP_HEADER_CONTENT_TYPE)))
        l->form = MHD_create_post_processor(connection, FORM_BYTES, on_field, l);
    return l;
}

void
login_free(struct login *l)
{
    if (!l)
        return;
    if (l->form)
        MHD_destroy_post_processor(l->form);
    buf_free(&l->token);
    buf_free(&l->next);
    free(l->cookie);
    free(l);
}

void
login_take(struct login *l, const char *bytes, size_t n)
{
    l->taken += n;
    if (l->form && l->taken <= BODY_MAX)
        MHD_post_process(l->form, bytes, n);
}

const char *
login_cookie(const struct login *l)
{
    return l->cookie;
}

/* Behind a proxy that uses TLS, the cookie is restricted to TLS. */
static char *
make_cookie(const struct login *l, const char *value, int seconds)
{
    const char *scheme = header(l, "X-Forwarded-Proto");

    return xasprintf(GATE_COOKIE "=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s", value,
                     seconds, scheme && strcmp(scheme, "https") == 0 ? "; Secure" : "");
}

static void
lead_to(const char *path, struct reply **out)
{
    struct buf where = BUF_INIT;

    buf_adds(&where, path);
    *out = reply_new(303, REPLY_TEXT, &where);
}

void
login_finish(struct login *l, const struct gate *g, const struct page_context *page,
             struct reply **out)
{
    const char *next;

    if (l->form)
        MHD_destroy_post_processor(l->form); /* delivers buffered data */
    l->form = NULL;
    next = gate_next_path(buf_str(&l->next));
    if (l->leaves) {
        l->cookie = make_cookie(l, "", 0);
        lead_to("/login", out);
        return;
    }
    if (!gate_token_is_right(g, buf_str(&l->token))) {
        *out = page_login(page, true, next);
        return;
    }
    l->cookie = make_cookie(l, g->session, SESSION_S);
    lead_to(next, out);
}
