/* The table of job attributes: names, help and setters. Called by the jobs file's parser, by
 * scripts, and by the command line, which also makes its options and help from it. The
 * setters are attr_set.c's, the checks between attributes attr_check.c's. */
#include "spec/attr.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr_set.h"

#define BOTH      ATTR_JOBS_FILE | ATTR_COMMAND_LINE
#define LINE      ATTR_COMMAND_LINE
#define FILE_ONLY ATTR_JOBS_FILE

/* A row that takes a value, and a bare word; both are open at every door. */
#define VALUE(name, letter, metavar, help, setter)                                             \
    {                                                                                          \
        name, {NULL}, letter, BOTH, metavar, NULL, help, attr_set_##setter, NULL               \
    }
/* A value whose row has further names, at the end. */
#define VALUE_ALSO(name, letter, metavar, help, setter, ...)                                   \
    {                                                                                          \
        name, {__VA_ARGS__}, letter, BOTH, metavar, NULL, help, attr_set_##setter, NULL        \
    }
#define WORD(name, help, setter)                                                               \
    {                                                                                          \
        name, {NULL}, '\0', BOTH, NULL, NULL, help, attr_set_##setter, NULL                    \
    }
/* The same where a door is closed, and why. */
#define VALUE_AT(name, letter, doors, metavar, closed, help, setter)                           \
    {                                                                                          \
        name, {NULL}, letter, doors, metavar, closed, help, attr_set_##setter, NULL            \
    }
#define WORD_AT(name, doors, closed, help, setter)                                             \
    {                                                                                          \
        name, {NULL}, '\0', doors, NULL, closed, help, attr_set_##setter, NULL                 \
    }
/* The rows behind it, in help. */
#define GROUP(title)                                                                           \
    {                                                                                          \
        title, {NULL}, '\0', 0, NULL, NULL, NULL, NULL, NULL                                   \
    }

#define NO_TERMINAL                                                                            \
    "the lines of a file have no terminal in front of them; use berth submit, or screen"

static const struct attr attrs[] = {
    GROUP("GPUs"),
    VALUE("gpus", 'G', "N", "number of GPUs, 0 to 64; 0.5: a share of one (default 1)", gpus),
    VALUE("vram", '\0', "SIZE", "memory on each (18G, 8192M, auto); shares the GPU", vram),
    VALUE("share", '\0', "PART", "fraction of one GPU (0.5, 50%); shares it", share),
    WORD("exclusive", "allow no other job on its GPUs", exclusive),
    VALUE("gpu-ids", '\0', "LIST", "exactly these, in this order (3,1)", gpu_ids),
    VALUE("devices", '\0', "LIST", "any of these (0-3,6)", devices),
    VALUE("gpu-type", '\0', "TEXT", "only GPUs whose name contains it (a100)", gpu_type),
    VALUE("min-vram", '\0', "SIZE", "only GPUs of at least this size (40G)", min_vram),
    VALUE("max-used", '\0', "PART", "only while less memory is used (0.8, 80%)", max_used),
    VALUE("max-load", '\0', "PART", "only while it is less busy (0.8, 80%)", max_load),
    VALUE("margin", '\0', "SIZE", "keep this much free beside it (0, 512M)", margin),
    VALUE("idle", '\0', "SIZE", "a whole GPU may have other processes below this (1G)", idle),
    VALUE("placement", '\0', "RULE", "pack, spread, or first (the lowest number)", placement),
    GROUP("CPU and memory"),
    VALUE("cpus", 'c', "N", "cores to book", cpus),
    VALUE("mem", '\0', "SIZE", "memory to book (32G)", mem),
    GROUP("Time"),
    VALUE_ALSO("time", 't', "TIME",
               "limit: 90s, 15m, 2h, 1d12h, 12:30:00; a bare number is seconds", time,
               "timeout", "limit"),
    VALUE("on-timeout", '\0', "WHAT", "at the limit: kill (default) or requeue", on_timeout),
    VALUE("max-requeues", '\0', "N", "how often at most (default 3)", max_requeues),
    VALUE("signal", '\0', "SIG@TIME", "warning before the limit (USR2@60)", signal),
    VALUE("grace", '\0', "TIME", "time between TERM and KILL (default 10s)", grace),
    GROUP("When"),
    VALUE("priority", 'p', "N", "-1000 to 1000, higher first (default 0)", priority),
    VALUE("after", '\0', "JOBS", "start once these have completed (12,13, 12_3, names)", after),
    VALUE("after-any", '\0', "JOBS", "start once these have ended, in any way", after_any),
    VALUE("after-failed", '\0', "JOBS", "start once these have failed", after_failed),
    {"begin",
     {NULL},
     '\0',
     BOTH,
     "TIME",
     NULL,
     "start no earlier than: now+2h, 16:00, 2026-12-24T18:30",
     NULL,
     attr_set_begin},
    VALUE_AT("array", 'a', LINE, "TASKS",
             "a line is one job; write a line for each task, or use berth submit --array",
             "many tasks: 0-99, 1,3,5-9, 0-20:5; 0-99%8: 8 at a time", array),
    WORD("hold", "queue it held; `berth release` releases it", hold),
    WORD("unique", "refuse it if the same is pending, running or completed", unique),
    WORD("preemptible", "give way to higher priority, and run again later", preemptible),
    WORD_AT("cancel", FILE_ONLY, "it is a word for a line of a jobs file; use berth cancel",
            "stop it, or never start it", cancel),
    GROUP("After a failure"),
    VALUE("retries", '\0', "N", "run again after any failure, N times", retries),
    VALUE("oom-retries", '\0', "N", "after a CUDA out-of-memory, with more VRAM", oom_retries),
    WORD("requeue", "run again if it was lost (a crash, a reboot)", requeue),
    GROUP("At the terminal"),
    WORD_AT("interactive", LINE, NO_TERMINAL, "show its output here and send it what is typed",
            interactive),
    WORD_AT("pty", LINE, NO_TERMINAL, "the same, and it has its own terminal", pty),
    WORD("screen", "in a GNU screen session, for screen -r; `berth screens`", screen),
    GROUP("Environment"),
    VALUE("chdir", 'D', "DIR", "run it there (default: here)", chdir),
    VALUE("env", '\0', "K=V", "set this in its environment; may be repeated", env),
    WORD("slurm-env", "SLURM_* variables, and srun, as for a script with #SBATCH lines",
         slurm_env),
    VALUE("env-setup", '\0', "COMMAND", "run this first, in the same shell; must succeed",
          env_setup),
    VALUE("conda", '\0', "ENV", "activate this conda environment first", conda),
    WORD_AT("login", LINE,
            "the lines of a file share the environment of berth run; use berth submit --login",
            "in the environment of a fresh login, not this shell's", login),
    GROUP("Notifications"),
    VALUE("on-start", '\0', "COMMAND", "run this, as you, when it starts", on_start),
    VALUE("on-end", '\0', "COMMAND", "run this when it has ended, in any way", on_end),
    VALUE("on-fail", '\0', "COMMAND", "run this when it has failed", on_fail),
    VALUE("webhook", '\0', "URL", "post starts and ends there, as JSON", webhook),
    VALUE("mail-user", '\0', "ADDRESS", "send mail when it has ended (see --mail-type)",
          mail_user),
    VALUE("mail-type", '\0', "WHEN", "mail when: BEGIN,END,FAIL,REQUEUE,ALL", mail_type),
    GROUP("Names"),
    VALUE_ALSO("name", 'J', "NAME", "for tables and selectors", name, "job-name"),
    VALUE("tag", '\0', "TAG", "for selectors; repeat it, or a,b", tag),
    VALUE("comment", '\0', "TEXT", "free text, shown by `berth show`", comment),
    GROUP("Output"),
    VALUE_ALSO("log", 'o', "FILE", "where output goes; %j is the job's number (see berth(1))",
               log, "output"),
    VALUE("error", 'e', "FILE", "where standard error goes (default: with the output)", error),
    VALUE("log-max", '\0', "SIZE", "cut the middle out of a log that is longer (100M)",
          log_max),
    VALUE("open-mode", '\0', "MODE", "append to these files (default), or truncate", open_mode),
};
#define ATTRS (sizeof(attrs) / sizeof(attrs[0]))

const struct attr *
attr_at(size_t i)
{
    return i < ATTRS ? &attrs[i] : NULL;
}

/* Equal but for case and for `_` in the place of `-`. */
static bool
same_name(const char *said, const char *name)
{
    for (; *said && *name; said++, name++) {
        char a = *said == '_' ? '-' : *said;
        if (a != *name && (a < 'A' || a > 'Z' || a - 'A' + 'a' != *name))
            return false;
    }
    return *said == *name;
}

const struct attr *
attr_find(const char *name, unsigned doors)
{
    for (size_t i = 0; i < ATTRS; i++) {
        const struct attr *a = &attrs[i];
        if (!(a->doors & doors))
            continue; /* titles of groups are open nowhere */
        if (same_name(name, a->name))
            return a;
        for (size_t j = 0; j < ATTR_ALIASES_MAX && a->aliases[j]; j++)
            if (same_name(name, a->aliases[j]))
                return a;
    }
    return NULL;
}

/* Known, but not here: why. Unknown: the nearest known name, else all of them. */
static int
refuse_name(const char *name, enum attr_door door, struct err *e)
{
    const struct attr *elsewhere = attr_find(name, BOTH);
    const char *known[ATTRS * (ATTR_ALIASES_MAX + 1) + 1];
    auto_buf struct buf shown = BUF_INIT, list = BUF_INIT;
    const char *nearest;
    size_t n = 0;

    if (elsewhere)
        return err_set(e, ERR_USAGE, "%s: %s", elsewhere->name, elsewhere->closed);
    for (size_t i = 0; i < ATTRS; i++) {
        if (!(attrs[i].doors & door))
            continue;
        buf_addf(&list, "%s%s", n ? ", " : "", attrs[i].name);
        known[n++] = attrs[i].name;
        for (size_t j = 0; j < ATTR_ALIASES_MAX && attrs[i].aliases[j]; j++)
            known[n++] = attrs[i].aliases[j];
    }
    known[n] = NULL;
    nearest = text_nearest(name, known);
    text_add_safe(&shown, name, strlen(name), 60);
    if (nearest)
        return err_set(e, ERR_USAGE, "'%s' is not an attribute; did you mean '%s'?",
                       buf_str(&shown), nearest);
    return err_set(e, ERR_USAGE, "'%s' is not an attribute; there are %s", buf_str(&shown),
                   buf_str(&list));
}

int
attr_set_at(struct request *r, const char *name, const char *value, enum attr_door door,
            const struct when_clock *clock, struct err *e)
{
    const struct attr *a = attr_find(name, door);

    if (!a)
        return refuse_name(name, door, e);
    if (!value && a->metavar)
        return err_set(e, ERR_USAGE, "%s needs a value: %s=%s", a->name, a->name, a->metavar);
    if (a->set ? a->set(r, value ? value : "yes", e) != 0
               : a->set_at(r, value ? value : "", clock, e) != 0)
        return err_prefix(e, "%s", a->name);
    return 0;
}

int
attr_assign(struct request *r, const char *name, const char *value, enum attr_door door,
            struct err *e)
{
    return attr_set_at(r, name, value, door, NULL, e);
}
