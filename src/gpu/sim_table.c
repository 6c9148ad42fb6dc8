/* Which process uses how much of the simulated GPUs. `usage` is an array of fixed-size
 * records, one per process and GPU; a process that changes or sums it holds an exclusive flock
 * on it. A record never crosses a page and is written by one pwrite, so a kill at any moment
 * leaves complete records; those of dead processes (pid and start time no longer match) are
 * ignored and cleared by the next reader. Called by the simulated backend and by simjob. A
 * table must not be used across fork, because the lock belongs to the open file. */
#include "gpu/sim_table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "gpu/backend.h"
#include "gpu/procfs.h"

#define CAPS_MAX_BYTES (1 << 20)

struct sim_record {
    int32_t pid; /* 0: free */
    int32_t card;
    uint64_t start; /* of the process, in clock ticks since boot */
    int32_t mib;
    int32_t util;
    uint64_t group; /* job and attempt, as group_of encodes them; 0: none */
};
_Static_assert(sizeof(struct sim_record) == 32, "a record must not cross a page");

struct sim_table {
    int dir_fd;
    int usage_fd;
    char *dir; /* canonical */
    char *text;
    struct sim_spec spec;
    char id[13];
    int32_t pid; /* whose start time is in start; 0: not read yet */
    uint64_t start;
    uint64_t group;             /* of this process */
    int32_t cap_mib[GPU_MAX];   /* of that group, at the last take; 0: none */
    struct sim_record *records; /* as last loaded; valid while the lock is held */
    size_t n;
    size_t cap;
};

static bool
record_is_alive(const struct sim_record *r)
{
    uint64_t start;

    switch (procfs_start(r->pid, &start)) {
    case PROCFS_ALIVE:
        return start == r->start;
    case PROCFS_HIDDEN:
        return true;
    case PROCFS_DEAD:
        break;
    }
    return false;
}

static bool
record_is_sound(const struct sim_record *r, const struct sim_spec *spec)
{
    return r->pid > 0 && r->mib >= 0 && r->card >= 0 && r->card < spec->n;
}

static int
table_lock(struct sim_table *t, struct err *e)
{
    while (flock(t->usage_fd, LOCK_EX) < 0) {
        if (errno != EINTR)
            return err_errno(e, ERR_FAILED, errno, "cannot lock %s/usage", t->dir);
    }
    return 0;
}

static void
table_unlock(struct sim_table *t)
{
    flock(t->usage_fd, LOCK_UN);
}

static int
table_size(struct sim_table *t, size_t *n, struct err *e)
{
    struct stat st;

    if (fstat(t->usage_fd, &st) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot inspect %s/usage", t->dir);
    *n = (size_t)st.st_size / sizeof(struct sim_record);
    return 0;
}

/* Reads all records; invalid ones become free. The lock must be held. */
static int
table_load(struct sim_table *t, struct err *e)
{
    size_t n = 0, done = 0;

    if (table_size(t, &n, e) < 0)
        return -1;
    if (n > t->cap) {
        t->records = xrealloc(t->records, n * sizeof *t->records);
        t->cap = n;
    }
    while (done < n * sizeof *t->records) {
        ssize_t got = pread(t->usage_fd, (char *)t->records + done,
                            n * sizeof *t->records - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(e, ERR_FAILED, errno, "cannot read %s/usage", t->dir);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    t->n = done / sizeof *t->records;
    for (size_t i = 0; i < t->n; i++) {
        if (!record_is_sound(&t->records[i], &t->spec))
            t->records[i].pid = 0;
    }
    return 0;
}

static int
table_write(struct sim_table *t, size_t at, const struct sim_record *r, struct err *e)
{
    off_t offset = (off_t)(at * sizeof *r);

    if (file_write_all_at(t->usage_fd, r, sizeof *r, offset) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write %s/usage", t->dir);
    return 0;
}

/* Clears the records of dead processes. The lock must be held and the table loaded. */
static int
table_bury(struct sim_table *t, struct err *e)
{
    static const struct sim_record nobody;
    size_t alive = 0;

    for (size_t i = 0; i < t->n; i++) {
        if (t->records[i].pid == 0)
            continue;
        if (record_is_alive(&t->records[i])) {
            alive++;
            continue;
        }
        t->records[i] = nobody;
        if (table_write(t, i, &nobody, e) < 0)
            return -1;
    }
    if (alive == 0) {
        t->n = 0;
        if (ftruncate(t->usage_fd, 0) < 0)
            return err_errno(e, ERR_FAILED, errno, "cannot empty %s/usage", t->dir);
    }
    return 0;
}

static bool
record_is_mine(const struct sim_table *t, const struct sim_record *r)
{
    return r->pid == t->pid && r->start == t->start;
}

/* What the other processes leave free on a GPU, or of the group's cap if that is less. */
static int64_t
card_free_mib(const struct sim_table *t, int card)
{
    int64_t free_mib = t->spec.total_mib[card], left_mib = t->cap_mib[card];

    for (size_t i = 0; i < t->n; i++) {
        const struct sim_record *r = &t->records[i];
        if (r->pid == 0 || r->card != card || record_is_mine(t, r))
            continue;
        free_mib -= r->mib;
        if (r->group == t->group)
            left_mib -= r->mib;
    }
    return t->cap_mib[card] > 0 && left_mib < free_mib ? left_mib : free_mib;
}

/* The first GPU of the set without room for mib; -1: all have room. */
static int
find_full(const struct sim_table *t, uint64_t cards, int32_t mib, int32_t *free_mib)
{
    for (int card = 0; card < t->spec.n; card++) {
        if (!(cards >> card & 1))
            continue;
        int64_t room = card_free_mib(t, card);
        if (room < mib) {
            *free_mib = (int32_t)(room < 0 ? 0 : room);
            return card;
        }
    }
    return -1;
}

/* The slot of this process's record for a GPU, or one that it may take. */
static size_t
find_slot(const struct sim_table *t, int card)
{
    size_t slot = t->n;

    for (size_t i = 0; i < t->n; i++) {
        if (t->records[i].pid == 0) {
            if (slot == t->n)
                slot = i;
        } else if (record_is_mine(t, &t->records[i]) && t->records[i].card == card) {
            return i;
        }
    }
    return slot;
}

/* Writes the record to the loaded table as well, so that the next slot found is another. */
static int
put_record(struct sim_table *t, const struct sim_record *r, struct err *e)
{
    size_t slot = find_slot(t, r->card);

    if (table_write(t, slot, r, e) < 0)
        return -1;
    if (slot == t->n) {
        t->records = xgrow(t->records, t->n, &t->cap, sizeof *t->records);
        t->n++;
    }
    t->records[slot] = *r;
    return 0;
}

/* --- caps --- */

/* Encodes "job-7.1", alone or at the end of a path, as one number. 0: not such a name. */
static uint64_t
group_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    uint32_t job, attempt;
    int length = 0;

    name = slash ? slash + 1 : name;
    if (sscanf(name, "job-%" SCNu32 ".%" SCNu32 "%n", &job, &attempt, &length) != 2 ||
        name[length])
        return 0;
    return (uint64_t)job << 32 | attempt;
}

static int
caps_read(struct sim_table *t, struct buf *out, struct err *e)
{
    if (faccessat(t->dir_fd, "caps", F_OK, 0) < 0 && errno == ENOENT)
        return 0;
    return file_read_at(t->dir_fd, "caps", CAPS_MAX_BYTES, out, e);
}

/* The lines of the file are "GROUP CARD MIB". */
static int
load_caps(struct sim_table *t, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    uint64_t group;
    int card;
    int32_t mib;

    memset(t->cap_mib, 0, sizeof t->cap_mib);
    if (t->group == 0)
        return 0;
    if (caps_read(t, &text, e) < 0)
        return -1;
    char *rest = text.len ? text.data : NULL, *line;
    while (rest && (line = strsep(&rest, "\n")))
        if (sscanf(line, "%" SCNu64 " %d %" SCNd32, &group, &card, &mib) == 3 &&
            group == t->group && card >= 0 && card < GPU_MAX)
            t->cap_mib[card] = mib;
    return 0;
}

static int
cap_locked(struct sim_table *t, int card, uint64_t group, int64_t mib, struct err *e)
{
    auto_buf struct buf text = BUF_INIT, fresh = BUF_INIT;
    auto_free char *own = xasprintf("%" PRIu64 " %d ", group, card);

    if (caps_read(t, &text, e) < 0)
        return -1;
    char *rest = text.len ? text.data : NULL, *line;
    while (rest && (line = strsep(&rest, "\n")))
        if (line[0] && strncmp(line, own, strlen(own)) != 0)
            buf_addf(&fresh, "%s\n", line);
    if (mib >= 0)
        buf_addf(&fresh, "%s%" PRId64 "\n", own, mib);
    if (file_write_atomic_at(t->dir_fd, "caps", buf_str(&fresh), fresh.len, 0644, false, e) < 0)
        return -1;
    if (geteuid() == 0 && fchmodat(t->dir_fd, "caps", 0644, 0) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s/caps to all", t->dir);
    return 0;
}

int
sim_table_cap(struct sim_table *t, int card, const char *name, int64_t mib, struct err *e)
{
    uint64_t group = group_of(name);

    if (group == 0)
        return err_set(e, ERR_FAILED, "'%.80s' is not the group of an attempt", name);
    if (table_lock(t, e) < 0)
        return -1;
    int result = cap_locked(t, card, group, mib, e);
    table_unlock(t);
    return result;
}

int64_t
sim_table_group_mib(struct sim_table *t, int card, const char *name)
{
    uint64_t group = group_of(name);
    int64_t mib = 0;

    if (group == 0 || table_lock(t, NULL) < 0)
        return -1;
    if (table_load(t, NULL) < 0)
        mib = -1;
    for (size_t i = 0; mib >= 0 && i < t->n; i++) {
        const struct sim_record *r = &t->records[i];
        if (r->pid != 0 && r->card == card && r->group == group && record_is_alive(r))
            mib += r->mib;
    }
    table_unlock(t);
    return mib;
}

void
sim_table_join(struct sim_table *t, const char *name)
{
    t->group = group_of(name);
}

int32_t
sim_table_capacity_mib(const struct sim_table *t, int card)
{
    return t->cap_mib[card] > 0 ? t->cap_mib[card] : t->spec.total_mib[card];
}

/* --- use --- */

static int
take_locked(struct sim_table *t, uint64_t cards, int32_t mib, int32_t util, int *full,
            int32_t *free_mib, struct err *e)
{
    if (table_load(t, e) < 0 || load_caps(t, e) < 0)
        return -1;
    *full = find_full(t, cards, mib, free_mib);
    if (*full >= 0) {
        /* Dead processes are only looked for when their memory is needed. */
        if (table_bury(t, e) < 0)
            return -1;
        *full = find_full(t, cards, mib, free_mib);
    }
    if (*full >= 0)
        return 1;
    for (int card = 0; card < t->spec.n; card++) {
        struct sim_record r = {.pid = t->pid,
                               .card = card,
                               .start = t->start,
                               .mib = mib,
                               .util = util,
                               .group = t->group};
        if ((cards >> card & 1) && put_record(t, &r, e) < 0)
            return -1;
    }
    return 0;
}

static int
know_myself(struct sim_table *t, struct err *e)
{
    int32_t pid = getpid();

    if (t->pid == pid)
        return 0;
    if (procfs_start(pid, &t->start) != PROCFS_ALIVE)
        return err_set(e, ERR_FAILED, "cannot read my own start time from /proc/%d/stat", pid);
    t->pid = pid;
    return 0;
}

int
sim_table_take(struct sim_table *t, uint64_t cards, int32_t mib, int32_t util, int *full,
               int32_t *free_mib, struct err *e)
{
    if (know_myself(t, e) < 0 || table_lock(t, e) < 0)
        return -1;
    int result = take_locked(t, cards, mib, util, full, free_mib, e);
    table_unlock(t);
    return result;
}

static int
leave_locked(struct sim_table *t, struct err *e)
{
    static const struct sim_record nobody;

    if (table_load(t, e) < 0)
        return -1;
    for (size_t i = 0; i < t->n; i++) {
        if (t->records[i].pid != 0 && record_is_mine(t, &t->records[i]) &&
            table_write(t, i, &nobody, e) < 0)
            return -1;
    }
    return 0;
}

int
sim_table_leave(struct sim_table *t, struct err *e)
{
    if (know_myself(t, e) < 0 || table_lock(t, e) < 0)
        return -1;
    int result = leave_locked(t, e);
    table_unlock(t);
    return result;
}

static int
sample_locked(struct sim_table *t, struct backend_sample *out, struct err *e)
{
    if (table_load(t, e) < 0 || table_bury(t, e) < 0)
        return -1;
    for (size_t i = 0; i < t->n; i++) {
        const struct sim_record *r = &t->records[i];
        if (r->pid == 0)
            continue;
        struct backend_usage *u = &out->use[r->card];
        u->used_mib += r->mib;
        if (r->util > u->util)
            u->util = r->util;
        backend_usage_add(u, r->pid, r->mib);
    }
    return 0;
}

int
sim_table_sample(struct sim_table *t, struct backend_sample *out, struct err *e)
{
    size_t n = 0;

    if (table_size(t, &n, e) < 0)
        return -1;
    if (n == 0)
        return 0;
    if (table_lock(t, e) < 0)
        return -1;
    int result = sample_locked(t, out, e);
    table_unlock(t);
    return result;
}

int
sim_table_faults(struct sim_table *t, struct sim_faults *out, struct err *e)
{
    char text[1024];

    *out = (struct sim_faults){0};
    auto_close int fd = openat(t->dir_fd, "fault", O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot read %s/fault", t->dir);
    text[n] = '\0';
    return sim_faults_parse(text, out, e);
}

/* A root daemon's simulated GPUs are for all users' jobs, whatever its umask. */
static int
open_to_all(const struct sim_table *t, struct err *e)
{
    if (geteuid() != 0 || (fchmod(t->dir_fd, 0755) == 0 && fchmod(t->usage_fd, 0666) == 0))
        return 0;
    return err_errno(e, ERR_FAILED, errno, "cannot open the simulated cards' folder %s to all",
                     t->dir);
}

/* Opens the folder and its usage table; the caller reads or writes the spec. */
static struct sim_table *
table_new(const char *dir, int flags, struct err *e)
{
    char path[PATH_MAX];
    struct sim_table *t = xcalloc(1, sizeof *t);

    t->usage_fd = -1;
    t->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->dir_fd < 0 || !realpath(dir, path)) {
        err_errno(e, ERR_FAILED, errno, "cannot open the simulated cards' folder %s", dir);
        sim_table_close(t);
        return NULL;
    }
    t->dir = xstrdup(path);
    text_sha1_12(path, strlen(path), t->id);
    t->usage_fd = openat(t->dir_fd, "usage", O_RDWR | O_CLOEXEC | flags, 0600);
    if (t->usage_fd < 0 && (flags & O_CREAT)) {
        err_errno(e, ERR_FAILED, errno, "cannot open %s/usage", dir);
        sim_table_close(t);
        return NULL;
    }
    if ((flags & O_CREAT) && open_to_all(t, e) < 0) {
        sim_table_close(t);
        return NULL;
    }
    return t;
}

static int
read_spec(struct sim_table *t, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;

    if (file_read_at(t->dir_fd, "cards", 4096, &text, e) < 0)
        return -1;
    free(t->text);
    t->text = xstrndup(buf_str(&text), strcspn(buf_str(&text), "\n"));
    if (sim_spec_parse(t->text, &t->spec, e) < 0)
        return err_prefix(e, "%s/cards", t->dir);
    return 0;
}

static int
write_spec(struct sim_table *t, const char *spec, struct err *e)
{
    if (sim_spec_parse(spec, &t->spec, e) < 0)
        return -1;
    t->text = xstrdup(spec);
    auto_free char *line = xasprintf("%s\n", spec);
    if (file_write_atomic_at(t->dir_fd, "cards", line, strlen(line), 0644, false, e) < 0)
        return -1;
    if (geteuid() == 0 && fchmodat(t->dir_fd, "cards", 0644, 0) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s/cards to all", t->dir);
    return 0;
}

struct sim_table *
sim_table_create(const char *dir, const char *spec, struct err *e)
{
    struct sim_spec checked;

    if (spec && sim_spec_parse(spec, &checked, e) < 0)
        return NULL;
    if (file_mkdirs(dir, 0755, e) < 0)
        return NULL;
    struct sim_table *t = table_new(dir, O_CREAT, e);
    if (!t)
        return NULL;
    if ((spec ? write_spec(t, spec, e) : read_spec(t, e)) < 0) {
        sim_table_close(t);
        return NULL;
    }
    return t;
}

struct sim_table *
sim_table_open(const char *dir, struct err *e)
{
    struct sim_table *t = table_new(dir, 0, e);

    if (t && t->usage_fd >= 0 && read_spec(t, e) == 0)
        return t;
    if (t)
        err_set(e, ERR_FAILED,
                "no simulated GPUs in %s; it must be the 'sim' folder of a daemon that was "
                "started with --sim",
                dir);
    sim_table_close(t);
    return NULL;
}

void
sim_table_close(struct sim_table *t)
{
    if (!t)
        return;
    if (t->usage_fd >= 0)
        close(t->usage_fd);
    if (t->dir_fd >= 0)
        close(t->dir_fd);
    free(t->dir);
    free(t->text);
    free(t->records);
    free(t);
}

const struct sim_spec *
sim_table_spec(const struct sim_table *t)
{
    return &t->spec;
}

const char *
sim_table_spec_text(const struct sim_table *t)
{
    return t->text;
}

void
sim_table_uuid(const struct sim_table *t, int card, char *out)
{
    snprintf(out, SIM_UUID_MAX, "SIM-%s-%d", t->id, card);
}
