/* The pages: a frame with everything that a browser without scripts needs to show what there
 * is (plain.c), and the same data for the scripts, which then keep it up to date. */
#ifndef WEB_PAGES_WEB_PAGE_H
#define WEB_PAGES_WEB_PAGE_H

#include <stdbool.h>

struct query;
struct reply;

struct page_context {
    const char *host; /* this machine's name */
    bool has_token;   /* there is a session to end */
};

/* data: the answer to q, an error too. The caller owns the page. */
struct reply *page_make(const struct page_context *ctx, const struct query *q,
                        const struct reply *data);
/* failed: a wrong token was given. next: where to go. */
struct reply *page_login(const struct page_context *ctx, bool failed, const char *next);
/* A few words as a page of their own. */
struct reply *page_words(const struct page_context *ctx, int status, const char *title,
                         const char *words);

#endif
