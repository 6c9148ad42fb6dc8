/* The table of job attributes, and the doors through which people set them. attr_value.c
 * implements the kinds of rows; special setters are in attr_set.c and attr_hooks.c, and checks
 * between attributes in attr_check.c. */
#include "spec/attr.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr_hooks.h"
#include "spec/attr_set.h"
#include "spec/value.h"

#define BOTH      ATTR_JOBS_FILE | ATTR_COMMAND_LINE
#define LINE      ATTR_COMMAND_LINE
#define FILE_ONLY ATTR_JOBS_FILE

/* Named rows: with a value or as a bare word; open at every door, or only at some. */
#define VALUE_AT(NAME, DOORS, CLOSED, METAVAR, HELP)                                           \
    .name = (NAME), .doors = (DOORS), .closed = (CLOSED), .metavar = (METAVAR), .help = (HELP)
#define VALUE(NAME, METAVAR, HELP)         VALUE_AT(NAME, BOTH, NULL, METAVAR, HELP)
#define WORD_AT(NAME, DOORS, CLOSED, HELP) VALUE_AT(NAME, DOORS, CLOSED, NULL, HELP)
#define WORD(NAME, HELP)                   VALUE_AT(NAME, BOTH, NULL, NULL, HELP)
/* Heads the rows that follow, in help. */
#define TITLE(NAME) .name = (NAME)

/* The field that holds the value. */
#define FIELD_IN(STRUCT, KIND, FIELD, KEY)                                                     \
    .kind = (KIND), .at = offsetof(struct STRUCT, FIELD),                                      \
    .size = sizeof(((struct STRUCT *)NULL)->FIELD), .key = (KEY)
#define FIELD(KIND, FIELD, KEY) FIELD_IN(request, KIND, FIELD, KEY)
#define NUMBER(KIND, FIELD, KEY, MIN, MAX)                                                     \
    FIELD_IN(request, KIND, FIELD, KEY), .min = (MIN), .max = (MAX)
#define FLAG(FIELD, KEY)          FIELD_IN(request, ATTR_FLAG, FIELD, KEY)
#define INT(FIELD, KEY, MIN, MAX) NUMBER(ATTR_INT, FIELD, KEY, MIN, MAX)
#define MIB(FIELD, KEY, MIN)      NUMBER(ATTR_MIB, FIELD, KEY, MIN, VRAM_MAX_MIB)
#define PERMILLE(FIELD, KEY)      NUMBER(ATTR_PERMILLE, FIELD, KEY, 1, 1000)
#define TENTHS(FIELD, KEY)        NUMBER(ATTR_TENTHS, FIELD, KEY, 1, UINT8_MAX)
#define MS(FIELD, KEY, MAX)       NUMBER(ATTR_MS, FIELD, KEY, 0, MAX)
#define CHOICE(FIELD, KEY, WORDS) FIELD_IN(request, ATTR_CHOICE, FIELD, KEY), .words = (WORDS)
#define TEXT(FIELD, KEY, BYTES)   FIELD_IN(request, ATTR_TEXT, FIELD, KEY), .bytes = (BYTES)
#define HOOK(FIELD, KEY, CHECK)                                                                \
    FIELD_IN(hooks, ATTR_HOOK, FIELD, KEY), .check = (CHECK), .sight = ATTR_MINE

#define NO_TERMINAL "a line of a file has no terminal; use berth submit, or screen"

static const char *const at_limit[] = {
    [ON_TIMEOUT_KILL] = "kill", [ON_TIMEOUT_REQUEUE] = "requeue", NULL};
static const char *const excesses[] = {[ON_EXCEED_DEFAULT] = NULL,
                                       [ON_EXCEED_WARN] = "warn",
                                       [ON_EXCEED_KILL] = "kill",
                                       [ON_EXCEED_IGNORE] = "ignore",
                                       NULL};
static const char *const open_modes[] = {"append", "truncate", NULL};
static const char *const placements[] = {[PLACING_DEFAULT] = NULL,
                                         [PLACING_PACK] = "pack",
                                         [PLACING_SPREAD] = "spread",
                                         [PLACING_FIRST] = "first",
                                         NULL};
static const char *const engines[] = {[ENGINE_HERE] = "here", [ENGINE_SLURM] = "slurm", NULL};
static const char *const caps[] = {[VRAM_CAP_DEFAULT] = NULL,
                                   [VRAM_CAP_AUTO] = "auto",
                                   [VRAM_CAP_REQUIRE] = "require",
                                   [VRAM_CAP_OFF] = "off",
                                   NULL};

static const char *const binds[] = {[CPU_BIND_DEFAULT] = NULL,
                                    [CPU_BIND_AUTO] = "auto",
                                    [CPU_BIND_NODE] = "node",
                                    [CPU_BIND_OFF] = "off",
                                    NULL};

/* Sends the number of GPUs only if it was given: the daemon's model table may provide a better
 * value than the default. */
static bool
gpus_are_said(const struct request *r)
{
    const struct demand *d = &r->demand;

    return r->gpus_said || d->gpus != (d->n_ids ? d->n_ids : 1);
}

_Static_assert(TAGS_MAX == 16, "as the words below say");

static const struct attr attrs[] = {
    /* Not set as attributes, but parts of a request as well. */
    {TEXT(command, "command", 0), .settled = true},
    {FIELD(ATTR_LIST, argv, "argv"), .min = 1, .max = INT32_MAX,
     .want = "a list of at least one string", .unshown = true, .settled = true},
    {TEXT(llm, "llm", 0), .settled = true},
    {TEXT(submitted_as, "submitted_as", 0), .sight = ATTR_CUT, .settled = true},
    {TITLE("GPUs")},
    {VALUE("gpus", "N", "number of GPUs (default 1); 0.5: a share of one; a100:2: of a type"),
     .letter = 'G', INT(demand.gpus, "gpus", 0, GPU_MAX), .json = "gpus_wanted", .always = true,
     .is_said = gpus_are_said, .set = attr_set_gpus},
    {VALUE("vram", "SIZE", "memory on each (18G, 8192M, auto); shares the GPU"),
     MIB(demand.vram_mib, "vram_mib", 1), .set = attr_set_vram},
    {FLAG(vram_auto, "vram_auto")},
    {VALUE("share", "PART", "fraction of one GPU (0.5, 50%); shares it"),
     PERMILLE(demand.share_permille, "share_permille"), .json = "share", .set = attr_set_share},
    {WORD("exclusive", "allow no other job on its GPUs"), FLAG(demand.exclusive, "exclusive")},
    {VALUE("gpu-ids", "LIST", "exactly these, in this order (3,1)"),
     FIELD(ATTR_IDS, demand, "gpu_ids")},
    {VALUE("devices", "LIST", "any of these (0-3,6)"),
     FIELD(ATTR_CARDS, demand.devices, "devices")},
    {VALUE("gpu-type", "TEXT", "only GPUs whose name contains it (a100)"),
     FIELD(ATTR_TYPE, demand.gpu_type, "gpu_type"), .set = attr_set_gpu_type},
    {VALUE("min-vram", "SIZE", "only GPUs of at least this size (40G)"),
     MIB(demand.min_vram_mib, "min_vram_mib", 0), .set = attr_set_min_vram},
    {VALUE("gpu-cc", "VERSION", "only GPUs of at least this compute capability (8.0)"),
     TENTHS(demand.min_cc, "gpu_cc_tenths"), .json = "gpu_cc"},
    {VALUE("max-used", "PART", "only while less memory is used (0.8, 80%)"),
     PERMILLE(demand.max_used_permille, "max_used_permille"), .json = "max_used"},
    {VALUE("max-load", "PART", "only while its load is lower (0.8, 80%)"),
     PERMILLE(demand.max_load_permille, "max_load_permille"), .json = "max_load"},
    {VALUE("margin", "SIZE", "keep this much free beside it (0, 512M)"),
     MIB(demand.margin_mib, "margin_mib", 0), .set = attr_set_margin},
    {VALUE("idle", "SIZE", "a whole GPU may have other processes below this (1G)"),
     MIB(demand.idle_mib, "idle_mib", 1)},
    {VALUE("placement", "RULE", "pack, spread, or first (the lowest number)"),
     CHOICE(demand.placement, "placement", placements), .set = attr_set_placement},
    {VALUE("vram-cap", "WHEN", "enforce VRAM on a shared GPU: auto, require or off"),
     CHOICE(demand.vram_cap, "vram_cap", caps), .apart = true},
    {VALUE("on-exceed", "WHAT", "if it uses more VRAM than it declared: warn, kill or ignore"),
     CHOICE(on_exceed, "on_exceed", excesses), .apart = true},
    {TITLE("CPU and memory")},
    {VALUE("cpus", "N", "CPU cores to reserve"), .letter = 'c',
     INT(demand.cpus, "cpus", 0, CPUS_MAX), .set = attr_set_cpus},
    {VALUE("cpu-bind", "WHEN", "run on CPUs near its GPUs: auto (with --cpus), node or off"),
     CHOICE(demand.cpu_bind, "cpu_bind", binds), .apart = true},
    {VALUE("mem", "SIZE", "host memory to reserve (32G)"), MIB(demand.mem_mib, "mem_mib", 0),
     .set = attr_set_mem},
    {TITLE("Time")},
    {VALUE("time", "TIME", "limit: 90s, 15m, 2h, 1d12h, 12:30:00; a bare number is seconds"),
     .letter = 't', .aliases = {"timeout", "limit"}, MS(limit_ms, "limit_ms", LIMIT_MAX_MS),
     .set = attr_set_time},
    {VALUE("on-timeout", "WHAT", "at the limit: kill (default) or requeue"),
     CHOICE(on_timeout, "on_timeout", at_limit)},
    {VALUE("max-requeues", "N", "how often at most (default 3)"),
     INT(max_requeues, "max_requeues", 0, REQUEUES_MAX), .always = true},
    {VALUE("signal", "SIG@TIME", "warning before the limit (USR2@60)"),
     INT(warn_signal, "warn_signal", 1, 64), .set = attr_set_signal},
    {MS(warn_ms, "warn_ms", LIMIT_MAX_MS)},
    {FLAG(warn_batch, "warn_batch")},
    {VALUE("grace", "TIME", "time between TERM and KILL (default 10s)"),
     MS(grace_ms, "grace_ms", GRACE_MAX_MS), .always = true},
    {TITLE("When")},
    {VALUE("priority", "N", "-1000 to 1000, higher first (default 0)"), .letter = 'p',
     INT(priority, "priority", PRIORITY_MIN, PRIORITY_MAX), .always = true,
     .set = attr_set_priority},
    {VALUE("after", "JOBS", "start once these have completed (12,13, 12_3, names)"),
     FIELD(ATTR_DEPS, deps, "after"), .column = "deps", .set = attr_set_after},
    {VALUE("after-any", "JOBS", "start once these have ended, in any way"),
     .set = attr_set_after_any},
    {VALUE("after-failed", "JOBS", "start once these have failed"),
     .set = attr_set_after_failed},
    {WORD("singleton", "one at a time with your other jobs of its name, in order"),
     FLAG(singleton, "singleton")},
    {VALUE("begin", "TIME", "start no earlier than: now+2h, 16:00, 2026-12-24T18:30"),
     NUMBER(ATTR_US, begin_us, "begin_us", 0, BEGIN_MAX_US), .column = "wanted_begin_us",
     .unshown = true, .settled = true, .set_at = attr_set_begin},
    {TEXT(begin_said, "begin_said", 0), .unshown = true, .settled = true},
    {VALUE_AT("array", LINE,
              "a line is one job; write a line for each task, or use berth submit --array",
              "TASKS", "many tasks: 0-99, 1,3,5-9, 0-20:5; 0-99%8: 8 at a time"),
     .letter = 'a', FIELD(ATTR_TASKS, array, "array"), .column = "array_tasks", .settled = true,
     .set = attr_set_array},
    {INT(array_max, "array_max", 0, ARRAY_MAX), .unshown = true, .settled = true},
    {WORD("hold", "queue it held; `berth release` releases it"), FLAG(hold, "hold"),
     .unshown = true},
    {WORD("unique", "refuse it if the same is pending, running or completed"),
     FLAG(unique, "unique"), .column = "unique_job"},
    {WORD("preemptible", "give way to higher priority, and run again later"),
     FLAG(preemptible, "preemptible")},
    {WORD_AT("cancel", FILE_ONLY, "'cancel' is only for lines of a jobs file; use berth cancel",
             "stop it, or never start it"),
     FLAG(cancel, "cancel"), .unshown = true, .settled = true},
    {TITLE("Where")},
    {VALUE("on", "ENGINE", "here (default), or slurm: the cluster of this machine"),
     CHOICE(demand.engine, "on", engines), .column = "engine"},
    {WORD("pack", "on Slurm, run it beside others in allocations of whole GPUs"),
     FLAG(demand.pack, "pack")},
    {TITLE("After a failure")},
    {VALUE("retries", "N", "run again after any failure, N times"),
     INT(retries, "retries", 0, RETRIES_MAX), .always = true},
    {VALUE("oom-retries", "N", "after a CUDA out-of-memory, with more VRAM"),
     INT(oom_retries, "oom_retries", 0, RETRIES_MAX), .always = true},
    {WORD("requeue", "run again if it was lost (a crash, a reboot)"), FLAG(requeue, "requeue")},
    {TITLE("At the terminal")},
    {WORD_AT("interactive", LINE, NO_TERMINAL,
             "show its output here and send it what is typed"),
     FLAG(interactive, "interactive"), .settled = true},
    {WORD_AT("pty", LINE, NO_TERMINAL, "the same, on a terminal of its own"), FLAG(pty, "pty"),
     .settled = true},
    {INT(rows, "rows", 0, TTY_SIZE_MAX), .column = "tty_rows", .unshown = true,
     .settled = true},
    {INT(columns, "columns", 0, TTY_SIZE_MAX), .column = "tty_columns", .unshown = true,
     .settled = true},
    {WORD("screen", "in a GNU screen session, for screen -r; `berth screens`"),
     FLAG(screen, "screen")},
    {TITLE("Environment")},
    {VALUE("chdir", "DIR", "run it there (default: here)"), .letter = 'D',
     TEXT(chdir, "chdir", PATH_MAX - 1), .unshown = true},
    {VALUE("env", "K=V", "set this in its environment; may be repeated"),
     FIELD(ATTR_LIST, env, "env"), .max = INT32_MAX, .want = "a list of \"NAME=value\"",
     .column = "env_set", .sight = ATTR_MINE, .set = attr_set_env},
    {WORD("slurm-env", "SLURM_* variables, and srun, as for a script with #SBATCH lines"),
     FLAG(slurm_env, "slurm_env")},
    {VALUE("env-setup", "COMMAND", "run this first, in the same shell; must succeed"),
     TEXT(env_setup, "env_setup", 0), .sight = ATTR_CUT},
    {VALUE("conda", "ENV", "activate this conda environment first"), TEXT(conda, "conda", 0),
     .sight = ATTR_CUT},
    {VALUE("container", "IMAGE", "run it in this image, by podman or apptainer"),
     TEXT(container, "container", IMAGE_MAX_BYTES), .check = value_check_image,
     .sight = ATTR_PRIVATE, .apart = true},
    {VALUE("container-mount", "SRC:DST", "mount this there too (SRC:DST:ro); may be repeated"),
     FIELD(ATTR_LIST, container_mounts, "container_mounts"), .max = MOUNTS_MAX,
     .want = "a list of at most 32 mounts, \"SOURCE:DESTINATION[:ro]\"",
     .bytes = MOUNT_MAX_BYTES, .sight = ATTR_PRIVATE, .apart = true,
     .set = attr_set_container_mount},
    {WORD_AT("login", LINE,
             "the lines of a file share the environment of berth run; use berth submit --login",
             "in the environment of a fresh login, not this shell's"),
     FLAG(login, "login"), .settled = true},
    {TITLE("Notifications")},
    {VALUE("on-start", "COMMAND", "run this, as you, when it starts"),
     HOOK(on_start, "on_start", hooks_check_command)},
    {VALUE("on-end", "COMMAND", "run this when it has ended, in any way"),
     HOOK(on_end, "on_end", hooks_check_command)},
    {VALUE("on-fail", "COMMAND", "run this when it has failed"),
     HOOK(on_fail, "on_fail", hooks_check_command)},
    {VALUE("webhook", "URL", "post starts and ends there, as JSON"),
     HOOK(webhook, "webhook", hooks_check_url)},
    {VALUE("mail-user", "ADDRESS", "send mail when it has ended (see --mail-type)"),
     HOOK(mail_user, "mail_user", hooks_check_addresses)},
    {VALUE("mail-type", "WHEN", "mail when: BEGIN,END,FAIL,REQUEUE,ALL"),
     FIELD_IN(hooks, ATTR_MAIL, mail_types, "mail_type"), .sight = ATTR_MINE},
    {TITLE("Names")},
    {VALUE("name", "NAME", "for tables and selectors"), .letter = 'J', .aliases = {"job-name"},
     TEXT(name, "name", NAME_MAX_BYTES), .sight = ATTR_PRIVATE},
    {VALUE("tag", "TAG", "for selectors; repeat it, or a,b"), FIELD(ATTR_LIST, tags, "tags"),
     .max = TAGS_MAX, .want = "a list of at most 16 strings", .bytes = TAG_MAX_BYTES,
     .sight = ATTR_PRIVATE, .set = attr_set_tag},
    {VALUE("comment", "TEXT", "free text, shown by `berth show`"),
     TEXT(comment, "comment", COMMENT_MAX_BYTES), .sight = ATTR_PRIVATE},
    {TITLE("Output")},
    {VALUE("log", "FILE", "where output goes; %j is the job's number (see berth(1))"),
     .letter = 'o', .aliases = {"output"}, TEXT(log, "log", LOG_MAX_BYTES),
     .check = attr_check_file},
    {VALUE("error", "FILE", "where standard error goes (default: with the output)"),
     .letter = 'e', TEXT(error, "error", LOG_MAX_BYTES), .check = attr_check_file,
     .set = attr_set_error},
    {VALUE("log-max", "SIZE", "cut the middle out of a log that is longer (100M)"),
     MIB(log_max_mib, "log_max_mib", 0)},
    {VALUE("open-mode", "MODE", "append to these files (default), or truncate"),
     CHOICE(truncate, "open_mode", open_modes), .column = "truncates", .apart = true},
};
#define ATTRS (sizeof(attrs) / sizeof(attrs[0]))

const struct attr *
attr_at(size_t i)
{
    return i < ATTRS ? &attrs[i] : NULL;
}

const struct attr *
attr_of_key(const char *key)
{
    for (size_t i = 0; i < ATTRS; i++)
        if (attrs[i].key && attrs[i].key[0] == key[0] && strcmp(attrs[i].key, key) == 0)
            return &attrs[i];
    return NULL;
}

/* Compares ignoring case, and treats `_` as `-`. */
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
            continue; /* titles and fields without a name are open at no door */
        if (same_name(name, a->name))
            return a;
        for (size_t j = 0; j < ATTR_ALIASES_MAX && a->aliases[j]; j++)
            if (same_name(name, a->aliases[j]))
                return a;
    }
    return NULL;
}

/* Says why a known name is closed at this door; for an unknown one, suggests the nearest name
 * or lists all. */
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
        return err_set(e, ERR_USAGE, "unknown attribute '%s'; did you mean '%s'?",
                       buf_str(&shown), nearest);
    return err_set(e, ERR_USAGE, "unknown attribute '%s'; the attributes are %s",
                   buf_str(&shown), buf_str(&list));
}

static int
set_value(const struct attr *a, struct request *r, const char *value,
          const struct when_clock *clock, struct err *e)
{
    if (a->set_at)
        return a->set_at(r, value ? value : "", clock, e);
    return a->set ? a->set(r, value ? value : "yes", e)
                  : attr_read_text(a, r, value ? value : "yes", e);
}

int
attr_set_named(struct request *r, const char *name, const char *value, enum attr_door door,
               const struct when_clock *clock, struct err *e)
{
    const struct attr *a = attr_find(name, door);

    if (!a)
        return refuse_name(name, door, e);
    if (!value && a->metavar)
        return err_set(e, ERR_USAGE, "it needs a value: %s", a->metavar);
    return set_value(a, r, value, clock, e);
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
    return set_value(a, r, value, clock, e) < 0 ? err_prefix(e, "%s", a->name) : 0;
}

int
attr_assign(struct request *r, const char *name, const char *value, enum attr_door door,
            struct err *e)
{
    return attr_set_at(r, name, value, door, NULL, e);
}
