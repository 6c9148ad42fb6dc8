/* A submit request of mgpu's protocol as a job of Berth's: the exact GPUs in the order given,
 * MB of each, the time limit that puts a job to the queue's end, the user's home for folder and
 * log, a login by bash. Whether a job may enter is the daemon's word. */
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
#include "cli/ask/answer.h"
#include "compat/engine/compat_paths.h"
#include "compat/mgpu/mgpu.h"
#include "wire/client.h"

#define ID_TRIES 5

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

/* The log is made here: an id without one was never a job's, and that look costs the same
 * however many jobs there are. */
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
add_ids(struct jsonw *w, const char *key, const struct mgpu_wish *wish)
{
    jsonw_key(w, key);
    jsonw_array(w);
    for (int i = 0; i < wish->n_ids; i++)
        jsonw_int(w, wish->ids[i]);
    jsonw_end_array(w);
}

/* All that are named, in their order; a number of them; or any, the freest first. */
static void
add_place(struct jsonw *w, const struct mgpu_wish *wish)
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
add_tags(struct jsonw *w, const struct mgpu_wish *wish)
{
    jsonw_key(w, "tags");
    jsonw_array(w);
    jsonw_str(w, MGPU_TAG);
    if (wish->has_mem)
        jsonw_str(w, MGPU_TAG_MEM);
    jsonw_end_array(w);
}

static void
add_job(struct jsonw *w, const struct mgpu_wish *wish, const struct mgpu_service *s,
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

static int
send_job(struct client *c, const struct mgpu_wish *wish, const struct mgpu_service *s,
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

/* mgpu accepts any number; Berth has a limited range. */
static void
limit_priority(int64_t least, int64_t most, const struct mgpu_wish *wish,
               struct mgpu_submitted *out)
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

/* Scripts written for mgpu name priorities at will: they are not to fail where the machine's
 * settings keep the higher ones for its admins. */
static int
limit_as_told(struct client *c, const struct mgpu_wish *wish, struct mgpu_submitted *out)
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
    struct mgpu_wish wish;
    int rc;

    *out = (struct mgpu_submitted){0};
    if (make_id(out->id, e) < 0 || mgpu_read_wish(c, request, &wish, e) < 0 ||
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
