/* What a shell needs to know of the command line, and the scripts for it. */
#ifndef CLI_VERBS_COMPLETION_H
#define CLI_VERBS_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct page;

#define COMPLETION_WORDS_MAX 64

/* One verb. Borrowed, but for the words. */
struct completion {
    const char *verb, *help;
    struct page *page;                 /* a copy, with its options; NULL: it has none */
    char *words[COMPLETION_WORDS_MAX]; /* what stands behind it: start, stop; NULL-terminated */
    bool takes_jobs;                   /* it selects jobs */
    char *columns; /* owned; what --format and --sort list, each with a space in front;
                      NULL: it has neither */
};

struct opt;
/* Whether the option's value is a list of those columns. */
bool completion_lists_columns(const struct completion *c, const struct opt *o);

void completion_write_bash(const struct completion *all, size_t n, struct buf *out);
void completion_write_zsh(const struct completion *all, size_t n, struct buf *out);
void completion_write_fish(const struct completion *all, size_t n, struct buf *out);

#endif
