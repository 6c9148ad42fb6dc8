/* Requests as they go over the socket; see jobreq.h. What is at its default is not sent, so
 * that the daemon's own defaults hold. */
#include "cli/jobreq.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/cli.h"
#include "spec/jobsfile.h"

extern char **environ;

static void
add_positive(struct jsonw *w, const char *key, int64_t v)
{
    if (v > 0)
        jsonw_kint(w, key, v);
}

static void
add_flag(struct jsonw *w, const char *key, bool v)
{
    if (v)
        jsonw_kbool(w, key, true);
}

static void
add_demand(struct jsonw *w, const struct demand *d)
{
    jsonw_kint(w, "gpus", d->gpus);
    add_positive(w, "vram_mib", d->vram_mib);
    add_flag(w, "exclusive", d->exclusive);
    if (d->devices) {
        jsonw_key(w, "devices");
        jsonw_array(w);
        for (int i = 0; i < GPU_MAX; i++) {
            if (d->devices >> i & 1)
                jsonw_int(w, i);
        }
        jsonw_end_array(w);
    }
    if (d->n_ids) {
        jsonw_key(w, "gpu_ids");
        jsonw_array(w);
        for (int i = 0; i < d->n_ids; i++)
            jsonw_int(w, d->ids[i]);
        jsonw_end_array(w);
    }
    add_positive(w, "cpus", d->cpus);
    add_positive(w, "mem_mib", d->mem_mib);
}

void
jobreq_add_fields(struct jsonw *w, const struct request *r)
{
    struct request standard;

    request_init(&standard);
    if (r->argv) {
        jsonw_key(w, "argv");
        jsonw_array(w);
        for (char *const *arg = r->argv; *arg; arg++)
            jsonw_str(w, *arg);
        jsonw_end_array(w);
    } else {
        jsonw_kstr(w, "command", r->command);
    }
    if (r->name)
        jsonw_kstr(w, "name", r->name);
    if (r->log)
        jsonw_kstr(w, "log", r->log);
    add_demand(w, &r->demand);
    if (r->priority != standard.priority)
        jsonw_kint(w, "priority", r->priority);
    add_positive(w, "limit_ms", r->limit_ms);
    if (r->grace_ms != standard.grace_ms)
        jsonw_kint(w, "grace_ms", r->grace_ms);
    if (r->oom_retries >= 0 && r->oom_retries != standard.oom_retries)
        jsonw_kint(w, "oom_retries", r->oom_retries);
    add_positive(w, "retries", r->retries);
    add_flag(w, "hold", r->hold);
    add_flag(w, "requeue", r->requeue);
    request_free(&standard);
}

static bool
is_overridden(const char *entry, char *const *set)
{
    size_t n = strcspn(entry, "=") + 1;

    for (; set && *set; set++) {
        if (strncmp(entry, *set, n) == 0)
            return true;
    }
    return false;
}

static bool
is_sendable(const char *entry)
{
    return strchr(entry, '=') && text_is_utf8(entry, strlen(entry), NULL);
}

void
jobreq_say_unsendable(char *const *set)
{
    for (char **entry = environ; *entry; entry++) {
        auto_buf struct buf name = BUF_INIT;

        if (!strchr(*entry, '=') || is_sendable(*entry) || is_overridden(*entry, set))
            continue;
        text_add_safe(&name, *entry, strcspn(*entry, "="), 80);
        cli_say("%s is not UTF-8 and is not passed on", buf_str(&name));
    }
}

int
jobreq_check_folder(const char *cwd, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;

    if (text_is_utf8(cwd, strlen(cwd), NULL))
        return 0;
    text_add_safe(&shown, cwd, strlen(cwd), 0);
    return err_set(e, ERR_USAGE, "the name of the folder %s is not UTF-8; give it another name",
                   buf_str(&shown));
}

char *
jobreq_current_folder(struct err *e)
{
    auto_free char *here = getcwd(NULL, 0);

    if (!here && errno == ENOENT)
        err_set(e, ERR_USAGE, "the current folder has gone; cd somewhere, or name one with -D");
    else if (!here)
        err_errno(e, ERR_USAGE, errno, "cannot tell the current folder");
    else if (jobreq_check_folder(here, e) == 0)
        return TAKE(here);
    return NULL;
}

void
jobreq_add_context(struct jsonw *w, const char *cwd, char *const *set)
{
    mode_t bits = umask(0);

    umask(bits);
    jsonw_kstr(w, "cwd", cwd);
    jsonw_kint(w, "umask", bits);
    jsonw_key(w, "env");
    jsonw_array(w);
    for (char **entry = environ; *entry; entry++) {
        if (is_sendable(*entry) && !is_overridden(*entry, set))
            jsonw_str(w, *entry);
    }
    for (; set && *set; set++)
        jsonw_str(w, *set);
    jsonw_end_array(w);
}

void
jobreq_add_lines(struct jsonw *w, const struct jobsfile *f)
{
    jsonw_key(w, "jobs");
    jsonw_array(w);
    for (size_t i = 0; i < f->n_lines; i++) {
        const struct jobsfile_line *line = &f->lines[i];

        jsonw_object(w);
        jobreq_add_fields(w, &line->req);
        jsonw_kstr(w, "key", line->key);
        jsonw_kint(w, "line", line->line);
        add_flag(w, "cancel", line->req.cancel);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}
