/* Turns a submit request of mgpu's protocol into a Berth job: the given GPUs in their order,
 * MB per GPU, a time limit that requeues the job at the end, the user's home as folder and for
 * the log, and a login shell (bash). Types, GPUs and memory are checked first, and errors
 * reported before anything is done. Admission is decided by the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "compat/engine/compat_cards.h"
#include "compat/engine/compat_paths.h"
#include "compat/mgpu/mgpu.h"
#include "compat/py/pytext.h"
#include "wire/client.h"

#define ID_TRIES      5
#define SECONDS_MAX   (INT64_C(100) * 365 * 86400)
#define SLACK_MAX_MIB 512

/* Contents of a request. Texts are borrowed. */
struct wish {
    const char *command, *setup;
    int64_t gpus, limit_s, priority;
    int64_t mem; /* MiB per GPU; 0: whole GPUs */
    bool has_mem, interactive;
    int ids[GPU_MAX];
    int n_ids;
};

/* --- reading --- */

/* Read an optional integer. -1 with e. */
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

/* Accept 1 and "1". */
static int
read_id(const json_t *v, struct wish *w, const struct compat_cards *cards, struct err *e)
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
read_ids(const json_t *request, const struct compat_cards *cards, struct wish *w, struct err *e)
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
read_fields(const json_t *request, struct wish *w, struct err *e)
{
    const json_t *interactive = json_object_get(request, "interactive");
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

/* --- GPUs --- */

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

/* Upper bound on the memory per GPU: the size of the gpus-th largest of the allowed GPUs. */
static int64_t
most_of(const struct wish *w, const struct compat_cards *cards)
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
check_mem(const struct wish *w, const struct compat_cards *cards, struct err *e)
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

/* The smallest free memory of any GPU, less some slack: otherwise the job might wait forever
 * once a foreign process uses more than at submission. */
static int64_t
default_mem(const struct compat_cards *cards)
{
    int64_t slack = cards->least_free_mib / 16;

    return cards->least_free_mib < 0
               ? 0
               : cards->least_free_mib - (slack < SLACK_MAX_MIB ? slack : SLACK_MAX_MIB);
}

static int
check_wish(struct wish *w, const struct compat_cards *cards, struct err *e)
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

/* Read the request and check it against the daemon's GPUs. User names in it are ignored: the
 * socket tells the user. */
static int
read_wish(struct client *c, const json_t *request, struct wish *w, struct err *e)
{
    struct compat_cards cards;

    if (read_fields(request, w, e) < 0 || read_cards(c, &cards, e) < 0 ||
        read_ids(request, &cards, w, e) < 0)
        return -1;
    return check_wish(w, &cards, e);
}

/* --- the job --- */

/* A random id of A-Z0-9, uniformly distributed. */
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

static char *
log_name(const char *id)
{
    return xasprintf(".mgpu_job_%s.log", id);
}

char *
mgpu_log_path(const struct mgpu_user *u, const char *id)
{
    auto_free char *name = log_name(id);

    return xasprintf("%s/%s", u->home, name);
}

/* Claim the id by creating the log: if the file did not exist, no job had the id. The cost
 * does not depend on the number of jobs. */
static int
claim_id(const struct mgpu_user *u, struct mgpu_submitted *out, struct err *e)
{
    for (int i = 0; i < ID_TRIES; i++) {
        auto_free char *path = mgpu_log_path(u, out->id);
        auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

        if (fd >= 0) {
            out->log = TAKE(path);
            return 0;
        }
        if (errno != EEXIST)
            return err_errno(e, ERR_FAILED, errno, "cannot make the job's log, %s", path);
        if (make_id(out->id, e) < 0)
            return -1;
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

/* All named GPUs in their order; some of the named ones; or any, the freest first. */
static void
add_place(struct jsonw *w, const struct wish *wish)
{
    if (wish->n_ids == wish->gpus) {
        add_ids(w, "gpu_ids", wish);
    } else {
        jsonw_kint(w, "gpus", wish->gpus);
        if (wish->n_ids)
            add_ids(w, "devices", wish);
        jsonw_kstr(w, "placement", wish->n_ids ? "first" : "spread");
    }
    if (wish->mem > 0)
        jsonw_kint(w, "vram_mib", wish->mem);
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

static void
add_job(struct jsonw *w, const struct wish *wish, const struct mgpu_service *s,
        const struct mgpu_user *u, const struct mgpu_submitted *out)
{
    auto_free char *name = log_name(out->id);
    auto_free char *pattern = compat_log_pattern(u->home, name);
    int64_t limit_ms = wish->limit_s ? wish->limit_s * 1000 : s->max_job_ms;
    bool set_up = wish->setup && wish->setup[strspn(wish->setup, " \t\r\n")];

    jsonw_object(w);
    jsonw_kstr(w, "command", wish->command);
    jsonw_kstr(w, "name", out->id);
    add_tags(w, wish);
    jsonw_kstr(w, "log", pattern);
    add_place(w, wish);
    jsonw_kint(w, "priority", out->priority);
    if (limit_ms > 0) {
        jsonw_kint(w, "limit_ms", limit_ms);
        jsonw_kstr(w, "on_timeout", "requeue");
    }
    jsonw_kbool(w, "login", true);
    /* With a set-up, even an empty one, bash runs it and then the command. */
    jsonw_kstr(w, "env_setup", set_up ? wish->setup : ":");
    jsonw_end_object(w);
}

/* Initial environment of a login; shell profiles add the rest. */
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

static int
send_job(struct client *c, const struct wish *wish, const struct mgpu_service *s,
         const struct mgpu_user *u, struct mgpu_submitted *out, struct err *e)
{
    auto_buf struct buf params = BUF_INIT;
    auto_json json_t *result = NULL;
    struct jsonw w;

    jsonw_init(&w, &params);
    jsonw_object(&w);
    jsonw_key(&w, "jobs");
    jsonw_array(&w);
    add_job(&w, wish, s, u, out);
    jsonw_end_array(&w);
    jsonw_kstr(&w, "cwd", u->home);
    jsonw_kint(&w, "umask", u->umask_bits);
    add_env(&w, u);
    jsonw_end_object(&w);
    if (client_call_text(c, "submit", params.data, params.len, &result, e) < 0)
        return -1;
    out->job = json_integer_value(json_array_get(json_object_get(result, "ids"), 0));
    return 0;
}

/* mgpu accepts any number; clamp it to Berth's range. */
static void
limit_priority(int64_t least, int64_t most, const struct wish *wish, struct mgpu_submitted *out)
{
    out->priority = wish->priority > most    ? most
                    : wish->priority < least ? least
                                             : wish->priority;
    if (out->priority != wish->priority)
        snprintf(out->note, sizeof out->note,
                 "priority %lld is %s %lld, the %s that this machine's settings let you ask "
                 "for, and counts as that",
                 (long long)wish->priority, wish->priority > most ? "above" : "below",
                 (long long)out->priority, wish->priority > most ? "highest" : "lowest");
}

/* Clamp the priority to what the daemon allows this user: scripts for mgpu set priorities
 * freely and must not fail where higher ones are reserved for admins. */
static int
limit_as_told(struct client *c, const struct wish *wish, struct mgpu_submitted *out)
{
    auto_json json_t *status = NULL;
    int64_t most;

    if (client_call(c, "status", NULL, &status, NULL) < 0)
        return -1;
    most = answer_int(status, "priority_max", PRIORITY_MAX);
    if (out->priority <= most)
        return -1;
    limit_priority(PRIORITY_MIN, most, wish, out);
    return 0;
}

int
mgpu_submit(struct client *c, const struct mgpu_service *s, const struct mgpu_user *u,
            const json_t *request, struct mgpu_submitted *out, struct err *e)
{
    struct wish wish;
    int rc;

    *out = (struct mgpu_submitted){0};
    if (make_id(out->id, e) < 0 || read_wish(c, request, &wish, e) < 0 ||
        claim_id(u, out, e) < 0)
        return -1;
    out->interactive = wish.interactive;
    limit_priority(PRIORITY_MIN, PRIORITY_MAX, &wish, out);
    rc = send_job(c, &wish, s, u, out, e);
    if (rc < 0 && e->code == ERR_PERMISSION && limit_as_told(c, &wish, out) == 0)
        rc = send_job(c, &wish, s, u, out, e);
    if (rc < 0) {
        (void)unlink(out->log);
        free(TAKE(out->log));
    }
    return rc;
}
