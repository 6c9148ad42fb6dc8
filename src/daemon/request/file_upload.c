/* Reads the lines of a jobs file as they arrive, and keeps them until the rest arrives; see
 * file_upload.h. Called by method_file.c and method_file_plan.c; rpc_client.c reports clients
 * that are gone. What is kept per user is bounded, like everything that is buffered for a
 * user (user_max_buffer_mib). */
#include "daemon/request/file_upload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "daemon/common/caller.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/card_names.h"
#include "daemon/gpu/model_file.h"
#include "daemon/request/admit.h"
#include "daemon/request/budget.h"
#include "daemon/request/file_sync.h"
#include "daemon/request/roles.h"
#include "daemon/request/upload_gaps.h"
#include "wire/request_read.h"

#define GLANCE 64 /* lines between looks at the clock */

struct upload {
    struct upload *next;
    const struct client *client;
    uid_t uid, group;
    char *path;
    int64_t bytes;
    struct sync kept;          /* only its lines are used */
    const struct sync *reader; /* request reading now, which holds the lines; NULL: none */
    uint64_t begun;            /* number of the request that declared to begin it; 0: none */
    uint64_t from;             /* number of the first request of what is kept */
};

/* A request waiting to be read, because another one of its connection is being read. Lines are
 * appended in the order of the requests. */
struct in_line {
    struct in_line *next;
    const struct client *client; /* NULL: gone */
    const struct sync *who;
};

struct uploads {
    const struct instance *inst;
    const struct roles *roles;
    const struct budget *budget;
    struct modelfile *models;
    struct upload *list;
    struct in_line *line;
    struct gap *gaps;
    uint64_t n_asked;
};

struct uploads *
uploads_new(const struct instance *inst, const struct roles *roles, const struct budget *budget,
            struct modelfile *models)
{
    struct uploads *u = xcalloc(1, sizeof *u);
    *u = (struct uploads){.inst = inst, .roles = roles, .budget = budget, .models = models};
    return u;
}

void
uploads_free(struct uploads *u)
{
    free(u); /* uploads were freed with their clients */
}

/* --- reading --- */

static int
read_line(const struct uploads *all, const struct sync *s, const json_t *j,
          const struct models *models, int default_oom, struct line *line, struct err *e)
{
    static const char *const ours[] = {"key", "line", "again", NULL};
    const char *key = json_string_value(json_object_get(j, "key"));
    line->number = (int32_t)json_integer_value(json_object_get(j, "line"));
    line->again = json_is_true(json_object_get(j, "again"));
    if (!key || !key[0] || strlen(key) >= sizeof((struct known *)NULL)->key)
        return err_set(e, ERR_USAGE, "a line needs a \"key\" of 1 to 63 bytes");
    line->key = xstrdup(key);
    if (reqjson_read(j, ours, models, &line->req, e) < 0 ||
        cardnames_resolve(all->inst, &line->req, e) < 0 ||
        budget_check_text(all->budget, s->uid, &line->req, e) < 0 ||
        roles_check_priority(all->roles, line->req.priority, e) < 0 ||
        roles_check_grace(all->roles, line->req.grace_ms, e) < 0)
        return err_prefix(e, "line %d", line->number);
    if (admit_time(s->admission, &line->req, e) < 0) {
        if (!s->fits)
            return err_prefix(e, "line %d", line->number);
        line->over = xstrdup(e->text);
    }
    if (line->req.array.n)
        return err_set(e, ERR_USAGE, "line %d: a line cannot be an array", line->number);
    if (s->fits && line->req.n_deps)
        return err_set(e, ERR_USAGE, "line %d: \"fit\" and \"after\" exclude each other",
                       line->number);
    /* The larger value wins, because a line can only ask for more than the whole run. */
    if (line->req.oom_retries < default_oom)
        line->req.oom_retries = default_oom;
    admit_unsaid(s->admission, &line->req);
    return 0;
}

static struct line *
add_line(struct sync *s)
{
    s->lines = xgrow(s->lines, s->n, &s->cap, sizeof *s->lines);
    struct line *line = &s->lines[s->n++];
    *line = (struct line){.key = NULL};
    request_init(&line->req);
    return line;
}

int
file_upload_check(struct uploads *all, const struct caller *c, struct sync *s,
                  const json_t *params, struct err *e)
{
    s->client = c->client;
    s->number = ++all->n_asked;
    s->is_first = json_is_true(json_object_get(params, "first"));
    s->has_more = json_is_true(json_object_get(params, "more"));
    const char *path = json_string_value(json_object_get(params, "path"));
    if (!path || path[0] != '/')
        return err_set(e, ERR_USAGE, "\"path\" must be an absolute path");
    if (strlen(path) >= PATH_MAX)
        return err_set(e, ERR_USAGE, "\"path\" is %zu bytes long; the maximum is %d",
                       strlen(path), PATH_MAX - 1);
    s->path = path;
    if (!json_is_array(json_object_get(params, "jobs")))
        return err_set(e, ERR_USAGE, "\"jobs\" must be a list");
    return 0;
}

/* Appends the request's lines. */
static int
read_lines(struct uploads *all, struct sync *s, const json_t *params, int64_t until_us,
           struct err *e)
{
    const json_t *list = json_object_get(params, "jobs");
    const struct models *models = modelfile_current(all->models, &all->inst->config);
    const json_t *oom = json_object_get(params, "oom_retries");
    int default_oom = oom ? (int)json_integer_value(oom) : -1;
    size_t n = json_array_size(list);
    while (s->n_read < n) {
        const json_t *j = json_array_get(list, s->n_read++);
        struct line *line = add_line(s);
        if (read_line(all, s, j, models, default_oom, line, e) < 0)
            return -1;
        if (s->n_read % GLANCE == 0 && clock_boot_us() >= until_us)
            return WORK_MORE;
    }
    return WORK_DONE;
}

/* --- keeping --- */

static struct upload **
find(struct uploads *all, const struct client *client)
{
    struct upload **at = &all->list;
    while (*at && (*at)->client != client)
        at = &(*at)->next;
    return at;
}

static void
drop(struct upload **at)
{
    struct upload *u = *at;
    if (!u)
        return;
    *at = u->next;
    free(u->path);
    file_sync_free(&u->kept);
    free(u);
}

void
file_uploads_drop_client(struct uploads *all, const struct client *client)
{
    drop(find(all, client));
    gaps_drop_client(&all->gaps, client);
    for (struct in_line *x = all->line; x; x = x->next)
        if (x->client == client)
            x->client = NULL;
}

void
file_uploads_unread(struct uploads *all, const struct client *client)
{
    gaps_note(&all->gaps, client, NULL, ++all->n_asked);
}

/* --- order of concurrent requests --- */

static void
stand_in_line(struct uploads *all, const struct client *client, const struct sync *s)
{
    struct in_line **at = &all->line;
    while (*at && (*at)->who != s)
        at = &(*at)->next;
    if (*at)
        return;
    *at = xcalloc(1, sizeof **at);
    **at = (struct in_line){.client = client, .who = s};
}

static void
leave_line(struct uploads *all, const struct sync *s)
{
    struct in_line **at = &all->line;
    while (*at && (*at)->who != s)
        at = &(*at)->next;
    struct in_line *x = *at;
    if (!x)
        return;
    *at = x->next;
    free(x);
}

static bool
is_first_in_line(const struct uploads *all, const struct client *client, const struct sync *s)
{
    const struct in_line *x = all->line;
    while (x && x->client != client)
        x = x->next;
    return !x || x->who == s;
}

static int64_t
bytes_of(const struct sync *s, size_t from)
{
    int64_t n = 0;
    for (size_t i = from; i < s->n; i++)
        n += (int64_t)(sizeof s->lines[i] + strlen(s->lines[i].key)) +
             request_text_bytes(&s->lines[i].req);
    return n;
}

static int
check_room(const struct uploads *all, const struct upload *own, struct err *e)
{
    int64_t most = all->inst->config.user_max_buffer_mib << 20, bytes = 0;
    if (!budget_binds(all->budget, own->uid))
        return 0;
    for (const struct upload *u = all->list; u; u = u->next)
        bytes += u->group == own->group ? u->bytes : 0;
    if (bytes <= most)
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "%s has more than %lld MiB of lines (user_max_buffer_mib); split it into several files",
        own->path, (long long)(most >> 20));
}

static struct upload *
begin(struct upload **at, const struct caller *c, const struct sync *s)
{
    struct upload *u = xcalloc(1, sizeof *u);
    u->client = c->client;
    u->uid = c->uid;
    u->group = c->group;
    u->path = xstrdup(s->path);
    u->begun = s->is_first ? s->number : 0;
    u->from = s->number;
    *at = u; /* appended to the list */
    return u;
}

/* Gives the request what is kept of its file while it reads. WORK_MORE: another request of its
 * connection is being read, or is before it; -1 with e: lines of its file are missing. */
static int
take(struct uploads *all, const struct caller *c, struct sync *s, struct err *e)
{
    struct upload **at = find(all, c->client), *u = *at;
    if ((u && u->reader) || !is_first_in_line(all, c->client, s)) {
        stand_in_line(all, c->client, s);
        return WORK_MORE;
    }
    leave_line(all, s);
    bool is_other = u && strcmp(s->path, u->path) != 0;
    if (is_other || (u && s->is_first)) { /* never finished */
        if (is_other)
            gaps_note(&all->gaps, c->client, u->path, s->number);
        drop(at);
        at = find(all, c->client);
        u = NULL;
    }
    if (!u)
        u = begin(at, c, s);
    u->reader = s;
    s->lines = u->kept.lines;
    s->n = s->n_kept = u->kept.n;
    s->cap = u->kept.cap;
    u->kept = (struct sync){.n = 0};
    s->reads = true;
    if (!s->has_more && gaps_take(&all->gaps, s->client, s->path, u->begun, u->from, s->number))
        return err_set(e, ERR_REFUSED,
                       "%s: a part of it was refused, or could not be read; send all of it "
                       "again",
                       s->path);
    return WORK_DONE;
}

/* The upload that this request is reading; NULL: none, or its client is gone. */
static struct upload **
find_own(struct uploads *all, const struct sync *s)
{
    struct upload **at = s->reads ? find(all, s->client) : NULL;
    return at && *at && (*at)->reader == s ? at : NULL;
}

int
file_upload_read(struct uploads *all, const struct caller *c, struct sync *s,
                 const json_t *params, int64_t until_us, struct err *e)
{
    int rc = s->reads ? WORK_DONE : take(all, c, s, e);
    return rc == WORK_DONE ? read_lines(all, s, params, until_us, e) : rc;
}

static int
keep(struct uploads *all, struct sync *s, struct err *e)
{
    struct upload **at = find_own(all, s), *u = at ? *at : NULL;
    if (u)
        u->bytes += bytes_of(s, s->n_kept);
    if (u && check_room(all, u, e) < 0)
        return -1;
    s->is_kept_for_rest = true;
    if (!u)
        return 0;
    u->reader = NULL;
    u->kept.lines = s->lines;
    u->kept.n = s->n;
    u->kept.cap = s->cap;
    s->lines = NULL;
    s->n = s->cap = 0;
    s->reads = false;
    return 0;
}

int
file_upload_part(struct uploads *all, const struct caller *c, struct sync *s, int64_t until_us,
                 struct jsonw *out, struct err *e)
{
    int rc = file_upload_read(all, c, s, s->params, until_us, e);
    if (rc != WORK_DONE)
        return rc;
    if (keep(all, s, e) < 0)
        return -1;
    jsonw_object(out);
    jsonw_end_object(out);
    return WORK_DONE;
}

void
file_upload_leave(struct uploads *all, const struct sync *s)
{
    struct upload **at = find_own(all, s);
    leave_line(all, s);
    if (at)
        drop(at);
    if (s->has_more && !s->is_kept_for_rest)
        gaps_note(&all->gaps, s->client, s->path, s->number);
}
