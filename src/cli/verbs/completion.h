/* What a shell needs to complete command lines, and the scripts. */
#ifndef CLI_VERBS_COMPLETION_H
#define CLI_VERBS_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct page;

#define COMPLETION_WORDS_MAX 64

/* One verb. Borrowed, except page, words and columns. */
struct completion {
    const char *verb, *help;
    struct page *page;                 /* a copy, with its options; NULL: no page */
    char *words[COMPLETION_WORDS_MAX]; /* such as start, stop; NULL-terminated */
    bool takes_jobs;                   /* it takes a selector of jobs */
    char *columns; /* owned; values of --format and --sort, each preceded by a space; NULL: no
                      such option */
};

struct opt;
/* True if the option's value is a list of those columns. */
bool completion_lists_columns(const struct completion *c, const struct opt *o);

void completion_write_bash(const struct completion *all, size_t n, struct buf *out);
void completion_write_zsh(const struct completion *all, size_t n, struct buf *out);
void completion_write_fish(const struct completion *all, size_t n, struct buf *out);

#endif
