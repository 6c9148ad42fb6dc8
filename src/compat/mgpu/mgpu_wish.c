/* Reading a submit request of mgpu's protocol: each field's type, GPUs that there are, memory
 * that they could have. Whatever is wrong is refused with words before anything is done. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "compat/engine/compat_cards.h"
#include "compat/mgpu/mgpu.h"
#include "compat/py/pytext.h"

#define SECONDS_MAX   (INT64_C(100) * 365 * 86400)
#define SLACK_MAX_MIB 512

/* --- reading --- */

/* An integer that may be left out. -1 with words. */
static int
read_number(const json_t *request, const char *key, int64_t *out, bool *said, struct err *e)
{
    const json_t *v = json_object_get(request, key);

    if (said)
        *said = v && !json_is_null(v);
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_integer(v))
        return err_set(e, ERR_USAGE, "\"%s\" is no whole number", key);
    *out = json_integer_value(v);
    return 0;
}

static int
read_text(const json_t *request, const char *key, bool needed, const char **out, struct err *e)
{
    const json_t *v = json_object_get(request, key);

    *out = NULL;
    if (!needed && (!v || json_is_null(v)))
        return 0;
    if (!v)
        return err_set(e, ERR_USAGE, "\"%s\" is missing", key);
    if (!json_is_string(v))
        return err_set(e, ERR_USAGE, "\"%s\" is no text", key);
    *out = json_string_value(v);
    return 0;
}

static int
n_of(const struct compat_cards *cards)
{
    return __builtin_popcountll(cards->listed);
}

/* 1 and "1" are the same card. */
static int
read_id(const json_t *v, struct mgpu_wish *w, const struct compat_cards *cards, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;
    const char *text = json_string_value(v);
    int64_t id = json_integer_value(v);

    if (text)
        text_add_safe(&shown, text, strlen(text), 40);
    else
        buf_addf(&shown, "%lld", (long long)id);
    if (!text && !json_is_integer(v))
        return err_set(e, ERR_USAGE, "\"gpu_ids\" is no list of GPU numbers");
    if (text && !py_int(text, &id))
        return err_set(e, ERR_USAGE, "'%s' is no number of a GPU; write 0,1", buf_str(&shown));
    if (id < 0 || id >= GPU_MAX || cards->listed_mib[id] < 0)
        return err_set(e, ERR_REFUSED, "there is no GPU %s; there are %d, from 0 on",
                       buf_str(&shown), n_of(cards));
    for (int i = 0; i < w->n_ids; i++) {
        if (w->ids[i] == id)
            return err_set(e, ERR_USAGE, "GPU %lld is named twice", (long long)id);
    }
    w->ids[w->n_ids++] = (int)id;
    return 0;
}

static int
read_ids(const json_t *request, const struct compat_cards *cards, struct mgpu_wish *w,
         struct err *e)
{
    const json_t *list = json_object_get(request, "gpu_ids");
    size_t i;
    json_t *v;

    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return err_set(e, ERR_USAGE, "\"gpu_ids\" is no list");
    json_array_foreach(list, i, v)
    {
        if (read_id(v, w, cards, e) < 0)
            return -1;
    }
    return 0;
}

static int
read_fields(const json_t *request, struct mgpu_wish *w, struct err *e)
{
    const json_t *interactive = json_object_get(request, "interactive");
    const char *user;
    bool has_gpus;

    *w = (struct mgpu_wish){0};
    if (read_text(request, "user", true, &user, e) < 0 ||
        read_number(request, "gpus", &w->gpus, &has_gpus, e) < 0 ||
        read_text(request, "cmdline", true, &w->command, e) < 0 ||
        read_number(request, "mem", &w->mem, &w->has_mem, e) < 0 ||
        read_number(request, "time_limit", &w->limit_s, NULL, e) < 0 ||
        read_number(request, "priority", &w->priority, NULL, e) < 0 ||
        read_text(request, "env_setup_cmd", false, &w->setup, e) < 0)
        return -1;
    if (!has_gpus)
        return err_set(e, ERR_USAGE, "\"gpus\" is missing");
    if (interactive && !json_is_boolean(interactive) && !json_is_null(interactive))
        return err_set(e, ERR_USAGE, "\"interactive\" is neither true nor false");
    w->interactive = json_is_true(interactive);
    if (w->command[strspn(w->command, " \t\r\n")] == '\0')
        return err_set(e, ERR_USAGE, "the command is empty");
    if (w->limit_s < 0 || w->limit_s > SECONDS_MAX)
        return err_set(e, ERR_USAGE, "the time limit is a number of seconds, not %lld",
                       (long long)w->limit_s);
    return 0;
}

/* --- the cards --- */

static int
read_cards(struct client *c, struct compat_cards *out, struct err *e)
{
    compat_cards_init(out);
    if (compat_cards_read(out, c, e) < 0)
        return -1;
    if (!out->listed)
        return err_set(e, ERR_REFUSED, "no GPU is known yet: %s", out->why_none);
    return 0;
}

static int
by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* What each of this many of the cards that it may have could give. */
static int64_t
most_of(const struct mgpu_wish *w, const struct compat_cards *cards)
{
    int64_t totals[GPU_MAX];
    size_t n = 0;

    for (int i = 0; i < w->n_ids; i++)
        totals[n++] = cards->listed_mib[w->ids[i]];
    for (int i = 0; i < GPU_MAX && w->n_ids == 0; i++) {
        if (cards->listed_mib[i] >= 0)
            totals[n++] = cards->listed_mib[i];
    }
    qsort(totals, n, sizeof *totals, by_size);
    return totals[w->gpus - 1];
}

static int
check_mem(const struct mgpu_wish *w, const struct compat_cards *cards, struct err *e)
{
    int64_t most = most_of(w, cards);

    if (w->mem < 1)
        return err_set(e, ERR_USAGE, "mem is a number of MB above 0, not %lld",
                       (long long)w->mem);
    if (w->mem > most)
        return err_set(e, ERR_REFUSED, "%lld MB is more than %s could ever have, %lld MB",
                       (long long)w->mem, w->n_ids ? "these GPUs" : "so many GPUs",
                       (long long)most);
    return 0;
}

/* The least that any card has. A little is left: it would wait for ever on a card where a
 * stranger has come to use more than when it was submitted. */
static int64_t
default_mem(const struct compat_cards *cards)
{
    int64_t slack = cards->least_free_mib / 16;

    return cards->least_free_mib < 0
               ? 0
               : cards->least_free_mib - (slack < SLACK_MAX_MIB ? slack : SLACK_MAX_MIB);
}

static int
check_wish(struct mgpu_wish *w, const struct compat_cards *cards, struct err *e)
{
    if (w->gpus < 1 || w->gpus > n_of(cards))
        return err_set(e, ERR_REFUSED, "%lld GPUs: this machine has 1 to %d to give",
                       (long long)w->gpus, n_of(cards));
    if (w->n_ids > 0 && w->gpus > w->n_ids)
        return err_set(e, ERR_USAGE, "%lld GPUs of %d that are named", (long long)w->gpus,
                       w->n_ids);
    if (w->has_mem)
        return check_mem(w, cards, e);
    w->mem = default_mem(cards);
    return 0;
}

int
mgpu_read_wish(struct client *c, const json_t *request, struct mgpu_wish *w, struct err *e)
{
    struct compat_cards cards;

    if (read_fields(request, w, e) < 0 || read_cards(c, &cards, e) < 0 ||
        read_ids(request, &cards, w, e) < 0)
        return -1;
    return check_wish(w, &cards, e);
}
