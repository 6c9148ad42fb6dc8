/* Dependencies of a jobs file: see file_deps.h. Called by method_file.c before it changes
 * anything, because new lines have no ids yet that others could refer to. */
#include "daemon/request/file_deps.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "core/queue/queue.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/state.h"

/* A name and a line that has it. */
struct named {
    const char *name;
    int32_t line;
    UT_hash_handle hh;
};

static struct named *
find(struct named *table, const char *name)
{
    struct named *x;
    HASH_FIND_STR(table, name, x);
    return x;
}

/* newest: if the name is already there, it means the later line from now on. */
static void
enter(struct named **table, const char *name, int32_t line, bool newest)
{
    struct named *x = find(*table, name);
    if (x) {
        x->line = newest ? line : x->line;
        return;
    }
    x = xcalloc(1, sizeof *x);
    x->name = name;
    x->line = line;
    HASH_ADD_KEYPTR(hh, *table, x->name, strlen(x->name), x);
}

static void
clear(struct named **table)
{
    struct named *x, *next;
    HASH_ITER(hh, *table, x, next)
    {
        HASH_DEL(*table, x);
        free(x);
    }
}

/* Links each unlinked name in this line that the table has. */
static void
link_line(struct named *table, struct file_dep_line *line)
{
    for (int i = 0; i < line->req->n_deps; i++) {
        const struct dep *dep = &line->req->deps[i];
        const struct named *x =
            dep->name && !dep->job && line->links[i] < 0 ? find(table, dep->name) : NULL;
        if (x)
            line->links[i] = x->line;
    }
}

/* A name means the nearest earlier line with it, else the first later one. */
static void
link_all(struct file_dep_line *lines, size_t n)
{
    struct named *before = NULL, *first = NULL;
    for (size_t i = 0; i < n; i++) {
        if (lines[i].links)
            link_line(before, &lines[i]);
        if (!lines[i].req->name)
            continue;
        enter(&before, lines[i].req->name, (int32_t)i, true);
        enter(&first, lines[i].req->name, (int32_t)i, false);
    }
    for (size_t i = 0; i < n; i++)
        if (lines[i].links)
            link_line(first, &lines[i]);
    clear(&before);
    clear(&first);
}

/* True if the line's existing job had this dependency on a job that has since been pruned: it
 * was met. */
static bool
is_met(struct state *s, const struct file_dep_line *line, int i)
{
    const struct job *job = line->job ? queue_get(s->queue, line->job) : NULL;
    struct dep *dep = &line->req->deps[i];
    const struct dep *own = job && i < job->req.n_deps ? &job->req.deps[i] : NULL;
    if (!own || own->type != dep->type || own->task != dep->task ||
        (dep->job && dep->job != own->job) || !depend_is_gone(s, own->job))
        return false;
    if (dep->name && own->name && strcmp(dep->name, own->name) != 0)
        return false;
    dep->job = own->job;
    return true;
}

/* Resolves dependencies outside the file to jobs. */
static int
resolve_rest(struct state *s, uid_t uid, struct file_dep_line *line, struct err *e)
{
    for (int i = 0; i < line->req->n_deps; i++) {
        struct request one = {.deps = &line->req->deps[i], .n_deps = 1};
        if (line->links[i] < 0 && depend_resolve(s, uid, &one, e) < 0 && !is_met(s, line, i))
            return err_prefix(e, "line %d", line->number);
    }
    return 0;
}

/* A singleton waits for all lines of its name that were submitted earlier. To keep that
 * linear, line i has two nodes: i for itself, and n + i for itself and the earlier lines of
 * its name. */
struct graph {
    const struct file_dep_line *lines;
    size_t n;
    int32_t *earlier; /* previous line of the same name, -1: none; or NULL */
};

static bool
is_named(const struct file_dep_line *line)
{
    return line->req->name && !line->has_ended;
}

static int
compare_submitted(const void *va, const void *vb)
{
    const struct file_dep_line *const *a = va, *const *b = vb;
    uint32_t x = (*a)->job ? (*a)->job : UINT32_MAX, y = (*b)->job ? (*b)->job : UINT32_MAX;
    if (x != y)
        return x < y ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

static void
find_earlier(struct graph *g)
{
    struct named *before = NULL;
    auto_free const struct file_dep_line **list = xcalloc(g->n + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        g->earlier[i] = -1;
        if (is_named(&g->lines[i]))
            list[n++] = &g->lines[i];
    }
    qsort(list, n, sizeof *list, compare_submitted);
    for (size_t i = 0; i < n; i++) {
        int32_t line = (int32_t)(list[i] - g->lines);
        const struct named *x = find(before, list[i]->req->name);
        g->earlier[line] = x ? x->line : -1;
        enter(&before, list[i]->req->name, line, true);
    }
    clear(&before);
}

static bool
has_singletons(const struct graph *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->lines[i].req->singleton && is_named(&g->lines[i]))
            return true;
    return false;
}

/* Depth-first walk from one line along its links. seen: 0: new, 1: on the current path, 2:
 * done. The path is an explicit stack, because a file may be one long chain. */
struct step {
    int32_t node;
    int32_t next; /* index of its next link */
};

static int32_t
line_of(const struct graph *g, int32_t node)
{
    return node < (int32_t)g->n ? node : node - (int32_t)g->n;
}

/* Links of a node n + line: the line itself, and the node of the previous line. */
static int32_t
next_earlier(const struct graph *g, int32_t line, int32_t *at)
{
    switch ((*at)++) {
    case 0:
        return line;
    case 1:
        return g->earlier[line] < 0 ? -1 : (int32_t)g->n + g->earlier[line];
    default:
        return -1;
    }
}

static int32_t
next_link(const struct graph *g, int32_t node, int32_t *at)
{
    const struct file_dep_line *line = &g->lines[line_of(g, node)];
    if (node != line_of(g, node))
        return next_earlier(g, line_of(g, node), at);
    while (line->links && *at < line->req->n_deps) {
        int32_t to = line->links[(*at)++];
        if (to >= 0)
            return to;
    }
    if (*at > line->req->n_deps || !g->earlier || !line->req->singleton || !is_named(line))
        return -1;
    *at = line->req->n_deps + 1;
    return g->earlier[node] < 0 ? -1 : (int32_t)g->n + g->earlier[node];
}

/* Reports a circle: the path leads from `to` to its last line `from`, which links back
 * to `to`. */
static int
refuse_circle(const struct graph *g, const struct step *way, size_t depth, int32_t to,
              struct err *e)
{
    bool single = false;
    size_t last = depth - 1;
    for (size_t i = depth; i-- > 0 && way[i].node != to;)
        single |= way[i].node >= (int32_t)g->n;
    while (way[last].node >= (int32_t)g->n)
        last--;
    int32_t from = way[last].node;
    to = line_of(g, to);
    if (from == to)
        return err_set(e, ERR_REFUSED, "line %d: it would wait for itself",
                       g->lines[from].number);
    return err_set(
        e, ERR_REFUSED,
        "line %d: it waits for line %d, which waits for this one: neither could start%s",
        g->lines[from].number, g->lines[to].number,
        single ? " (singletons of one name run in the order in which they were submitted)"
               : "");
}

static int
walk(const struct graph *g, int32_t from, uint8_t *seen, struct step *way, int32_t **done,
     struct err *e)
{
    size_t depth = 1;
    way[0] = (struct step){from, 0};
    seen[from] = 1;
    while (depth > 0) {
        struct step *at = &way[depth - 1];
        int32_t to = next_link(g, at->node, &at->next);
        if (to < 0) {
            seen[at->node] = 2;
            if (at->node < (int32_t)g->n)
                *(*done)++ = at->node;
            depth--;
        } else if (seen[to] == 1) {
            return refuse_circle(g, way, depth, to, e);
        } else if (seen[to] == 0) {
            seen[to] = 1;
            way[depth++] = (struct step){to, 0};
        }
    }
    return 0;
}

int
file_deps_put_in_order(const struct file_dep_line *lines, size_t n, int32_t **order,
                       struct err *e)
{
    auto_free int32_t *earlier = xmalloc((n + 1) * sizeof *earlier);
    struct graph g = {.lines = lines, .n = n};
    if (has_singletons(&g)) {
        g.earlier = earlier;
        find_earlier(&g);
    }
    auto_free uint8_t *seen = xcalloc(2 * n + 1, 1);
    auto_free struct step *way = xcalloc(2 * n + 1, sizeof *way);
    auto_free int32_t *all = xcalloc(n + 1, sizeof *all);
    int32_t *done = all;
    for (size_t i = 0; i < n; i++)
        if (!seen[i] && walk(&g, (int32_t)i, seen, way, &done, e) < 0)
            return -1;
    *order = TAKE(all);
    return 0;
}

bool
file_deps_link(struct file_dep_line *lines, size_t n)
{
    bool some = false;
    for (size_t i = 0; i < n; i++) {
        int32_t n_deps = lines[i].req->n_deps;
        if (!n_deps)
            continue;
        lines[i].links = xmalloc((size_t)n_deps * sizeof(int32_t));
        for (int k = 0; k < n_deps; k++)
            lines[i].links[k] = -1;
        some = true;
    }
    if (some)
        link_all(lines, n);
    return some;
}

int
file_deps_resolve(struct state *s, uid_t uid, struct file_dep_line *line, struct err *e)
{
    return line->links && !line->has_ended ? resolve_rest(s, uid, line, e) : 0;
}
