/* See upload_gaps.h. Called by file_upload.c. A client has at most one gap: with a second file
 * it becomes a gap of an unknown file, so that memory does not grow with each path that the
 * client names. For such a gap the last few files refused because of it are remembered: what
 * is sent of them afterwards is not affected. */
#include "daemon/request/upload_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define TOLD_MAX 4

struct told {
    char *path; /* owned; NULL: none */
    uint64_t at;
};

struct gap {
    struct gap *next;
    const struct client *client;
    char *path;           /* owned; NULL: unknown file */
    uint64_t first, last; /* requests of the connection; there may be others between */
    struct told told[TOLD_MAX];
    size_t n_told; /* total; the oldest are overwritten */
};

static struct gap **
find(struct gap **all, const struct client *client)
{
    while (*all && (*all)->client != client)
        all = &(*all)->next;
    return all;
}

static void
drop(struct gap **at)
{
    struct gap *x = *at;
    *at = x->next;
    for (size_t i = 0; i < TOLD_MAX; i++)
        free(x->told[i].path);
    free(x->path);
    free(x);
}

static void
note_told(struct gap *x, const char *path, uint64_t at)
{
    struct told *t = &x->told[x->n_told++ % TOLD_MAX];
    free(t->path);
    *t = (struct told){.path = xstrdup(path), .at = at};
}

/* True if this file was refused for everything that is missing, and has been sent
 * again since. */
static bool
is_anew(const struct gap *x, const char *path, uint64_t from)
{
    for (size_t i = 0; i < TOLD_MAX; i++) {
        const struct told *t = &x->told[i];
        if (t->path && strcmp(t->path, path) == 0 && t->at > x->last && t->at < from)
            return true;
    }
    return false;
}

static bool
is_of(const struct gap *x, const char *path)
{
    return !x->path || strcmp(x->path, path) == 0;
}

void
gaps_note(struct gap **all, const struct client *client, const char *path, uint64_t number)
{
    struct gap **at = find(all, client), *x = *at;
    if (!x) {
        x = *at = xcalloc(1, sizeof *x);
        x->client = client;
        x->path = path ? xstrdup(path) : NULL;
        x->first = number;
    } else if (!path || !is_of(x, path)) {
        free(x->path);
        x->path = NULL;
    }
    if (x->last < number)
        x->last = number;
}

bool
gaps_take(struct gap **all, const struct client *client, const char *path, uint64_t after,
          uint64_t from, uint64_t before)
{
    struct gap **at = find(all, client), *x = *at;
    if (!x || !is_of(x, path) || x->last <= after || x->first >= before ||
        is_anew(x, path, from))
        return false;
    if (x->path && x->last < before) {
        drop(at);
    } else {
        x->first = x->last;
        note_told(x, path, before);
    }
    return true;
}

void
gaps_drop_client(struct gap **all, const struct client *client)
{
    struct gap **at = find(all, client);
    if (*at)
        drop(at);
}
