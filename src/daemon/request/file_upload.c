/* Lines that wait for the rest of their file: see file_upload.h. Called by method_file.c and
 * method_file_plan.c; rpc_client.c says when a client has gone. What is kept of one user is
 * bounded, like all that waits of one user (user_max_buffer_mib). */
#include "daemon/request/file_upload.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/common/caller.h"
#include "daemon/common/daemon.h"
#include "daemon/request/budget.h"
#include "daemon/request/file_sync.h"

struct upload {
    struct upload *next;
    const struct client *client;
    uid_t uid, group;
    char *path;
    int64_t bytes;
    struct sync kept; /* its lines alone */
};

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
    if (!budget_binds(d, own->uid))
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
keep(struct upload **at, struct sync *s, size_t from, struct err *e)
{
    struct daemon *d = s->daemon;
    if (!*at) {
        struct upload *u = xcalloc(1, sizeof *u);
        u->client = s->caller->client;
        u->uid = s->caller->uid;
        u->group = s->caller->group;
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
file_upload_take(struct sync *s, const json_t *params, struct err *e)
{
    struct upload **at = find(s->daemon, s->caller->client), *u = *at;
    const char *path = json_string_value(json_object_get(params, "path"));
    if (u && (!path || strcmp(path, u->path) != 0)) {
        drop(at); /* it was never finished */
        u = NULL;
    }
    if (u) {
        s->lines = u->kept.lines;
        s->n = u->kept.n;
        s->cap = u->kept.cap;
        u->kept = (struct sync){.daemon = NULL};
    }
    size_t from = s->n;
    int rc = file_read_lines(s, params, e);
    if (rc == 0 && json_is_true(json_object_get(params, "more")))
        return keep(at, s, from, e);
    if (u)
        drop(at);
    return rc;
}
