/* Single attribute values, of a type chosen by the first byte: sets of tasks, times,
 * dependencies, fractions. Parsed values must keep their bounds, and a set of tasks, written
 * again, must read back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "spec/value.h"
#include "spec/when.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_tasks(const char *text)
{
    auto_buf struct buf said = BUF_INIT, again = BUF_INIT;
    struct task_set set, back;
    int32_t max, none;
    struct err e;

    if (value_tasks(text, &set, &max, &e) < 0)
        return;
    if (set.n < 1 || set.n > TASK_RANGES_MAX || max < 0 || max > ARRAY_MAX)
        err_abort("%d ranges, %d at once", set.n, max);
    for (int32_t i = 0; i < set.n; i++) {
        const struct task_range *r = &set.ranges[i];
        if (r->first < 0 || r->last < r->first || r->last >= ARRAY_MAX ||
            (i > 0 && r->first <= set.ranges[i - 1].last + 1))
            err_abort("range %d is %d-%d", i, r->first, r->last);
    }
    task_set_text(&set, &said);
    if (value_tasks(buf_str(&said), &back, &none, &e) < 0)
        err_abort("%s", e.text);
    task_set_text(&back, &again);
    if (strcmp(buf_str(&said), buf_str(&again)) != 0)
        err_abort("%s reads back as %s", buf_str(&said), buf_str(&again));
    task_set_free(&set);
    task_set_free(&back);
}

static void
try_deps(const char *text)
{
    struct dep *deps = NULL;
    int n = 0;
    struct err e;
    int rc = value_deps(text, DEP_ANY, &deps, &n, &e);

    if (rc != 0 && n != 0)
        err_abort("%d left behind by an error", n);
    for (int i = 0; i < n; i++) {
        if (!deps[i].job == !deps[i].name || deps[i].task < -1 || deps[i].task >= ARRAY_MAX)
            err_abort("job %u task %d", deps[i].job, deps[i].task);
        free(deps[i].name);
    }
    free(deps);
}

static void
try_when(const char *text)
{
    struct when_clock clock = {
        .now_us = 1795271400000000,
        .local = {.tm_year = 126, .tm_mon = 10, .tm_mday = 21, .tm_hour = 14, .tm_min = 30},
        .to_time = timegm};
    int64_t us = 0;
    struct err e = {0};

    if (when_parse(text, &clock, &us, &e) < 0 && !e.text[0])
        err_abort("an error without words");
    (void)when_parse(text, NULL, &us, &e);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *text = size > 0 ? xstrndup((const char *)data + 1, size - 1) : NULL;
    int32_t part = 1;

    if (!text)
        return 0;
    if (data[0] == 't')
        try_tasks(text);
    else if (data[0] == 'd')
        try_deps(text);
    else if (data[0] == 'w')
        try_when(text);
    else if (value_permille(text, &part, NULL) == 0 && (part < 1 || part > 1000))
        err_abort("a part of %d", part);
    return 0;
}
