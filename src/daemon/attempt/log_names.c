/* Paths of a job's log and, if requested, of its standard error file, with the % letters
 * filled in. berth-script(7) and the help of --log list the letters. */
#include "daemon/attempt/log_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/queue/job.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "spec/screenname.h"

#define WIDTH_MAX 10 /* as in Slurm */

/* Appends a name as part of a path; each / is replaced, so it makes no folder. */
static void
add_file_name(struct buf *out, const char *name)
{
    for (const char *c = name; *c; c++)
        buf_addc(out, *c == '/' ? '_' : *c);
}

/* "0-1"; nothing while the job has no GPU. */
static void
add_card_numbers(struct buf *out, const struct attempt *run)
{
    for (int i = 0; run && i < run->n_gpus; i++)
        buf_addf(out, i ? "-%d" : "%d", run->gpus[i]);
}

/* The host name up to its first dot. */
static void
add_host(struct buf *out)
{
    char name[256] = "";

    gethostname(name, sizeof name - 1);
    name[strcspn(name, ".")] = '\0';
    add_file_name(out, name[0] ? name : "localhost");
}

/* True if the letter must stay as it is: it differs from task to task, or is not known before
 * the start. */
static bool
is_open(const struct job *job, char letter)
{
    return job->tasks ? strchr("jJatrgs", letter) != NULL
                      : !job->run && (letter == 'g' || letter == 's');
}

/* False: not a number's letter. */
static bool
add_number(const struct job *job, char letter, int width, struct buf *out)
{
    uint32_t number;

    switch (letter) {
    case 'j':
    case 'J':
        number = job->id;
        break;
    case 'A':
        number = job->array ? job->array : job->id;
        break;
    case 'a':
    case 't':
        number = job->task >= 0 ? (uint32_t)job->task : 0;
        break;
    case 'r':
        number = job->run ? (uint32_t)job->run->number : 1;
        break;
    default:
        return false;
    }
    buf_addf(out, "%0*u", width, number);
    return true;
}

static bool
add_text(const struct instance *inst, const struct job *job, char letter, struct buf *out)
{
    switch (letter) {
    case 'x':
        add_file_name(out, job->req.name ? job->req.name : "job");
        return true;
    case 'u':
        add_file_name(out, daemon_owner_name(job));
        return true;
    case 'N':
        add_host(out);
        return true;
    case 'g':
        add_card_numbers(out, job->run);
        return true;
    case 's':
        if (job->run)
            launch_screen_name(inst, job, out);
        return true;
    case '%':
        buf_addc(out, '%');
        return true;
    default:
        return false;
    }
}

/* Fills in a pattern. Unknown letters stay as they are. */
static char *
fill_in(const struct instance *inst, const struct job *job, const char *pattern)
{
    auto_buf struct buf out = BUF_INIT;

    if (pattern[0] != '/')
        buf_addf(&out, "%s/", job->cwd ? job->cwd : "");
    for (const char *p = pattern; *p; p++) {
        const char *letter = p + 1;
        int width = 0;

        if (*p != '%') {
            buf_addc(&out, *p);
            continue;
        }
        for (; *letter >= '0' && *letter <= '9'; letter++)
            width = width * 10 + (*letter - '0') > WIDTH_MAX ? WIDTH_MAX
                                                             : width * 10 + (*letter - '0');
        if (*letter && !is_open(job, *letter) &&
            (add_number(job, *letter, width, &out) || add_text(inst, job, *letter, &out)))
            p = letter;
        else
            buf_addc(&out, '%');
    }
    return buf_take(&out);
}

/* The folder of logs; on Slurm that of the last attempt, or where the next one may be. The
 * caller frees. */
static char *
logs_of(const struct instance *inst, const struct job *job)
{
    int32_t number = job->run ? job->run->sent.folder : inst->shared.number;
    return shared_folder_logs(inst, job->req.demand.engine == ENGINE_SLURM ? number : 0);
}

char *
launch_log_path(const struct instance *inst, const struct job *job)
{
    if (job->req.log)
        return fill_in(inst, job, job->req.log);
    auto_free char *logs = inst->places.system ? xasprintf("%s/%u", inst->places.logs, job->uid)
                                               : logs_of(inst, job);
    return job->tasks ? xasprintf("%s/%%j.log", logs) : xasprintf("%s/%u.log", logs, job->id);
}

char *
launch_error_path(const struct instance *inst, const struct job *job)
{
    auto_free char *error = job->req.error ? fill_in(inst, job, job->req.error) : NULL;
    auto_free char *log = error ? launch_log_path(inst, job) : NULL;

    return error && strcmp(error, log) != 0 ? TAKE(error) : NULL;
}

char *
launch_attach_path(const struct instance *inst, const struct job *job)
{
    if ((!job->req.interactive && !job->req.screen) || !job->run)
        return NULL;
    return xasprintf("%s/%u.%d.sock", inst->places.attach, job->id, job->run->number);
}

void
launch_screen_name(const struct instance *inst, const struct job *job, struct buf *out)
{
    uint64_t cards = 0;
    for (int i = 0; i < job->run->n_gpus; i++)
        cards |= UINT64_C(1) << ledger_card(inst->ledger, job->run->gpus[i])->info.index;
    screen_name(&job->req, cards, job->id, out);
}
