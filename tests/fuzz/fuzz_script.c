/* Options in scripts, #BERTH and #SBATCH. Any bytes must give complaints with a position and
 * in UTF-8, and a request that request_validate can check and that can be written as text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr.h"
#include "spec/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_list(const struct script_list *list)
{
    if (list->n > SCRIPT_WORDS_MAX)
        err_abort("%zu complaints", list->n);
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->at[i];
        if (strncmp(text, "f:", 2) != 0 || strtol(text + 2, NULL, 10) < 1 ||
            !strstr(text, ": #"))
            err_abort("a complaint without its place: %s", text);
        if (!text_is_utf8(text, strlen(text), NULL))
            err_abort("a complaint that is not UTF-8");
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf words = BUF_INIT;
    struct request r;
    struct script s;
    struct err e = {0};
    int rc;

    request_begin(&r);
    r.command = xstrdup("x");
    rc = script_read("f", (const char *)data, size, NULL, NULL, &r, &s, &e);
    if ((rc != 0) != (s.errors.n > 0))
        err_abort("%d with %zu errors", rc, s.errors.n);
    check_list(&s.errors);
    check_list(&s.unsupported);
    if (request_validate(&r, &e) < 0 && !e.text[0])
        err_abort("an error without words");
    request_describe(&r, &words);
    if (!text_is_utf8(buf_str(&words), words.len, NULL))
        err_abort("a description that is not UTF-8");
    script_free(&s);
    request_free(&r);
    return 0;
}
