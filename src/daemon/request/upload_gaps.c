/* See upload_gaps.h. Called by file_upload.c. A client has one gap at most: with a second file
 * it becomes one of whichever file, so that nothing is kept for each path that it names. */
#include "daemon/request/upload_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct gap {
    struct gap *next;
    const struct client *client;
    char *path;           /* owned; NULL: whichever */
    uint64_t first, last; /* requests of the connection: there may be others between */
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
    free(x->path);
    free(x);
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
          uint64_t before)
{
    struct gap **at = find(all, client), *x = *at;
    if (!x || !is_of(x, path) || x->last <= after || x->first >= before)
        return false;
    if (x->path && x->last < before)
        drop(at);
    else
        x->first = x->last;
    return true;
}

void
gaps_drop_client(struct gap **all, const struct client *client)
{
    struct gap **at = find(all, client);
    if (*at)
        drop(at);
}
