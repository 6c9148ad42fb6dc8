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
#define X(field) free(h->field);
    HOOK_TEXTS(X)
#undef X
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
    *copy = *h;
#define X(field) copy->field = text_copy(h->field);
    HOOK_TEXTS(X)
#undef X
    return copy;
}

uint32_t
hooks_mail_types(const struct hooks *h)
{
    if (h->mail_types & MAIL_NONE)
        return 0;
    return h->mail_types || !h->mail_user ? h->mail_types : MAIL_END;
}
