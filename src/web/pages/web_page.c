/* The frame of every page: see web_page.h. Scripts and style sheet are in assets/. */
#include "web/pages/web_page.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "web/http/query.h"
#include "web/http/reply.h"
#include "web/pages/html.h"
#include "web/pages/plain.h"

static const struct {
    const char *path, *name;
    enum query_kind kind;
} tabs[] = {
    {"/", "Overview", QUERY_OVERVIEW},
    {"/history", "History", QUERY_HISTORY},
    {"/report", "Report", QUERY_REPORT},
};

static void
add_head(struct buf *out, const char *host, const char *title, const char *script)
{
    buf_adds(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    html_add(out, title);
    buf_adds(out, " \xc2\xb7 Berth on ");
    html_add(out, host);
    buf_adds(out, "</title>\n"
                  "<link rel=\"icon\" href=\"/assets/icon.svg\" type=\"image/svg+xml\">\n"
                  "<link rel=\"stylesheet\" href=\"/assets/style.css\">\n"
                  "<script src=\"/assets/theme.js\"></script>\n");
    if (script)
        buf_addf(out, "<script type=\"module\" src=\"/assets/%s.js\"></script>\n", script);
    buf_adds(out,
             "</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n");
}

static void
add_header(struct buf *out, const struct page_context *ctx, enum query_kind kind)
{
    buf_adds(out, "<header class=\"top\">\n<a class=\"brand\" href=\"/\">"
                  "<img src=\"/assets/icon.svg\" alt=\"\" width=\"26\" height=\"26\">"
                  "<b>Berth</b></a><span class=\"host\">");
    html_add(out, ctx->host);
    buf_adds(out, "</span>\n<nav aria-label=\"Pages\">");
    for (size_t i = 0; i < sizeof tabs / sizeof tabs[0]; i++)
        buf_addf(out, "<a href=\"%s\"%s>%s</a>", tabs[i].path,
                 tabs[i].kind == kind ? " aria-current=\"page\"" : "", tabs[i].name);
    buf_adds(out, "</nav>\n<span class=\"live\" id=\"live\" role=\"status\"></span>\n"
                  "<button type=\"button\" class=\"ghost\" id=\"theme\" hidden></button>\n");
    if (ctx->has_token)
        buf_adds(out, "<form method=\"post\" action=\"/logout\">"
                      "<button class=\"ghost\">Log out</button></form>\n");
    buf_adds(out, "</header>\n");
}

static void
add_foot(struct buf *out)
{
    buf_adds(
        out,
        "<footer>Berth " BERTH_VERSION " \xc2\xb7 read only; "
        "use <code>berth</code> in a terminal to control jobs</footer>\n</body>\n</html>\n");
}

static const char *
script_of(enum query_kind kind)
{
    switch (kind) {
    case QUERY_HISTORY:
        return "history";
    case QUERY_JOB:
        return "job";
    case QUERY_REPORT:
        return "report";
    case QUERY_OVERVIEW:
    case QUERY_STATUS:
    case QUERY_GPUS:
    case QUERY_QUEUE:
    case QUERY_JOB_SERIES:
    case QUERY_SERIES:
    case QUERY_HEALTH:
    case QUERY_METRICS:
    case QUERY_KINDS:
        break;
    }
    return "overview";
}

static void
title_of(const struct query *q, char *out, size_t size)
{
    if (q->kind == QUERY_JOB)
        snprintf(out, size, "Job %lld", (long long)q->job);
    else
        snprintf(out, size, "%s",
                 q->kind == QUERY_HISTORY  ? "History"
                 : q->kind == QUERY_REPORT ? "Report"
                                           : "Overview");
}

struct reply *
page_make(const struct page_context *ctx, const struct query *q, const struct reply *data)
{
    struct buf out = BUF_INIT;
    char title[40];
    /* A temporary 503 must not make a browser give up the page, which recovers by itself. */
    int status = data->status == 503 ? 200 : data->status;

    title_of(q, title, sizeof title);
    add_head(&out, ctx->host, title, script_of(q->kind));
    add_header(&out, ctx, q->kind);
    buf_addf(&out,
             "<main id=\"main\">\n<h1 class=\"%s\">%s</h1>\n"
             "<div id=\"plain\">\n",
             q->kind == QUERY_OVERVIEW ? "unseen" : "title", title);
    plain_add(&out, q, data);
    buf_adds(&out, "</div>\n</main>\n<script type=\"application/json\" id=\"data\">");
    html_add_json(&out, buf_str(&data->body), data->body.len);
    buf_adds(&out, "</script>\n");
    add_foot(&out);
    return reply_new(status, REPLY_HTML, &out);
}

struct reply *
page_login(const struct page_context *ctx, bool failed, const char *next)
{
    struct buf out = BUF_INIT;

    add_head(&out, ctx->host, "Log in", NULL);
    buf_adds(&out,
             "<main id=\"main\" class=\"login\">\n<form method=\"post\" action=\"/login\">\n"
             "<img src=\"/assets/icon.svg\" alt=\"\" width=\"48\" height=\"48\">\n"
             "<h1>Berth on ");
    html_add(&out, ctx->host);
    buf_adds(&out, "</h1>\n");
    if (failed)
        buf_adds(&out, "<p class=\"problem bad\" role=\"alert\">Wrong token.</p>\n");
    buf_adds(&out, "<label for=\"token\">Token</label>\n"
                   "<input id=\"token\" name=\"token\" type=\"password\" required autofocus "
                   "autocomplete=\"current-password\">\n"
                   "<input type=\"hidden\" name=\"next\" value=\"");
    html_add(&out, next);
    buf_adds(&out, "\">\n<button>Log in</button>\n"
                   "<p class=\"dim\">The token is in the file that was passed to berth-web "
                   "(<code>--token-file</code>).</p>\n</form>\n</main>\n");
    add_foot(&out);
    return reply_new(failed ? 403 : 200, REPLY_HTML, &out);
}

struct reply *
page_words(const struct page_context *ctx, int status, const char *title, const char *words)
{
    struct buf out = BUF_INIT;

    add_head(&out, ctx->host, title, NULL);
    add_header(&out, ctx, QUERY_KINDS);
    buf_adds(&out, "<main id=\"main\">\n<h1 class=\"title\">");
    html_add(&out, title);
    buf_adds(&out, "</h1>\n<p>");
    html_add(&out, words);
    buf_adds(&out, "</p>\n</main>\n");
    add_foot(&out);
    return reply_new(status, REPLY_HTML, &out);
}
