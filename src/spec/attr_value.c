/* Implements the kinds of attr.c's rows: parsing, detecting defaults, comparing, writing JSON.
 * Called by all code that iterates over the rows. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr.h"
#include "spec/attr_hooks.h"
#include "spec/attr_set.h"
#include "spec/value.h"

/* --- the field --- */

void *
attr_field_to_set(const struct attr *a, struct request *r)
{
    if (!r->hooks && (a->kind == ATTR_HOOK || a->kind == ATTR_MAIL))
        r->hooks = xcalloc(1, sizeof *r->hooks);
    return attr_field(a, r);
}

/* Flags, bytes and enumerators are read by size: reading a bool as an enum is undefined. */
int64_t
attr_number(const struct attr *a, const struct request *r)
{
    const void *p = attr_field(a, r);

    switch (a->size) {
    case sizeof(uint8_t):
        return *(const uint8_t *)p;
    case sizeof(int32_t):
        return *(const int32_t *)p;
    default:
        return *(const int64_t *)p;
    }
}

void
attr_set_number(const struct attr *a, struct request *r, int64_t v)
{
    void *p = attr_field(a, r);

    switch (a->size) {
    case sizeof(uint8_t):
        *(uint8_t *)p = (uint8_t)v;
        break;
    case sizeof(int32_t):
        *(int32_t *)p = (int32_t)v;
        break;
    default:
        *(int64_t *)p = v;
    }
}

bool
attr_set_word(const struct attr *a, struct request *r, const char *word)
{
    for (int i = 0; i < attr_choices(a); i++) {
        if (a->words[i] && strcasecmp(word, a->words[i]) == 0) {
            attr_set_number(a, r, i);
            return true;
        }
    }
    return false;
}

int64_t
attr_default(const struct attr *a)
{
    return attr_number(a, &request_standard);
}

int
attr_choices(const struct attr *a)
{
    int n = a->words && !a->words[0] ? 1 : 0;

    while (a->words && a->words[n])
        n++;
    return n;
}

const char *
attr_text(const struct attr *a, const struct request *r)
{
    if (a->kind == ATTR_TYPE)
        return r->demand.gpu_type[0] ? r->demand.gpu_type : NULL;
    if (a->kind == ATTR_CHOICE)
        return a->words[attr_number(a, r)];
    if (a->kind == ATTR_HOOK && !r->hooks)
        return NULL;
    return *(char *const *)attr_field(a, r);
}

static char *const *
list_of(const struct attr *a, const struct request *r)
{
    return *(char *const *const *)attr_field(a, r);
}

/* --- comparing --- */

bool
attr_is_said(const struct attr *a, const struct request *r)
{
    switch (a->kind) {
    case ATTR_NOTHING:
        return false;
    case ATTR_FLAG:
    case ATTR_INT:
    case ATTR_MIB:
    case ATTR_PERMILLE:
    case ATTR_TENTHS:
    case ATTR_MS:
    case ATTR_US:
    case ATTR_CHOICE:
    case ATTR_CARDS:
        return attr_number(a, r) != attr_default(a);
    case ATTR_TEXT:
    case ATTR_HOOK:
    case ATTR_TYPE:
        return attr_text(a, r);
    case ATTR_LIST:
        return list_of(a, r);
    case ATTR_MAIL:
        return r->hooks && r->hooks->mail_types;
    case ATTR_IDS:
        return r->demand.n_ids > 0;
    case ATTR_TASKS:
        return r->array.n > 0;
    case ATTR_DEPS:
        return r->n_deps > 0;
    }
    return false;
}

static bool
same_text(const char *x, const char *y)
{
    return x == y || (x && y && strcmp(x, y) == 0);
}

/* NULL and an empty list are equal. */
static bool
same_list(char *const *x, char *const *y)
{
    while (x && *x && y && *y && strcmp(*x, *y) == 0)
        x++, y++;
    return (!x || !*x) && (!y || !*y);
}

/* Names have been resolved to jobs by then. */
static bool
same_deps(const struct request *x, const struct request *y)
{
    if (x->n_deps != y->n_deps)
        return false;
    for (int i = 0; i < x->n_deps; i++)
        if (x->deps[i].type != y->deps[i].type || x->deps[i].job != y->deps[i].job ||
            x->deps[i].task != y->deps[i].task)
            return false;
    return true;
}

static uint32_t
mail_types(const struct request *r)
{
    return r->hooks ? r->hooks->mail_types : 0;
}

bool
attr_is_same(const struct attr *a, const struct request *x, const struct request *y)
{
    switch (a->kind) {
    case ATTR_NOTHING:
        return true;
    case ATTR_FLAG:
    case ATTR_INT:
    case ATTR_MIB:
    case ATTR_PERMILLE:
    case ATTR_TENTHS:
    case ATTR_MS:
    case ATTR_US:
    case ATTR_CHOICE:
    case ATTR_CARDS:
        return attr_number(a, x) == attr_number(a, y);
    case ATTR_TEXT:
    case ATTR_HOOK:
    case ATTR_TYPE:
        return same_text(attr_text(a, x), attr_text(a, y));
    case ATTR_LIST:
        return same_list(list_of(a, x), list_of(a, y));
    case ATTR_MAIL:
        return mail_types(x) == mail_types(y);
    case ATTR_IDS:
        return same_text(x->gpu_names, y->gpu_names) && x->demand.n_ids == y->demand.n_ids &&
               memcmp(x->demand.ids, y->demand.ids, sizeof x->demand.ids) == 0;
    case ATTR_TASKS:
        return x->array.n == y->array.n &&
               (x->array.n == 0 || memcmp(x->array.ranges, y->array.ranges,
                                          (size_t)x->array.n * sizeof *x->array.ranges) == 0);
    case ATTR_DEPS:
        return same_deps(x, y);
    }
    return false;
}

/* --- as JSON --- */

static void
write_list(struct jsonw *w, char *const *list)
{
    jsonw_array(w);
    for (; list && *list; list++)
        jsonw_str(w, *list);
    jsonw_end_array(w);
}

static void
write_cards(struct jsonw *w, uint64_t set)
{
    jsonw_array(w);
    for (int i = 0; i < GPU_MAX; i++)
        if (set >> i & 1)
            jsonw_int(w, i);
    jsonw_end_array(w);
}

static void
write_ids(struct jsonw *w, const struct request *r)
{
    jsonw_array(w);
    for (int i = 0; i < r->demand.n_ids && !r->gpu_names; i++)
        jsonw_int(w, r->demand.ids[i]);
    auto_free char *names = r->gpu_names ? xstrdup(r->gpu_names) : NULL;
    char *rest = names, *name;
    while (rest && (name = strsep(&rest, ",")))
        jsonw_str(w, name);
    jsonw_end_array(w);
}

static void
write_deps(struct jsonw *w, const struct request *r)
{
    jsonw_array(w);
    for (int i = 0; i < r->n_deps; i++) {
        const struct dep *d = &r->deps[i];

        jsonw_object(w);
        jsonw_kstr(w, "type", value_dep_name(d->type));
        if (d->name && !d->job) /* the daemon has resolved the name if job is set */
            jsonw_kstr(w, "name", d->name);
        else
            jsonw_kint(w, "job", d->job);
        if (d->task >= 0)
            jsonw_kint(w, "task", d->task);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

void
attr_write(const struct attr *a, const struct request *r, struct jsonw *w)
{
    auto_buf struct buf text = BUF_INIT;

    switch (a->kind) {
    case ATTR_NOTHING:
        break;
    case ATTR_FLAG:
        jsonw_bool(w, attr_number(a, r));
        break;
    case ATTR_INT:
    case ATTR_MIB:
    case ATTR_PERMILLE:
    case ATTR_TENTHS:
    case ATTR_MS:
    case ATTR_US:
        jsonw_int(w, attr_number(a, r));
        break;
    case ATTR_CHOICE:
    case ATTR_TEXT:
    case ATTR_HOOK:
    case ATTR_TYPE:
        jsonw_str(w, attr_text(a, r));
        break;
    case ATTR_LIST:
        write_list(w, list_of(a, r));
        break;
    case ATTR_MAIL:
        hooks_add_types(mail_types(r), &text);
        jsonw_str(w, text.len ? buf_str(&text) : NULL);
        break;
    case ATTR_CARDS:
        write_cards(w, r->demand.devices);
        break;
    case ATTR_IDS:
        write_ids(w, r);
        break;
    case ATTR_TASKS:
        task_set_text(&r->array, &text);
        jsonw_str(w, buf_str(&text));
        break;
    case ATTR_DEPS:
        write_deps(w, r);
        break;
    }
}

/* --- for people --- */

static void
say_list(char *const *list, struct buf *out)
{
    for (char *const *item = list; item && *item; item++) {
        if (item != list)
            buf_addc(out, ' ');
        text_add_safe(out, *item, strlen(*item), 0);
    }
}

void
attr_say(const struct attr *a, const struct request *r, struct buf *out)
{
    const char *text;
    char shown[24];

    switch (a->kind) {
    case ATTR_FLAG:
        buf_adds(out, attr_number(a, r) ? "yes" : "no");
        break;
    case ATTR_INT:
        buf_addf(out, "%lld", (long long)attr_number(a, r));
        break;
    case ATTR_MIB:
        buf_adds(out, format_mib(attr_number(a, r), shown));
        break;
    case ATTR_PERMILLE:
        buf_addf(out, "%g %%", (double)attr_number(a, r) / 10.0);
        break;
    case ATTR_TENTHS:
        buf_addf(out, "%.1f", (double)attr_number(a, r) / 10.0);
        break;
    case ATTR_MS:
        buf_adds(out, format_duration(attr_number(a, r), shown));
        break;
    case ATTR_CHOICE:
    case ATTR_TEXT:
    case ATTR_HOOK:
    case ATTR_TYPE:
        text = attr_text(a, r);
        if (text)
            text_add_safe(out, text, strlen(text), 0);
        break;
    case ATTR_LIST:
        say_list(list_of(a, r), out);
        break;
    case ATTR_NOTHING:
    case ATTR_US:
    case ATTR_MAIL:
    case ATTR_CARDS:
    case ATTR_IDS:
    case ATTR_TASKS:
    case ATTR_DEPS:
        break;
    }
}

/* --- from text --- */

static int
read_flag(const struct attr *a, struct request *r, const char *value, struct err *e)
{
    bool yes;

    if (parse_bool(value, &yes, e) < 0)
        return -1;
    attr_set_number(a, r, yes);
    return 0;
}

static int
read_int(const struct attr *a, struct request *r, const char *value, struct err *e)
{
    int64_t v;

    if (parse_int(value, a->min, a->max, &v, e) < 0)
        return -1;
    attr_set_number(a, r, v);
    return 0;
}

static int
read_duration(const struct attr *a, struct request *r, const char *value, struct err *e)
{
    int64_t ms = 0;

    if (strcmp(value, "0") != 0 && parse_duration_ms(value, 1000, &ms, e) < 0)
        return -1;
    if (ms > a->max)
        return err_set(e, ERR_USAGE, "'%.60s' is longer than the maximum of %lldh", value,
                       (long long)(a->max / 3600000));
    attr_set_number(a, r, ms);
    return 0;
}

static int
read_choice(const struct attr *a, struct request *r, const char *value, struct err *e)
{
    auto_buf struct buf words = BUF_INIT;
    int first = a->words[0] ? 0 : 1, n = attr_choices(a);

    if (attr_set_word(a, r, value))
        return 0;
    for (int i = first; i < n; i++)
        buf_addf(&words, "%s%s",
                 i == first   ? "is not valid; use "
                 : i == n - 1 ? " or "
                              : ", ",
                 a->words[i]);
    return parse_refuse(e, value, buf_str(&words));
}

static int
read_text(const struct attr *a, struct request *r, const char *value, struct err *e)
{
    char **field = attr_field_to_set(a, r);

    if ((a->bytes && value_check_text(value, a->bytes, e) < 0) ||
        (a->check && a->check(value, e) < 0))
        return -1;
    free(*field);
    *field = xstrdup(value);
    return 0;
}

/* An empty value clears an earlier one. */
static int
read_hook(const struct attr *a, struct request *r, const char *value, struct err *e)
{
    char **field;

    if (value[0] && a->check(value, e) < 0)
        return -1;
    field = attr_field_to_set(a, r);
    free(*field);
    *field = value[0] ? xstrdup(value) : NULL;
    return 0;
}

static int
read_ids(struct request *r, const char *value, struct err *e)
{
    uint8_t ids[REQUEST_IDS_MAX] = {0};

    if (value[strspn(value, "0123456789,- ")])
        return attr_read_gpu_names(r, value, e);
    int n = parse_index_list(value, ids, REQUEST_IDS_MAX, e);
    if (n < 0)
        return -1;
    free(TAKE(r->gpu_names));
    memcpy(r->demand.ids, ids, sizeof ids);
    r->demand.n_ids = (uint8_t)n;
    return 0;
}

int
attr_read_text(const struct attr *a, struct request *r, const char *value, struct err *e)
{
    switch (a->kind) {
    case ATTR_FLAG:
        return read_flag(a, r, value, e);
    case ATTR_INT:
        return read_int(a, r, value, e);
    case ATTR_MIB:
        return value_mib(value, attr_field(a, r), e);
    case ATTR_PERMILLE:
        return value_permille(value, attr_field(a, r), e);
    case ATTR_TENTHS:
        return value_tenths(value, attr_field(a, r), e);
    case ATTR_MS:
        return read_duration(a, r, value, e);
    case ATTR_CHOICE:
        return read_choice(a, r, value, e);
    case ATTR_TEXT:
        return read_text(a, r, value, e);
    case ATTR_HOOK:
        return read_hook(a, r, value, e);
    case ATTR_CARDS:
        return parse_index_set(value, attr_field(a, r), e);
    case ATTR_IDS:
        return read_ids(r, value, e);
    case ATTR_MAIL:
        return hooks_parse_types(value, attr_field_to_set(a, r), e);
    case ATTR_NOTHING:
    case ATTR_US:
    case ATTR_LIST:
    case ATTR_TYPE:
    case ATTR_TASKS:
    case ATTR_DEPS:
        break;
    }
    err_abort("the attribute %s names no setter", a->name);
}
