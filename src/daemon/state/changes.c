/* See changes.h. */
#include "daemon/state/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct change *
changes_add(struct changes *c, enum change_type type)
{
    c->list = xgrow(c->list, c->n, &c->cap, sizeof *c->list);
    struct change *x = &c->list[c->n++];
    *x = (struct change){.type = type, .json = BUF_INIT, .line = BUF_INIT};
    return x;
}

void
change_free(struct change *x)
{
    free(x->by);
    free(x->text);
    buf_free(&x->json);
    buf_free(&x->line);
}

bool
changes_drop_read(struct changes *c)
{
    size_t left = c->n - c->n_read;
    for (size_t i = 0; i < c->n_read; i++)
        change_free(&c->list[i]);
    if (left > 0)
        memmove(c->list, c->list + c->n_read, left * sizeof *c->list);
    c->n = left;
    c->n_read = 0;
    return left > 0;
}

void
changes_wake(const struct changes *c, bool plan)
{
    if (c->wake)
        c->wake(c->wake_arg, plan);
}

void
changes_free(struct changes *c)
{
    for (size_t i = 0; i < c->n; i++)
        change_free(&c->list[i]);
    free(c->list);
    free(c->unsaved);
}

void
changes_mark(struct changes *c, struct job *job, unsigned what)
{
    if (!job->unsaved) {
        c->unsaved = xgrow(c->unsaved, c->n_unsaved, &c->cap_unsaved, sizeof(struct job *));
        c->unsaved[c->n_unsaved++] = job;
    }
    job->unsaved |= (uint8_t)what;
    changes_wake(c, true);
}

void
changes_each_unsaved(const struct changes *c, void (*fn)(const struct job *, void *), void *arg)
{
    for (size_t i = 0; i < c->n_unsaved; i++)
        fn(c->unsaved[i], arg);
}

struct job *
changes_find_new(const struct changes *c, bool (*match)(const struct job *, const void *),
                 const void *arg)
{
    for (size_t i = c->n_unsaved; i-- > 0;)
        if (c->unsaved[i]->unsaved & SAVE_INSERT && match(c->unsaved[i], arg))
            return c->unsaved[i];
    return NULL;
}
