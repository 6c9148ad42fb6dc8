/* A submit request of mgpu's protocol, checked, as a job of Berth's: the exact GPUs in the
 * order given, MB of each, the time limit that puts a job to the queue's end, the user's home
 * for folder and log, a login by bash. Asks berthd for the GPUs; whether a job may enter is the
 * daemon's word. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/answer.h"
#include "cli/compat/mgpu.h"
#include "cli/compat/pytext.h"
#include "wire/client.h"

#define ID_TRIES    5
#define SECONDS_MAX (INT64_C(100) * 365 * 86400)

/* What a request says. Texts are borrowed. */
struct wish {
    const char *command, *setup;
    int64_t gpus, mem, limit_s, priority;
    bool has_mem;
    int ids[GPU_MAX];
    int n_ids;
};

struct cards {
    int64_t total[GPU_MAX]; /* MiB; -1: there is no such card */
    int n;
    int64_t least_free; /* of any card, from what strangers leave; -1: not known */
};

/* ------------------------------------------------------------------ reading */

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

/* 1 and "1" are the same card. */
static int
read_id(const json_t *v, struct wish *w, const struct cards *cards, struct err *e)
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
    if (id < 0 || id >= GPU_MAX || cards->total[id] < 0)
        return err_set(e, ERR_REFUSED, "there is no GPU %s; there are %d, from 0 on",
                       buf_str(&shown), cards->n);
    for (int i = 0; i < w->n_ids; i++) {
        if (w->ids[i] == id)
            return err_set(e, ERR_USAGE, "GPU %lld is named twice", (long long)id);
    }
    w->ids[w->n_ids++] = (int)id;
    return 0;
}

static int
read_ids(const json_t *request, const struct cards *cards, struct wish *w, struct err *e)
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
read_wish(const json_t *request, struct wish *w, struct err *e)
{
    const char *user;
    bool has_gpus;

    *w = (struct wish){0};
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
    if (w->command[strspn(w->command, " \t\r\n")] == '\0')
        return err_set(e, ERR_USAGE, "the command is empty");
    if (w->limit_s < 0 || w->limit_s > SECONDS_MAX)
        return err_set(e, ERR_USAGE, "the time limit is a number of seconds, not %lld",
                       (long long)w->limit_s);
    return 0;
}

/* ------------------------------------------------------------------ the cards */

static int
read_cards(struct client *c, struct cards *out, struct err *e)
{
    auto_json json_t *result = NULL;
    size_t i;
    json_t *gpu;

    *out = (struct cards){.least_free = -1};
    memset(out->total, -1, sizeof out->total);
    if (client_call(c, "gpus", NULL, &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "gpus"), i, gpu)
    {
        int64_t index = answer_int(gpu, "index", -1), total = answer_int(gpu, "total_mib", 0);
        int64_t free_mib = total - answer_int(gpu, "external_mib", 0);

        if (index < 0 || index >= GPU_MAX)
            continue;
        out->total[index] = total;
        out->n++;
        if (free_mib > 0 && (out->least_free < 0 || free_mib < out->least_free))
            out->least_free = free_mib;
    }
    if (out->n == 0)
        return err_set(e, ERR_REFUSED, "no GPU is known yet: %s",
                       answer_str(result, "probe_error")[0] ? answer_str(result, "probe_error")
                                                            : "the driver shows none");
    return 0;
}

/* The most that each of the cards that it may have could give it. */
static int
check_mem(const struct wish *w, const struct cards *cards, struct err *e)
{
    int64_t most = 0, nth[GPU_MAX] = {0};

    if (!w->has_mem)
        return 0;
    if (w->mem < 1)
        return err_set(e, ERR_USAGE, "mem is a number of MB above 0, not %lld",
                       (long long)w->mem);
    for (int i = 0; i < GPU_MAX; i++) {
        int64_t total = w->n_ids == 0  ? cards->total[i]
                        : i < w->n_ids ? cards->total[w->ids[i]]
                                       : -1;

        /* Sorted, the largest first. */
        for (int at = 0; at < GPU_MAX; at++) {
            if (total > nth[at]) {
                int64_t moved = nth[at];

                nth[at] = total;
                total = moved;
            }
        }
    }
    most = nth[w->gpus - 1];
    if (w->mem > most)
        return err_set(e, ERR_REFUSED, "%lld MB is more than %s could ever have, %lld MB",
                       (long long)w->mem, w->n_ids ? "these GPUs" : "so many GPUs",
                       (long long)most);
    return 0;
}

static int
check_wish(const struct wish *w, const struct cards *cards, struct err *e)
{
    if (w->gpus < 1 || w->gpus > cards->n)
        return err_set(e, ERR_REFUSED, "%lld GPUs: this machine has 1 to %d to give",
                       (long long)w->gpus, cards->n);
    if (w->n_ids > 0 && w->gpus > w->n_ids)
        return err_set(e, ERR_USAGE, "%lld GPUs of %d that are named", (long long)w->gpus,
                       w->n_ids);
    return check_mem(w, cards, e);
}

/* ------------------------------------------------------------------ the job */

/* Of A-Z0-9, evenly. */
static int
make_id(char *out, struct err *e)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    unsigned char byte;

    for (int i = 0; i < MGPU_ID_LEN;) {
        if (getrandom(&byte, 1, 0) != 1)
            return err_errno(e, ERR_FAILED, errno, "cannot draw a job's id");
        if (byte < 252)
            out[i++] = letters[byte % 36];
    }
    out[MGPU_ID_LEN] = '\0';
    return 0;
}

/* One that no job has that waits or runs: 36^8 are many, but not endless. */
static int
draw_id(struct client *c, char *out, struct err *e)
{
    for (int i = 0; i < ID_TRIES; i++) {
        struct err why = {0};
        json_t *params;

        if (make_id(out, e) < 0)
            return -1;
        params =
            json_pack("{s:[o], s:[s]}", "select", json_sprintf("name:%s", out), "fields", "id");
        if (client_call(c, "jobs", params, NULL, &why) < 0 && why.code == ERR_NO_JOB)
            return 0;
        if (why.code) {
            *e = why;
            return -1;
        }
    }
    return err_set(e, ERR_FAILED, "cannot find an id that no job has");
}

static void
add_ids(struct jsonw *w, const char *key, const struct wish *wish)
{
    jsonw_key(w, key);
    jsonw_array(w);
    for (int i = 0; i < wish->n_ids; i++)
        jsonw_int(w, wish->ids[i]);
    jsonw_end_array(w);
}

/* All that are named, in their order; so many of them; or any, the freest first. */
static void
add_place(struct jsonw *w, const struct wish *wish, const struct cards *cards)
{
    int64_t mem = wish->has_mem ? wish->mem : cards->least_free;

    if (wish->n_ids == wish->gpus) {
        add_ids(w, "gpu_ids", wish);
    } else {
        jsonw_kint(w, "gpus", wish->gpus);
        if (wish->n_ids)
            add_ids(w, "devices", wish);
        jsonw_kstr(w, "placement", wish->n_ids ? "first" : "spread");
    }
    if (mem > 0)
        jsonw_kint(w, "vram_mib", mem);
    jsonw_kint(w, "margin_mib", 0);
}

static void
add_tags(struct jsonw *w, const struct wish *wish)
{
    jsonw_key(w, "tags");
    jsonw_array(w);
    jsonw_str(w, MGPU_TAG);
    if (wish->has_mem)
        jsonw_str(w, MGPU_TAG_MEM);
    jsonw_end_array(w);
}

/* Any number is fine with mgpu; Berth has so many steps. */
static int64_t
priority_of(const struct wish *wish)
{
    return wish->priority > PRIORITY_MAX   ? PRIORITY_MAX
           : wish->priority < PRIORITY_MIN ? PRIORITY_MIN
                                           : wish->priority;
}

static void
add_job(struct jsonw *w, const struct wish *wish, const struct cards *cards,
        const struct mgpu_service *s, const struct mgpu_submitted *out)
{
    int64_t limit_ms = wish->limit_s ? wish->limit_s * 1000 : s->max_job_ms;
    bool set_up = wish->setup && wish->setup[strspn(wish->setup, " \t\r\n")];

    jsonw_object(w);
    jsonw_kstr(w, "command", wish->command);
    jsonw_kstr(w, "name", out->id);
    add_tags(w, wish);
    jsonw_kstr(w, "log", out->log);
    add_place(w, wish, cards);
    jsonw_kint(w, "priority", priority_of(wish));
    if (limit_ms > 0) {
        jsonw_kint(w, "limit_ms", limit_ms);
        jsonw_kstr(w, "on_timeout", "requeue");
    }
    jsonw_kbool(w, "login", true);
    /* A set-up, even one of nothing, is run by bash, and the command behind it. */
    jsonw_kstr(w, "env_setup", set_up ? wish->setup : ":");
    jsonw_end_object(w);
}

/* What a login begins with; its profiles make the rest. */
static void
add_env(struct jsonw *w, const struct mgpu_user *u)
{
    static const char *const kept[] = {"LANG", "LC_ALL", "LC_CTYPE", "TZ"};
    auto_free char *home = xasprintf("HOME=%s", u->home);
    auto_free char *user = xasprintf("USER=%s", u->name);
    auto_free char *logname = xasprintf("LOGNAME=%s", u->name);
    auto_free char *shell = xasprintf("SHELL=%s", u->shell);

    jsonw_key(w, "env");
    jsonw_array(w);
    jsonw_str(w, home);
    jsonw_str(w, user);
    jsonw_str(w, logname);
    jsonw_str(w, shell);
    jsonw_str(w, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games");
    jsonw_str(w, "PYTHONUNBUFFERED=1");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *value = getenv(kept[i]);
        auto_free char *entry = value ? xasprintf("%s=%s", kept[i], value) : NULL;

        if (entry)
            jsonw_str(w, entry);
    }
    jsonw_end_array(w);
}

/* The log's name as berthd wants it: a percent sign is said twice. */
static char *
log_pattern(const char *path)
{
    auto_buf struct buf out = BUF_INIT;

    for (const char *p = path; *p; p++) {
        buf_addc(&out, *p);
        if (*p == '%')
            buf_addc(&out, '%');
    }
    return buf_take(&out);
}

static int
send_job(struct client *c, const struct wish *wish, const struct cards *cards,
         const struct mgpu_service *s, const struct mgpu_user *u, struct mgpu_submitted *out,
         struct err *e)
{
    auto_buf struct buf params = BUF_INIT;
    auto_free char *path = xasprintf("%s/.mgpu_job_%s.log", u->home, out->id);
    auto_json json_t *result = NULL;
    struct jsonw w;

    out->log = log_pattern(path);
    jsonw_init(&w, &params);
    jsonw_object(&w);
    jsonw_key(&w, "jobs");
    jsonw_array(&w);
    add_job(&w, wish, cards, s, out);
    jsonw_end_array(&w);
    jsonw_kstr(&w, "cwd", u->home);
    jsonw_kint(&w, "umask", 022);
    add_env(&w, u);
    jsonw_end_object(&w);
    free(out->log);
    out->log = TAKE(path);
    if (client_call_text(c, "submit", params.data, params.len, &result, e) < 0)
        return -1;
    out->job = json_integer_value(json_array_get(json_object_get(result, "ids"), 0));
    return 0;
}

int
mgpu_submit(struct client *c, const struct mgpu_service *s, const struct mgpu_user *u,
            const json_t *request, struct mgpu_submitted *out, struct err *e)
{
    struct cards cards;
    struct wish wish;

    *out = (struct mgpu_submitted){0};
    if (draw_id(c, out->id, e) < 0 || read_wish(request, &wish, e) < 0 ||
        read_cards(c, &cards, e) < 0 || read_ids(request, &cards, &wish, e) < 0 ||
        check_wish(&wish, &cards, e) < 0)
        return -1;
    return send_job(c, &wish, &cards, s, u, out, e);
}
