/* Reference-counted text: the count is stored before the bytes. */
#include "base/counted_text.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct shared {
    uint32_t owners;
    char text[];
};

static struct shared *
shared_of(char *text)
{
    return (struct shared *)(void *)(text - offsetof(struct shared, text));
}

char *
shared_new(const char *text)
{
    if (!text)
        return NULL;
    size_t n = strlen(text) + 1;
    struct shared *s = xmalloc(sizeof *s + n);
    s->owners = 1;
    memcpy(s->text, text, n);
    return s->text;
}

char *
shared_ref(char *shared)
{
    if (shared)
        shared_of(shared)->owners++;
    return shared;
}

void
shared_free(char *shared)
{
    if (shared && --shared_of(shared)->owners == 0)
        free(shared_of(shared));
}

void
shared_join(char **field, char **last)
{
    if (*field == *last)
        return;
    if (*field && *last && strcmp(*field, *last) == 0) {
        shared_free(*field);
        *field = shared_ref(*last);
    } else {
        shared_free(*last);
        *last = shared_ref(*field);
    }
}
