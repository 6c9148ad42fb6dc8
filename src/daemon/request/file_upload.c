/* Lines of a jobs file as they come: read, and kept for the rest of their file; see
 * file_upload.h. Called by method_file.c and method_file_plan.c; rpc_client.c says when a
 * client has gone. What is kept of one user is bounded, like all that waits of one user
 * (user_max_buffer_mib). */
#include "daemon/request/file_upload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/common/caller.h"
#include "daemon/common/daemon.h"
#include "daemon/gpu/card_names.h"
#include "daemon/gpu/model_file.h"
#include "daemon/request/admit.h"
#include "daemon/request/budget.h"
#include "daemon/request/file_sync.h"
#include "daemon/request/roles.h"
#include "wire/request_read.h"

struct upload {
    struct upload *next;
    const struct client *client;
    uid_t uid, group;
    char *path;
    int64_t bytes;
    struct sync kept; /* its lines alone */
};

/* --- reading --- */

static int
read_line(const struct daemon *d, const struct sync *s, const json_t *j,
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
        cardnames_resolve(d, &line->req, e) < 0 ||
        budget_check_text(d->budget, s->uid, &line->req, e) < 0 ||
        roles_check_priority(d, line->req.priority, e) < 0 ||
        roles_check_grace(d, line->req.grace_ms, e) < 0)
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
    /* The larger of the two, as a line can only ask for more than the run does. */
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

/* The request's lines, behind those that are there. */
static int
read_lines(struct daemon *d, struct sync *s, const json_t *params, struct err *e)
{
    const json_t *list = json_object_get(params, "jobs"), *j;
    const struct models *models = modelfile_current(d);
    const json_t *oom = json_object_get(params, "oom_retries");
    int default_oom = oom ? (int)json_integer_value(oom) : -1;
    size_t i;
    s->path = json_string_value(json_object_get(params, "path"));
    if (!s->path || s->path[0] != '/')
        return err_set(e, ERR_USAGE, "\"path\" must be an absolute path");
    if (strlen(s->path) >= PATH_MAX)
        return err_set(e, ERR_USAGE, "\"path\" is %zu bytes long; the maximum is %d",
                       strlen(s->path), PATH_MAX - 1);
    if (!json_is_array(list))
        return err_set(e, ERR_USAGE, "\"jobs\" must be a list");
    json_array_foreach(list, i, j)
    {
        struct line *line = add_line(s);
        if (read_line(d, s, j, models, default_oom, line, e) < 0)
            return -1;
    }
    return 0;
}

/* --- keeping --- */

static struct upload **
find(struct daemon *d, const struct client *client)
{
    struct upload **at = &d->uploads;
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
file_uploads_drop_client(struct daemon *d, const struct client *client)
{
    drop(find(d, client));
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
check_room(const struct daemon *d, const struct upload *own, struct err *e)
{
    int64_t most = d->config.user_max_buffer_mib << 20, bytes = 0;
    if (!budget_binds(d->budget, own->uid))
        return 0;
    for (const struct upload *u = d->uploads; u; u = u->next)
        bytes += u->group == own->group ? u->bytes : 0;
    if (bytes <= most)
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "%s has more than %lld MiB of lines (user_max_buffer_mib); split it into several files",
        own->path, (long long)(most >> 20));
}

/* The lines of *s are kept from now on. */
static int
keep(struct daemon *d, const struct caller *c, struct upload **at, struct sync *s, size_t from,
     struct err *e)
{
    if (!*at) {
        struct upload *u = xcalloc(1, sizeof *u);
        u->client = c->client;
        u->uid = c->uid;
        u->group = c->group;
        u->path = xstrdup(s->path);
        *at = u; /* the last of the list */
    }
    struct upload *u = *at;
    u->bytes += bytes_of(s, from);
    u->kept.lines = s->lines;
    u->kept.n = s->n;
    u->kept.cap = s->cap;
    s->lines = NULL;
    s->n = s->cap = 0;
    if (check_room(d, u, e) == 0)
        return 1;
    drop(at);
    return -1;
}

int
file_upload_take(struct daemon *d, const struct caller *c, struct sync *s, const json_t *params,
                 struct err *e)
{
    struct upload **at = find(d, c->client), *u = *at;
    const char *path = json_string_value(json_object_get(params, "path"));
    if (u && (!path || strcmp(path, u->path) != 0)) {
        drop(at); /* it was never finished */
        u = NULL;
    }
    if (u) {
        s->lines = u->kept.lines;
        s->n = u->kept.n;
        s->cap = u->kept.cap;
        u->kept = (struct sync){.n = 0};
    }
    size_t from = s->n;
    int rc = read_lines(d, s, params, e);
    if (rc == 0 && json_is_true(json_object_get(params, "more")))
        return keep(d, c, at, s, from, e);
    if (u)
        drop(at);
    return rc;
}
