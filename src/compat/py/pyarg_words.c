/* Which word of a command line is an option, a value or an argument, decided as argparse does
 * before it obeys any of them. */
#include <string.h>

#include "base/buf.h"
#include "compat/py/pyarg_priv.h"

static bool
is_name(const char *name, const char *word, size_t n)
{
    return name && strlen(name) == n && memcmp(name, word, n) == 0;
}

const struct pyarg *
pyarg_find_exact(const struct reader *r, const char *word, size_t n)
{
    for (const struct pyarg *a = r->p->args; a->name; a++) {
        if (pyarg_is_option(a) && (is_name(a->name, word, n) || is_name(a->letter, word, n)))
            return a;
    }
    return NULL;
}

/* --beginning of the only name that begins so, with or without =value; several are an error. */
static bool
find_beginning(struct reader *r, const char *text, struct word *w)
{
    auto_buf struct buf names = BUF_INIT;
    size_t n = strcspn(text, "=");
    int matches = 0;

    for (const struct pyarg *a = r->p->args; a->name; a++) {
        if (strncmp(a->name, text, n) != 0)
            continue;
        buf_addf(&names, "%s%s", matches++ ? ", " : "", a->name);
        *w = (struct word){'O', a, true, text[n] ? text + n + 1 : NULL};
    }
    if (matches > 1)
        pyarg_fail(r, "ambiguous option: %s could match %s", text, buf_str(&names));
    return matches > 0;
}

static bool
find_option(struct reader *r, const char *text, struct word *w)
{
    const struct pyarg *a = pyarg_find_exact(r, text, strlen(text));
    size_t n = strcspn(text, "=");

    *w = (struct word){'O', a, text[1] == '-', NULL};
    if (a)
        return true;
    if (text[n] && (w->a = pyarg_find_exact(r, text, n))) {
        w->value = text + n + 1;
        return true;
    }
    if (text[1] == '-')
        return find_beginning(r, text, w);
    *w = (struct word){'O', pyarg_find_exact(r, text, 2), false, text + 2};
    return w->a != NULL;
}

/* -5, -.5, -1.5 and no more. */
static bool
is_negative_number(const char *text)
{
    size_t digits = strspn(text + 1, "0123456789");
    const char *rest = text + 1 + digits;

    if (!*rest)
        return digits > 0;
    return *rest == '.' && rest[1] && rest[1 + strspn(rest + 1, "0123456789")] == '\0';
}

/* Beyond argparse: the value of the option before it. */
static bool
is_value_of_any(const struct reader *r, int at)
{
    const struct word *before = &r->words[at - 1];

    return at > 1 && before->kind == 'O' && before->a && before->a->type == PYARG_ANY &&
           !before->value && !pyarg_find_exact(r, r->argv[at], strlen(r->argv[at]));
}

void
pyarg_classify(struct reader *r)
{
    bool only_words = false;

    for (int i = 1; i < r->argc && !r->done; i++) {
        const char *text = r->argv[i];
        struct word *w = &r->words[i];

        w->kind = 'A';
        if (only_words || text[0] != '-' || is_value_of_any(r, i))
            continue;
        if (strcmp(text, "--") == 0) {
            only_words = true;
            w->kind = '-';
        } else if (text[1] && !find_option(r, text, w)) {
            *w = (struct word){.kind =
                                   is_negative_number(text) || strchr(text, ' ') ? 'A' : 'O'};
        }
    }
}
