/* Prints one line of `berth doctor`; called by all checks. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/common/term.h"
#include "cli/doctor/doctor_verb.h"

void
doctor_say(struct doctor *d, enum doctor_verdict v, const char *what, const char *fmt, ...)
{
    static const char *const words[] = {"ok  ", "warn", "FAIL"};
    static const char *const names[] = {"ok", "warn", "fail"};
    static const enum style styles[] = {STYLE_GOOD, STYLE_WARN, STYLE_BAD};
    auto_free char *text = NULL;
    auto_buf struct buf safe = BUF_INIT; /* file names and locks contain other users' text */
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        err_abort("out of memory");
    va_end(ap);
    text_add_safe(&safe, text, strlen(text), 0);
    d->failed |= v == DOCTOR_FAIL;
    if (d->json) {
        json_array_append_new(d->checks, json_pack("{s:s,s:s,s:s}", "check", what, "result",
                                                   names[v], "text", buf_str(&safe)));
        return;
    }
    term_add(&d->term, &d->out, styles[v], words[v]);
    buf_addf(&d->out, "  %-9s %s\n", what, buf_str(&safe));
}
