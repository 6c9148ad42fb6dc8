/* See file_words.h. */
#include "file_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/common/caller.h"
#include "daemon/request/file_apply.h"
#include "store/store.h"

#define PATH      "/home/alice/jobs"
#define SECOND_US INT64_C(1000000)

#define MARKS "<#:*^@/+%-!=~&"

/* The text after a mark, up to the next mark. */
static char *
text_behind(const char *mark)
{
    return xstrndup(mark + 1, strcspn(mark + 1, MARKS));
}

static void
read_mark(struct sync *s, struct line *line, const char *mark)
{
    struct request *r = &line->req;
    auto_free char *text = text_behind(mark);
    int value = atoi(text);
    switch (*mark) {
    case '<': /* runs after */
        r->deps = xrealloc(r->deps, ((size_t)r->n_deps + 1) * sizeof *r->deps);
        r->deps[r->n_deps++] = (struct dep){.task = -1, .name = TAKE(text)};
        break;
    case '#':
        r->demand.gpus = value;
        break;
    case ':':
        r->demand.vram_mib = value;
        break;
    case '*':
        r->priority = value;
        break;
    case '^': /* seconds */
        r->limit_ms = value * 1000;
        break;
    case '@':
        free(r->name);
        r->name = TAKE(text);
        break;
    case '/':
        r->chdir = xasprintf("/%s", text);
        break;
    case '+': /* seconds from now */
        r->begin_us = s->state->around->wall_us(s->state->around->arg) + value * SECOND_US;
        r->begin_said = xasprintf("+%ds", value);
        break;
    case '%':
        r->hold = true;
        break;
    case '-':
        r->cancel = true;
        break;
    case '!':
        line->again = true;
        break;
    case '~':
        r->singleton = true;
        break;
    case '&':
        r->vram_auto = true;
        break;
    default:
        r->unique = true;
    }
}

/* Parses one line: its key, from which its command is made and which is also its name unless
 * another is given, and after that its marks. */
static void
read_word(struct sync *s, const char *word)
{
    struct line *line = &s->lines[s->n++];
    size_t len = strcspn(word, MARKS);
    *line = (struct line){.key = xstrndup(word, len), .number = (int32_t)s->n};
    request_init(&line->req);
    line->req.name = xstrdup(line->key);
    line->req.command = xasprintf("run %s", line->key);
    for (const char *mark = word + len; *mark; mark += 1 + strcspn(mark + 1, MARKS))
        read_mark(s, line, mark);
}

void
file_begin(struct door *d, struct sync *s, const char *words)
{
    auto_free char *copy = xstrdup(words);
    char *rest = copy;
    struct err e = {0};
    s->admission = &d->a;
    s->state = &d->w->s;
    s->store = d->w->store;
    s->uid = ALICE;
    s->path = PATH;
    s->context = (struct reqcontext){.cwd = "/home/alice", .user = "alice"};
    s->lines = xcalloc(strlen(words) + 1, sizeof *s->lines);
    for (const char *word; (word = strsep(&rest, " "));)
        if (word[0])
            read_word(s, word);
    for (size_t i = 0; i < s->n; i++) {
        struct line *line = &s->lines[i];
        admit_unsaid(&d->a, &line->req);
        if (admit_time(&d->a, &line->req, &e) < 0)
            line->over = xstrdup(e.text);
    }
    assert_int_equal(store_file_id(s->store, ALICE, PATH, &s->file, &e), 0);
    if (!s->first_job)
        s->first_job = store_peek_job_id(s->store);
}

int
file_go_on(struct sync *s, int64_t until_us)
{
    struct err e = {0};
    int rc;
    s->n_changed = 0;
    for (;; s->phase++, s->at = 0) {
        switch (s->phase) {
        case 0:
            rc = file_load_known(s, until_us, &e);
            break;
        case 1:
            rc = file_resolve_deps(s, until_us, &e);
            for (size_t i = 0; i < s->n; i++)
                s->n_new_lines += file_is_new(s, &s->lines[i]);
            s->n_more = s->fits ? 0 : s->n_new_lines;
            break;
        case 2:
            rc = file_apply_removed(s, until_us);
            break;
        case 3:
            rc = file_apply_lines(s, until_us);
            break;
        case 4:
            rc = file_apply_order(s, until_us);
            break;
        default:
            return WORK_DONE;
        }
        if (rc < 0)
            fail_msg("%s", e.text);
        if (rc == WORK_MORE)
            return WORK_MORE;
    }
}

struct answer
file_end(struct sync *s)
{
    struct answer a = {.n_new = s->n_new, .n_updated = s->n_updated, .n_removed = s->removed.n};
    assert_true(s->removed.n <= sizeof a.removed / sizeof *a.removed);
    if (s->removed.n)
        memcpy(a.removed, s->removed.v, s->removed.n * sizeof *a.removed);
    for (size_t i = 0; i < s->n; i++) {
        const struct line *line = &s->lines[i];
        size_t at = strlen(a.said);
        assert_true(at + 100 < sizeof a.said);
        if (line->is_left)
            snprintf(a.said + at, sizeof a.said - at, "%s%s left", i ? ", " : "", line->key);
        else
            snprintf(a.said + at, sizeof a.said - at, "%s%s %u %s", i ? ", " : "", line->key,
                     line->job, job_state_name(line->state));
        if (!line->is_left && line->exit_status >= 0)
            snprintf(a.said + strlen(a.said), sizeof a.said - strlen(a.said), " %d",
                     line->exit_status);
        if (!line->is_left && line->refused)
            snprintf(a.said + strlen(a.said), sizeof a.said - strlen(a.said), " (%.40s)",
                     line->refused);
    }
    file_sync_free(s);
    return a;
}

struct answer
sync_file(struct door *d, const char *words)
{
    struct sync s = {.n = 0};
    file_begin(d, &s, words);
    assert_int_equal(file_go_on(&s, INT64_MAX), WORK_DONE);
    world_turn_without_plan(d->w);
    return file_end(&s);
}

struct job *
job_of_line(const struct door *d, const char *key)
{
    size_t n;
    struct job *found = NULL;
    auto_free struct job **jobs = queue_list_by_id(d->w->s.queue, QUEUE_ALL, &n);
    for (size_t i = 0; i < n; i++) {
        if (jobs[i]->key && strcmp(jobs[i]->key, key) == 0) {
            assert_null(found);
            found = jobs[i];
        }
    }
    return found;
}

void
line_ends(struct door *d, uint32_t id, int code)
{
    world_runs(d->w, id);
    world_ends(d->w, id, code);
    world_sample(d->w);
    world_turn_without_plan(d->w);
}

const char *
waiting_lines(const struct door *d)
{
    static char text[256];
    size_t n;
    auto_free struct job **jobs =
        queue_list_by_id(d->w->s.queue, 1U << JOB_PENDING | 1U << JOB_HELD, &n);
    text[0] = '\0';
    for (uint64_t from = 0;;) {
        const struct job *next = NULL;
        for (size_t i = 0; i < n; i++)
            if (jobs[i]->order > from && (!next || jobs[i]->order < next->order))
                next = jobs[i];
        if (!next)
            return text;
        from = next->order;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? " " : "",
                 next->key);
    }
}
