/* The pages: a frame that contains tables for browsers without scripts (plain.c), and the same
 * data for the scripts, which then keep it up to date. */
#ifndef WEB_PAGES_WEB_PAGE_H
#define WEB_PAGES_WEB_PAGE_H

#include <stdbool.h>

struct query;
struct reply;

struct page_context {
    const char *host; /* this machine's name */
    bool has_token;   /* sessions exist, so offer to log out */
};

/* data: the answer to q, possibly an error. The caller owns the page. */
struct reply *page_make(const struct page_context *ctx, const struct query *q,
                        const struct reply *data);
/* failed: a wrong token was given. next: the path to continue at. */
struct reply *page_login(const struct page_context *ctx, bool failed, const char *next);
/* A page with a few words of text. */
struct reply *page_words(const struct page_context *ctx, int status, const char *title,
                         const char *words);

#endif
