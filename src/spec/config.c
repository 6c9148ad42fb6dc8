/* The table of settings, and setting them. To add a setting, add a field in struct config and
 * a row here; reading (config_read.c), ranges, sample and `config show` (config_show.c) follow
 * from it. base/parse parses the values, so YAML too accepts no 1e3, 0x10 or nan. Called by
 * berthd and by the `config` verb. */
#include "spec/config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr.h"
#include "spec/attr_hooks.h"
#include "spec/capabilities.h"
#include "spec/config_table.h"
#include "spec/value.h"

#define PATTERN_MAX_BYTES 200
#define PATH_MAX_BYTES    4095
#define SHOWN_COLUMNS     60

#define INT(name, min, max, standard, help)                                                    \
    {                                                                                          \
#name, TYPE_INT, offsetof(struct config, name), min, max, standard, {NULL }, help      \
    }
#define FRACTION(name, min, max, standard, help)                                               \
    {                                                                                          \
#name, TYPE_FRACTION, offsetof(struct config, name), min, max, standard, {NULL }, help \
    }
#define CHOICE(name, standard, help, ...)                                                      \
    {                                                                                          \
#name, TYPE_CHOICE, offsetof(struct config, name), 0, 0, standard,                     \
            {__VA_ARGS__ }, help                                                               \
    }
#define TEXT(name, max, standard, help)                                                        \
    {                                                                                          \
#name, TYPE_TEXT, offsetof(struct config, name), 0, max, standard, {NULL }, help       \
    }
#define PATH(name, help)                                                                       \
    {                                                                                          \
#name, TYPE_PATH, offsetof(struct config, name), 0, PATH_MAX_BYTES, "", {NULL }, help  \
    }
#define USERS(name, help)                                                                      \
    {                                                                                          \
#name, TYPE_USERS, offsetof(struct config, name), 0, CONFIG_USERS_MAX, NULL,           \
            {NULL }, help                                                                      \
    }
#define LIST(name, help)                                                                       \
    {                                                                                          \
#name, TYPE_LIST, offsetof(struct config, name), 0, 0, NULL, {NULL }, help             \
    }

const struct setting config_settings[] = {
    INT(margin_mib, 0, VRAM_MAX_MIB, "512",
        "MiB kept free on a GPU in addition to every request"),
    INT(idle_threshold_mib, 1, VRAM_MAX_MIB, "1024",
        "a GPU is idle while other processes use less than this many MiB of it"),
    FRACTION(spike_buffer, 0, 10, "0.1", "fraction added to measured peaks"),
    FRACTION(tolerance, 0, 1, "0.1",
             "how far measured VRAM may be from the declared amount before it is reported"),
    CHOICE(placement, "pack",
           "which GPU with room: the fullest (pack) or the emptiest (spread)", "pack",
           "spread"),
    INT(sample_ms, 50, 3600000, "1000", "milliseconds between samples while jobs run"),
    INT(idle_sample_ms, 50, 3600000, "10000", "milliseconds between samples while no jobs run"),
    INT(probe_deadline_ms, 100, 600000, "15000",
        "a probe that is silent for this many milliseconds is replaced"),
    INT(vram_wait_ms, 0, 600000, "10000",
        "the longest wait, in milliseconds, for an ended job's VRAM to come back"),
    INT(mig_wait_ms, 0, 86400000, "600000",
        "milliseconds during which a MIG instance that was removed may come back"),
    INT(grace_ms, 0, 86400000, "10000", "milliseconds between TERM and KILL"),
    INT(idle_exit_s, 0, 31536000, "300",
        "a daemon that `berth run` started exits after this many idle seconds; 0: never"),
    LIST(oom_patterns,
         "texts at the end of a log that mean CUDA out of memory; case is ignored"),
    INT(oom_retries, 0, RETRIES_MAX, "0",
        "retries with more VRAM after a CUDA out-of-memory, for jobs that do not set it"),
    CHOICE(gpu_env, "index", "contents of CUDA_VISIBLE_DEVICES", "index", "uuid"),
    CHOICE(on_exceed, "warn", "what happens to a job that uses more VRAM than it declared",
           "warn", "kill", "ignore"),
    TEXT(on_exceed_gpus, 1000, "", "the same for jobs on some GPUs: 0-3=kill 5=ignore"),
    CHOICE(
        vram_cap, "auto",
        "whether a job that shares a GPU is held to the VRAM it declared, and tolerance: where "
        "the GPU can enforce it (auto), only on such GPUs (require), or never",
        "auto", "require", "off"),
    TEXT(
        mps, 300, "off",
        "on which GPUs jobs that share one are clients of MPS, one user at a time: off, on, or "
        "0-3,5"),
    CHOICE(cpu_bind, "auto",
           "whether jobs with GPUs run on CPUs of their NUMA node only: if they book cores and "
           "those are free there (auto), always (node), or never",
           "auto", "node", "off"),
    INT(keep_days, 0, 36500, "90", "days after which ended jobs are deleted; 0: never"),
    INT(keep_jobs, 0, 4000000000, "1000000",
        "number of ended jobs to keep, the newest ones; 0: all"),
    INT(keep_mib, 0, 100000000, "4096",
        "ended jobs of the largest user are deleted while the database has more than this; "
        "0: any size"),
    INT(keep_events, 0, 1000000000, "200000", "how many events are kept; 0: all"),
    INT(pending_max, 1, 10000000, "1000000", "the largest number of pending jobs"),
    CHOICE(order, "balanced", "order of jobs within a priority and among users with equal use",
           "queue", "short", "longest", "balanced"),
    INT(patience_s, 0, 31536000, "14400",
        "a job that others have passed for this many seconds gets GPUs reserved, if it is "
        "unknown when jobs end"),
    INT(reservations, -1, 16, "-1",
        "how many pending jobs at a time get a firm start, which never gets later; 0: none; "
        "-1: one, none under `short`"),
    INT(reservation_horizon_s, -1, 31536000, "-1",
        "a start becomes firm when it is at most so many seconds away; 0: however far it is; "
        "-1: 3600, but 0 under `balanced` while no job without a time limit waits"),
    INT(aging_s, 0, 31536000, "86400",
        "a pending job's priority grows by one each time this many seconds have passed; 0: "
        "never"),
    CHOICE(fair_share, "on", "whether users who have used less come first", "off", "on"),
    INT(fair_half_life_s, 0, 31536000, "86400",
        "past use counts half after this many seconds; 0: it always counts fully"),
    INT(max_running, 0, 1000000, "0", "the largest number of running jobs; 0: no limit"),
    INT(max_gpus, 0, 1000000, "0",
        "the largest number of GPUs that jobs hold; a shared one counts for each job; 0: no "
        "limit"),
    INT(max_vram_mib, 0, 1000000000, "0",
        "the largest total of VRAM, in MiB, that running jobs have requested; 0: no limit"),
    INT(user_max_running, 0, 1000000, "0", "the same for each user: running jobs; 0: no limit"),
    INT(user_max_gpus, 0, 1000000, "0", "GPUs held by one user; 0: no limit"),
    INT(user_max_vram_mib, 0, 1000000000, "0",
        "VRAM requested by one user, in MiB; 0: no limit"),
    INT(user_max_pending, -1, 10000000, "-1",
        "pending jobs of one user; 0: no limit; -1: a tenth of pending_max, if the daemon "
        "serves all users"),
    INT(time_max_s, 0, 3153600000, "0", "the longest time limit, in seconds; 0: any"),
    INT(time_default_s, 0, 3153600000, "0",
        "the time limit, in seconds, of jobs that request none; 0: none"),
    TEXT(env_setup, SETUP_MAX_BYTES, "",
         "shell text run before the command of jobs without --env-setup"),
    TEXT(conda, CONDA_MAX_BYTES, "",
         "conda environment of jobs without --conda: its name or path"),
    TEXT(admin_group, 64, "",
         "berthd --system: members of this group may do to any job what its owner may, and "
         "pause GPUs; root always may"),
    CHOICE(private, "off",
           "berthd --system: whether users see only the owner, the state and the resources of "
           "other users' jobs",
           "off", "on"),
    TEXT(pam_service, 255, "berth",
         "berthd --system: the PAM service that says whether an account may run jobs, and "
         "with which limits: its name, or the path of its file; empty: PAM is not used"),
    CHOICE(locked_accounts, "refuse",
           "berthd --system: whether jobs start if their account's password is locked (usermod "
           "-L)",
           "refuse", "run"),
    CHOICE(
        no_new_privs, "off",
        "berthd --system: whether sudo, su, ping and other setuid programs have no effect in "
        "jobs",
        "off", "on"),
    TEXT(drop_capabilities, 1000, "",
         "berthd --system: capabilities that nothing in a job can get, root's jobs included: "
         "sys_module,net_raw or all; none: as in a login"),
    CHOICE(
        device_filter, "auto",
        "whether jobs can open only their own cards, which needs root and cgroup v2; cards "
        "are then named by UUID in CUDA_VISIBLE_DEVICES. auto: with berthd --system, where it "
        "works",
        "off", "on", "auto"),
    INT(job_max_processes, 16, 4194304, "16384",
        "processes and threads of one job, where cgroups have a pids controller"),
    INT(job_log_max_mib, 0, 100000000, "10240",
        "the largest log of a job, in MiB: the middle of a longer one is cut out; 0: any size"),
    INT(log_reserve_mib, 0, 100000000, "512",
        "MiB that logs leave free on the disk of the queue, if they are on it; 0: none"),
    INT(request_max_mib, 1, 64, "8",
        "berthd --system: the longest request of a user, in MiB; longer ones must be split"),
    INT(answer_max_mib, 1, 256, "64",
        "berthd --system: the longest answer to one request of a user, in MiB"),
    INT(job_max_text_kib, 64, 65536, "2048",
        "berthd --system: the longest command of a user's job, and the largest environment, in "
        "KiB"),
    INT(user_max_connections, 4, 1000, "64",
        "berthd --system: connections that one user may have"),
    INT(user_max_buffer_mib, 16, 65536, "128",
        "berthd --system: memory that one user's requests and unread answers may take, in MiB"),
    INT(grace_max_ms, 0, 86400000, "60000",
        "berthd --system: the longest --grace, in milliseconds, of a user's job; an admin's "
        "may have any"),
    INT(user_priority_max, PRIORITY_MIN, PRIORITY_MAX, "0",
        "berthd --system: the highest priority of a user's job; an admin's may have any"),
    USERS(users, "limits of individual users: alice: {weight: 2, max_running: 4, max_gpus: 2, "
                 "max_vram_mib: 40000, max_pending: 100}"),
    CHOICE(container_runtime, "auto",
           "what runs jobs with --container; auto: podman if it is installed, else apptainer, "
           "which also runs image files",
           "auto", "podman", "apptainer"),
    PATH(models,
         "a table of what models need, for commands with --llm NAME; read again when it "
         "changes"),
    PATH(slurm_commands,
         "the folder of Slurm's sbatch, squeue and scancel, for jobs with --on slurm; empty: "
         "look in PATH"),
    PATH(slurm_folder,
         "the folder that jobs with --on slurm share with their nodes, which must have it at "
         "the same path: on NFS, Lustre and the like; empty: the folder of the queue"),
    TEXT(slurm_partition, 200, "", "the partition of jobs with --on slurm; empty: Slurm's own"),
    TEXT(slurm_account, 200, "", "the account they are charged to; empty: the user's own"),
    TEXT(slurm_qos, 200, "", "their quality of service; empty: Slurm's own"),
    TEXT(slurm_options, 1000, "", "more options for sbatch: --constraint=ib --exclude=node7"),
    INT(slurm_shard_mib, 0, VRAM_MAX_MIB, "0",
        "MiB of VRAM for which one shard of a GPU stands; 0: ask for whole GPUs"),
    INT(slurm_max_jobs, 1, 100000, "1000", "jobs that Slurm is given at the same time"),
    INT(slurm_array_max, 1, 100000, "1000",
        "jobs that are sent to Slurm as one array (MaxArraySize of the cluster, less 1)"),
    INT(slurm_pack_mib, 0, VRAM_MAX_MIB, "0",
        "jobs on Slurm with at most so many MiB of VRAM are packed without --pack; 0: none"),
    INT(slurm_allocations, 1, 1000, "8", "allocations for packed jobs at the same time"),
    INT(slurm_allocation_gpus, 0, GPU_MAX, "1", "GPUs of an allocation, on one node"),
    INT(slurm_allocation_cpus, 0, 4096, "0", "its CPU cores; 0: Slurm's default"),
    INT(slurm_allocation_mem_mib, 0, VRAM_MAX_MIB, "0",
        "its host memory, in MiB; 0: Slurm's default"),
    INT(slurm_allocation_s, 1, 31536000, "14400", "its time limit, in seconds"),
    INT(slurm_allocation_idle_s, 0, 86400, "60",
        "seconds without a job after which it is given back"),
    INT(slurm_gpu_mib, 0, VRAM_MAX_MIB, "0",
        "memory of a GPU of the cluster, in MiB, where nodes cannot tell; 0: then GPUs are not "
        "shared"),
    TEXT(on_start, HOOK_MAX_BYTES, "",
         "a command that is run when a job starts; BERTH_JOB_ID and others identify it"),
    TEXT(on_end, HOOK_MAX_BYTES, "", "the same when one has ended, in any way"),
    TEXT(on_fail, HOOK_MAX_BYTES, "", "the same when one has failed"),
    TEXT(webhook, WEBHOOK_MAX_BYTES, "",
         "a URL to which starts and ends of jobs are posted as JSON"),
    TEXT(hook_user, 64, "",
         "berthd --system: the account that runs on_start, on_end, on_fail and webhook of "
         "these settings; empty: berth-hook, or nobody if there is no berth-hook"),
    INT(hook_limit_s, 1, 3600, "60",
        "seconds that a hook, a post or a mail may take before it is stopped"),
    PATH(sendmail, "the program that sends mail; empty: search the usual places"),
    CHOICE(log_level, "info", "level of the daemon's log", "error", "warn", "info", "debug"),
    CHOICE(log_format, "text", "format of its lines: text, or one JSON object per line", "text",
           "json"),
    INT(log_max_mib, 0, 1000000, "16",
        "the daemon's log is rotated when it has grown to this many MiB; 0: never"),
    INT(log_keep, 0, 1000, "5", "number of rotated logs to keep"),
};

static const char *const standard_patterns[] = {
    "cuda out of memory",       "torch.outofmemoryerror",    "cuda error: out of memory",
    "cuda_error_out_of_memory", "cudaerrormemoryallocation", "resource_exhausted",
};
#define STANDARD_PATTERNS (sizeof(standard_patterns) / sizeof(standard_patterns[0]))

_Static_assert(LOG_LEVEL_ERROR == 0 && LOG_LEVEL_DEBUG == 3, "the choices of log_level");
_Static_assert(LOG_FORMAT_TEXT == 0 && LOG_FORMAT_JSON == 1, "the choices of log_format");

static void *
field_of(const struct setting *s, struct config *c)
{
    return (char *)c + s->offset;
}

static const void *
const_field_of(const struct setting *s, const struct config *c)
{
    return (const char *)c + s->offset;
}

const struct setting *
config_find(const char *key)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++)
        if (strcmp(key, config_settings[i].key) == 0)
            return &config_settings[i];
    return NULL;
}

static size_t
list_len(char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static char **
copy_list(const char *const *items, size_t n)
{
    char **list = xcalloc(n + 1, sizeof *list);

    for (size_t i = 0; i < n; i++)
        list[i] = xstrdup(items[i]);
    return list;
}

/* Patterns are matched against lower-case text. */
static void
lower_list(char **list)
{
    for (char **p = list; *p; p++)
        for (char *c = *p; *c; c++)
            if (*c >= 'A' && *c <= 'Z')
                *c = (char)(*c - 'A' + 'a');
}

int
config_set_list(const struct setting *s, struct config *c, const char *const *items, size_t n,
                struct err *e)
{
    char ***field = field_of(s, c);

    if (n > CONFIG_LIST_MAX)
        return err_set(e, ERR_USAGE, "%s: %zu entries; the maximum is %d", s->key, n,
                       CONFIG_LIST_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(items[i]);
        if (len == 0 || len > PATTERN_MAX_BYTES || !text_is_utf8(items[i], len, NULL))
            return err_set(e, ERR_USAGE,
                           "%s: entry %zu is %zu bytes; each must be UTF-8 text of 1 to %d",
                           s->key, i + 1, len, PATTERN_MAX_BYTES);
    }
    text_list_free(*field);
    *field = copy_list(items, n);
    lower_list(*field);
    return 0;
}

/* Parses a comma-separated list; "" is the empty list. */
static int
set_list_text(const struct setting *s, struct config *c, const char *value, struct err *e)
{
    auto_free char *copy = xstrdup(value);
    const char *items[CONFIG_LIST_MAX + 1];
    char *rest = copy, *item;
    size_t n = 0;

    while (*value && n <= CONFIG_LIST_MAX && (item = strsep(&rest, ",")))
        items[n++] = item;
    return config_set_list(s, c, items, n, e);
}

/* Accepts YAML's words for on and off. */
static bool
means(const char *value, const char *choice)
{
    static const char *const yes[] = {"true", "yes", NULL}, *const no[] = {"false", "no", NULL};
    const char *const *words = strcmp(choice, "on") == 0    ? yes
                               : strcmp(choice, "off") == 0 ? no
                                                            : NULL;

    if (strcasecmp(value, choice) == 0)
        return true;
    for (; words && *words; words++)
        if (strcasecmp(value, *words) == 0)
            return true;
    return false;
}

static int
set_choice(const struct setting *s, struct config *c, const char *value, struct err *e)
{
    auto_buf struct buf list = BUF_INIT, shown = BUF_INIT;
    int *field = field_of(s, c);

    for (int i = 0; s->choices[i]; i++) {
        if (means(value, s->choices[i])) {
            *field = i;
            return 0;
        }
        buf_addf(&list, "%s%s", i ? ", " : "", s->choices[i]);
    }
    text_add_safe(&shown, value, strlen(value), SHOWN_COLUMNS);
    return err_set(e, ERR_USAGE, "%s: '%s' is not one of %s", s->key, buf_str(&shown),
                   buf_str(&list));
}

static int
set_text(const struct setting *s, struct config *c, const char *value, struct err *e)
{
    char **field = field_of(s, c);
    size_t n = strlen(value);
    uint64_t unused;

    if (s->type == TYPE_PATH && n > 0 && value[0] != '/') {
        parse_refuse(e, value, "is not an absolute path; it must begin with /");
        return err_prefix(e, "%s", s->key);
    }
    if ((double)n > s->max || !text_is_utf8(value, n, NULL))
        return err_set(e, ERR_USAGE, "%s: %zu bytes; it must be UTF-8 text of at most %.0f",
                       s->key, n, s->max);
    if (field == &c->webhook && hooks_check_url(value, e) < 0)
        return err_prefix(e, "%s", s->key);
    enum on_exceed rules[GPU_MAX];
    if (field == &c->on_exceed_gpus && value_exceed_rules(value, rules, e) < 0)
        return err_prefix(e, "%s", s->key);
    if (field == &c->mps && value_mps(value, &unused, e) < 0)
        return err_prefix(e, "%s", s->key);
    if (field == &c->drop_capabilities && capabilities_parse(value, &unused, e) < 0)
        return err_prefix(e, "%s", s->key);
    free(*field);
    *field = xstrdup(value);
    return 0;
}

static int
set_number(const struct setting *s, struct config *c, const char *value, struct err *e)
{
    int rc;

    if (s->type == TYPE_INT)
        rc = parse_int(value, (int64_t)s->min, (int64_t)s->max, field_of(s, c), e);
    else
        rc = parse_double(value, s->min, s->max, field_of(s, c), e);
    return rc == 0 ? 0 : err_prefix(e, "%s", s->key);
}

int
config_refuse_key(const char *key, struct err *e)
{
    const char *known[CONFIG_SETTINGS + 1];
    auto_buf struct buf shown = BUF_INIT, list = BUF_INIT;
    const char *nearest;

    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        known[i] = config_settings[i].key;
        buf_addf(&list, "%s%s", i ? ", " : "", config_settings[i].key);
    }
    known[CONFIG_SETTINGS] = NULL;
    nearest = text_nearest(key, known);
    text_add_safe(&shown, key, strlen(key), SHOWN_COLUMNS);
    if (nearest)
        return err_set(e, ERR_USAGE, "unknown setting '%s'; did you mean %s?", buf_str(&shown),
                       nearest);
    return err_set(e, ERR_USAGE, "unknown setting '%s'; the settings are %s", buf_str(&shown),
                   buf_str(&list));
}

int
config_set(struct config *c, const char *key, const char *value, struct err *e)
{
    const struct setting *s = config_find(key);

    if (!s)
        return config_refuse_key(key, e);
    switch (s->type) {
    case TYPE_LIST:
        return set_list_text(s, c, value, e);
    case TYPE_CHOICE:
        return set_choice(s, c, value, e);
    case TYPE_TEXT:
    case TYPE_PATH:
        return set_text(s, c, value, e);
    case TYPE_USERS:
        return err_set(e, ERR_USAGE, "%s is a mapping; write it into a file of settings",
                       s->key);
    case TYPE_INT:
    case TYPE_FRACTION:
        break;
    }
    return set_number(s, c, value, e);
}

void
config_init(struct config *c)
{
    struct err e;

    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < CONFIG_SETTINGS; i++)
        if (config_settings[i].standard &&
            config_set(c, config_settings[i].key, config_settings[i].standard, &e) < 0)
            err_abort("a default is out of its own range: %s", e.text);
    c->oom_patterns = copy_list(standard_patterns, STANDARD_PATTERNS);
}

static bool
is_text(const struct setting *s)
{
    return s->type == TYPE_TEXT || s->type == TYPE_PATH;
}

void
config_copy(struct config *to, const struct config *from)
{
    *to = *from;
    for (size_t i = 0; i < CONFIG_SETTINGS; i++)
        if (is_text(&config_settings[i]))
            *(char **)field_of(&config_settings[i], to) =
                xstrdup(*(char *const *)const_field_of(&config_settings[i], from));
    config_copy_users(to, from);
    to->oom_patterns =
        copy_list((const char *const *)from->oom_patterns, list_len(from->oom_patterns));
}

void
config_free(struct config *c)
{
    text_list_free(c->oom_patterns);
    c->oom_patterns = NULL;
    config_free_users(c);
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        if (!is_text(&config_settings[i]))
            continue;
        char **field = field_of(&config_settings[i], c);
        free(*field);
        *field = NULL;
    }
}

/* --- reloaded settings against those in force --- */

/* Size of the setting's field in struct config; 0: users, which have two fields. */
static size_t
field_size(enum config_type type)
{
    switch (type) {
    case TYPE_INT:
        return sizeof(int64_t);
    case TYPE_FRACTION:
        return sizeof(double);
    case TYPE_CHOICE:
        return sizeof(int);
    case TYPE_LIST:
        return sizeof(char **);
    case TYPE_TEXT:
    case TYPE_PATH:
        return sizeof(char *);
    case TYPE_USERS:
        break;
    }
    return 0;
}

static void
swap_users(struct config *a, struct config *b)
{
    struct config_user *users = a->users;
    size_t n = a->n_users;

    a->users = b->users;
    a->n_users = b->n_users;
    b->users = users;
    b->n_users = n;
}

static void
swap(const struct setting *s, struct config *a, struct config *b)
{
    unsigned char keep[sizeof(int64_t)];
    size_t n = field_size(s->type);
    if (s->type == TYPE_USERS) {
        swap_users(a, b);
        return;
    }
    void *x = (char *)a + s->offset, *y = (char *)b + s->offset;

    memcpy(keep, x, n);
    memcpy(x, y, n);
    memcpy(y, keep, n);
}

void
config_take(struct config *c, struct config *fresh, bool (*may)(const char *key),
            void (*differs)(void *arg, const char *key, bool taken), void *arg)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct setting *s = &config_settings[i];
        auto_buf struct buf old = BUF_INIT, new = BUF_INIT;

        config_add_value(s, c, &old);
        config_add_value(s, fresh, &new);
        if (strcmp(buf_str(&old), buf_str(&new)) == 0)
            continue;
        bool taken = may(s->key);
        if (taken)
            swap(s, c, fresh);
        differs(arg, s->key, taken);
    }
}
