/* Allocations: Slurm jobs of whole GPUs for packed jobs. Each has a folder under `allocations`
 * beside the folders of attempts (common/shared_folder.h), named by its key: `spec` is made
 * durable there before Slurm is asked, and the allocation's process appends its reports to
 * `events`. No attempt is assigned to an allocation, so losing or duplicating one costs only
 * what ran there: it is never sent again; another one is created instead. slurm_grow.c decides
 * how many there are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/slurm/slurm_priv.h"

#define SPEC_MAX_BYTES 512
#define EVENTS_PART    65536 /* bytes read at a time */
#define MISSES_MAX     3

/* --- the table --- */

static struct alloc *
enter(struct slurm *s, const char *key, const struct allocation_spec *spec)
{
    struct alloc *a = xcalloc(1, sizeof *a);
    snprintf(a->key, sizeof a->key, "%s", key);
    a->spec = *spec;
    HASH_ADD_STR(s->allocs, key, a);
    slurm_wake(s);
    return a;
}

void
slurm_allocs_free(struct slurm *s)
{
    struct alloc *a, *next;
    HASH_ITER(hh, s->allocs, a, next)
    {
        HASH_DEL(s->allocs, a);
        free(a);
    }
    if (s->allocs_fd >= 0)
        close(TAKE_FD(s->allocs_fd));
}

/* --- folders --- */

static int
open_folders(struct slurm *s, bool make, struct err *e)
{
    auto_free char *path = shared_folder_path(s->inst, "allocations");
    if (s->allocs_fd >= 0)
        return 0;
    if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_errno(e, ERR_FAILED, errno, "cannot make %s", path);
    s->allocs_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->allocs_fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", path);
    return 0;
}

void
slurm_allocs_reopen(struct slurm *s)
{
    struct err e;
    if (s->allocs_fd < 0)
        return;
    close(TAKE_FD(s->allocs_fd));
    if (open_folders(s, false, &e) < 0)
        log_warn("event=allocations-away %s", e.text);
}

/* Must be durable before Slurm is asked for the allocation. */
static int
write_record(const struct slurm *s, const char *key, const struct allocation_spec *spec,
             struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    if (mkdirat(s->allocs_fd, key, 0700) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make the folder of an allocation");
    auto_close int dir = openat(s->allocs_fd, key, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    allocation_spec_add(spec, &text);
    if (dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the folder of an allocation");
    if (file_write_atomic_at(dir, "spec", text.data, text.len, 0600, true, e) < 0)
        return -1;
    if (fsync(s->allocs_fd) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot keep the record of an allocation");
    return 0;
}

struct alloc *
slurm_alloc_make(struct slurm *s, const struct allocation_spec *spec)
{
    char key[ALLOCATION_KEY_SIZE];
    struct err e = {0};
    slurm_make_key(key, sizeof key);
    if (open_folders(s, true, &e) < 0 || write_record(s, key, spec, &e) < 0) {
        log_error("event=allocation-not-made %s", e.text);
        return NULL;
    }
    crash_point("slurm-allocation-made");
    log_info("event=allocation key=%s gpus=%d limit_ms=%" PRId64, key, spec->gpus,
             spec->limit_ms);
    return enter(s, key, spec);
}

/* Its events are kept beside the logs of jobs, for users to read. */
static void
remove_folder(const struct slurm *s, const struct alloc *a)
{
    char path[64];
    auto_free char *logs = shared_folder_logs(s->inst, s->inst->shared.number);
    auto_free char *kept = xasprintf("%s/allocation-%s.log", logs, a->id[0] ? a->id : a->key);
    snprintf(path, sizeof path, "%s/events", a->key);
    if (renameat(s->allocs_fd, path, AT_FDCWD, kept) < 0 && errno != ENOENT) {
        log_warn("event=allocation-log-not-kept key=%s errno=%d", a->key, errno);
        (void)unlinkat(s->allocs_fd, path, 0);
    }
    snprintf(path, sizeof path, "%s/spec", a->key);
    (void)unlinkat(s->allocs_fd, path, 0);
    (void)unlinkat(s->allocs_fd, a->key, AT_REMOVEDIR);
}

static void
drop(struct slurm *s, struct alloc *a)
{
    log_info("event=allocation-over key=%s slurm_job=%s state=%s", a->key, a->id, a->state);
    remove_folder(s, a);
    HASH_DEL(s->allocs, a);
    free(a);
}

static void
take_up(struct slurm *s, const char *key)
{
    char text[SPEC_MAX_BYTES + 1], path[64];
    struct allocation_spec spec;
    snprintf(path, sizeof path, "%.40s/spec", key);
    auto_close int fd = openat(s->allocs_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, SPEC_MAX_BYTES);
    if (n < 0 && errno != ENOENT) { /* its attempts are found by their own folders */
        log_error("event=allocation-not-read key=%.40s errno=%d", key, errno);
        return;
    }
    text[n > 0 ? n : 0] = '\0';
    if (!allocation_spec_read(text, &spec) || strlen(key) >= ALLOCATION_KEY_SIZE) {
        (void)unlinkat(s->allocs_fd, path, 0); /* an incomplete record: it was not sent */
        (void)unlinkat(s->allocs_fd, key, AT_REMOVEDIR);
        return;
    }
    enter(s, key, &spec)->is_sent = true; /* or it was not: squeue will tell */
}

void
slurm_allocs_recover(struct slurm *s)
{
    struct err e = {0};
    s->are_allocs_unread = false;
    if (open_folders(s, false, &e) < 0)
        return; /* there are no allocations */
    auto_close int fd = openat(s->allocs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(TAKE_FD(fd));
    for (const struct dirent *d; dir && (d = readdir(dir));)
        if (d->d_name[0] != '.' && strncmp(d->d_name, "backlog", 7) != 0)
            take_up(s, d->d_name);
    if (s->allocs)
        slurm_poll_soon(s);
}

/* --- events --- */

/* "here HOST MIB...": the smallest GPU counts. */
static void
take_here(struct slurm *s, struct alloc *a, int64_t at_us, char *rest)
{
    int64_t age_us = clock_wall_us() - at_us, limit_us = a->spec.limit_ms * 1000;
    const char *host = strsep(&rest, " ");
    age_us = age_us < 0 ? 0 : age_us > limit_us ? limit_us : age_us;
    a->is_here = true;
    a->end_us = clock_boot_us() + limit_us - age_us;
    if (!a->node[0])
        snprintf(a->node, sizeof a->node, "%s", host);
    a->gpu_mib = 0;
    for (char *word; (word = strsep(&rest, " "));) {
        int32_t mib = (int32_t)strtol(word, NULL, 10);
        if (word[0] && (mib < a->gpu_mib || a->gpu_mib == 0))
            a->gpu_mib = mib;
    }
    if (a->spec.gpus > 0 && a->gpu_mib > s->gpu_mib)
        s->gpu_mib = a->gpu_mib;
    s->misses = 0;
}

static void
look_at(const struct slurm *s, const char *name, bool has_left)
{
    struct remote *r;
    uint32_t job;
    int attempt;
    if (sscanf(name, "%" SCNu32 ".%d", &job, &attempt) != 2)
        return;
    HASH_FIND(hh, s->remotes, &job, sizeof job, r);
    if (!r || r->attempt != attempt || !slurm_is_packed(r))
        return;
    r->look_us = 0;
    r->has_left |= has_left;
}

static void
take_began(struct slurm *s, struct alloc *a, const char *name)
{
    a->was_of_use = true;
    s->grow_pause_us = 0;
    look_at(s, name, false);
}

/* Allocations sent before the last miss count as one with it, because they may all have run on
 * one bad node. */
static void
miss(struct slurm *s, const struct alloc *a, const char *why)
{
    if (s->missed_us && a->sent_us && a->sent_us <= s->missed_us)
        return;
    s->missed_us = clock_boot_us();
    if (++s->misses < MISSES_MAX)
        return;
    s->misses = 0;
    slurm_refuse_like(s, &a->spec, why);
}

static void
take_event(struct slurm *s, struct alloc *a, char *line)
{
    char *rest = NULL;
    int64_t at_us = strtoll(line, &rest, 10);
    rest += *rest == ' ';
    const char *word = strsep(&rest, " ");
    if (strcmp(word, "here") == 0 && rest)
        take_here(s, a, at_us, rest);
    else if (strcmp(word, "began") == 0 && rest)
        take_began(s, a, strsep(&rest, " "));
    else if (strcmp(word, "ended") == 0 && rest)
        look_at(s, rest, true);
    else if (strcmp(word, "told") == 0) {
        a->was_told = true;
        a->told_us = at_us;
    } else if (strcmp(word, "over") == 0)
        a->is_over = true;
    else if (strcmp(word, "failed") == 0) {
        a->is_over = true;
        miss(s, a, rest ? rest : "an allocation cannot be used");
    }
}

/* Reads the whole lines appended since. Opens the file anew each time, as in
 * slurm_settle.c. */
static void
read_events(struct slurm *s, struct alloc *a)
{
    char text[EVENTS_PART + 1], *at = text;
    auto_close int dir = openat(s->allocs_fd, a->key, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_close int fd = dir < 0 ? -1 : openat(dir, "events", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, text, EVENTS_PART, a->read);
    if (n <= 0)
        return;
    text[n] = '\0';
    for (char *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        take_event(s, a, at);
    }
    a->read += at - text;
}

/* Handles an allocation that never reported: Slurm forgot it, or its node does not see our
 * files. */
static void
settle_unseen(struct slurm *s, struct alloc *a)
{
    char words[240];
    if (a->is_here || a->is_over || a->was_refused || a->is_unwanted || !a->is_known)
        return;
    if (strcmp(a->state, "CANCELLED") == 0 || strcmp(a->state, "NODE_FAIL") == 0)
        return;
    snprintf(
        words, sizeof words,
        "its allocations end (%s) without reaching their folder: do the nodes see that? the "
        "setting slurm_folder can name one that they see; slurm.log beside its log says more",
        a->state);
    miss(s, a, words);
}

/* True if every folder has been read once more since the allocation was found dead: only then
 * are attempts known that began there before a restart of ours. */
static bool
all_was_seen(struct slurm *s, struct alloc *a)
{
    if (!a->is_doomed) {
        a->is_doomed = true;
        a->doomed_round = s->round;
        s->sweep_round = s->round + 1;
    }
    return s->round - a->doomed_round >= 2;
}

void
slurm_allocs_follow(struct slurm *s)
{
    struct alloc *a, *next;
    HASH_ITER(hh, s->allocs, a, next)
    {
        bool was_here = a->is_here, was_dead = slurm_alloc_is_dead(a);
        if (a->is_sent && !a->is_over)
            read_events(s, a);
        if (a->is_here != was_here || slurm_alloc_is_dead(a) != was_dead) {
            s->waiting_is_old = true; /* it may take more attempts, or others */
            slurm_poll_soon(s);
        }
        if (!slurm_alloc_is_dead(a) || a->n_begun > 0 || a == s->sending_alloc ||
            !all_was_seen(s, a))
            continue;
        settle_unseen(s, a);
        if (!a->was_of_use && !a->was_refused && !a->is_unwanted)
            s->grow_us = clock_boot_us() + slurm_pause_us(&s->grow_pause_us);
        drop(s, a);
        turn_touch(s->inst);
    }
}
