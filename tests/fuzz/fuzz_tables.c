/* YAML input: settings or the table of models, chosen by the first byte. Errors must have a
 * text and a line; accepted settings, written again, must read back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/config.h"
#include "spec/models.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_words(const struct err *e)
{
    if (e->code != ERR_USAGE || strncmp(e->text, "f:", 2) != 0 ||
        strtol(e->text + 2, NULL, 10) < 1)
        err_abort("an error without its place: %s", e->text);
}

static void
try_config(const char *text, size_t len)
{
    auto_buf struct buf all = BUF_INIT, shown = BUF_INIT, again = BUF_INIT;
    struct config c, d;
    struct err e = {0};

    config_init(&c);
    config_init(&d);
    if (config_read(&c, "f", text, len, &all, &e) < 0) {
        check_words(&e);
        if (strncmp(buf_str(&all), e.text, strlen(e.text)) != 0)
            err_abort("the first error is not the first of all");
    } else {
        config_show(&c, &shown);
        if (config_read(&d, "f", buf_str(&shown), shown.len, NULL, &e) < 0)
            err_abort("%s", e.text);
        config_show(&d, &again);
        if (strcmp(buf_str(&shown), buf_str(&again)) != 0)
            err_abort("what is shown reads back as something else");
    }
    config_free(&c);
    config_free(&d);
}

static void
try_models(const char *text, size_t len)
{
    struct err e = {0};
    struct models *m = models_read("f", text, len, &e);
    struct request r;

    if (!m) {
        check_words(&e);
        return;
    }
    request_begin(&r);
    r.command = len ? xasprintf("x --llm %.*s", (int)strnlen(text, len), text) : xstrdup("x");
    models_apply(m, &r);
    if (request_validate(&r, &e) < 0)
        err_abort("a model that nobody can have: %s", e.text);
    request_free(&r);
    models_free(m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == 'm')
        try_models((const char *)data + 1, size - 1);
    else if (size > 0)
        try_config((const char *)data + 1, size - 1);
    return 0;
}
