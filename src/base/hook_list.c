/* A request's notifications: copying and freeing them. Called by request.c. */
#include "base/hook_list.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

void
hooks_free(struct hooks *h)
{
    if (!h)
        return;
    free(h->on_start);
    free(h->on_end);
    free(h->on_fail);
    free(h->webhook);
    free(h->mail_user);
    free(h);
}

static char *
text_copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

struct hooks *
hooks_copy(const struct hooks *h)
{
    struct hooks *copy;

    if (!h)
        return NULL;
    copy = xcalloc(1, sizeof *copy);
    copy->on_start = text_copy(h->on_start);
    copy->on_end = text_copy(h->on_end);
    copy->on_fail = text_copy(h->on_fail);
    copy->webhook = text_copy(h->webhook);
    copy->mail_user = text_copy(h->mail_user);
    copy->mail_types = h->mail_types;
    return copy;
}

uint32_t
hooks_mail_types(const struct hooks *h)
{
    if (h->mail_types & MAIL_NONE)
        return 0;
    return h->mail_types || !h->mail_user ? h->mail_types : MAIL_END;
}

static bool
same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool
hooks_equal(const struct hooks *a, const struct hooks *b)
{
    static const struct hooks none;

    a = a ? a : &none;
    b = b ? b : &none;
    return same_text(a->on_start, b->on_start) && same_text(a->on_end, b->on_end) &&
           same_text(a->on_fail, b->on_fail) && same_text(a->webhook, b->webhook) &&
           same_text(a->mail_user, b->mail_user) && a->mail_types == b->mail_types;
}
