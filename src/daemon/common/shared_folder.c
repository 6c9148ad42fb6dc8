/* See shared_folder.h. Takes no locks, because the nodes' file system may not support them.
 * Called by both engines, attempt/ and slurm/; slurm/slurm_folder.c decides when a new setting
 * takes effect. */
#include "daemon/common/shared_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/job.h"
#include "daemon/common/instance.h"
#include "store/store.h"

#define NOTE "slurm-folder" /* the number in use, then one path per line */

/* --- stored data --- */

static int32_t
add_path(struct shared_folder *f, const char *path)
{
    f->paths = xrealloc(f->paths, (size_t)(f->n + 1) * sizeof *f->paths);
    f->paths[f->n++] = xstrdup(path);
    return f->n;
}

void
shared_folder_load(struct instance *inst)
{
    struct shared_folder *f = &inst->shared;
    auto_free char *note = store_note_get(inst->store, NOTE);
    char *rest = note, *line = note ? strsep(&rest, "\n") : NULL;
    long number = line ? strtol(line, NULL, 10) : 0;
    *f = (struct shared_folder){.jobs_fd = -1};
    while ((line = strsep(&rest, "\n")))
        if (line[0])
            add_path(f, line);
    f->number = number > 0 && number <= f->n ? (int32_t)number : 0;
}

void
shared_folder_free(struct instance *inst)
{
    struct shared_folder *f = &inst->shared;
    for (int32_t i = 0; i < f->n; i++)
        free(f->paths[i]);
    free(f->paths);
    if (f->jobs_fd >= 0)
        close(f->jobs_fd);
    *f = (struct shared_folder){.jobs_fd = -1};
}

/* Errors stick to the store, whose commit then fails. */
void
shared_folder_write(struct instance *inst)
{
    const struct shared_folder *f = &inst->shared;
    auto_buf struct buf note = BUF_INIT;
    if (!f->is_unsaved)
        return;
    buf_addf(&note, "%d\n", f->number);
    for (int32_t i = 0; i < f->n; i++)
        buf_addf(&note, "%s\n", f->paths[i]);
    (void)store_note_put(inst->store, NOTE, buf_str(&note), NULL);
}

void
shared_folder_written(struct instance *inst)
{
    inst->shared.is_unsaved = false;
}

/* --- location --- */

bool
shared_folder_is_apart(const struct instance *inst)
{
    return inst->shared.number > 0;
}

bool
shared_folder_has(const struct instance *inst, const struct job *job)
{
    return shared_folder_is_apart(inst) && job->req.demand.engine == ENGINE_SLURM;
}

int
shared_folder_fd(const struct instance *inst)
{
    return shared_folder_is_apart(inst) ? inst->shared.jobs_fd : inst->jobs_fd;
}

int
shared_folder_fd_for(const struct instance *inst, const struct job *job)
{
    return shared_folder_has(inst, job) ? inst->shared.jobs_fd : inst->jobs_fd;
}

const char *
shared_folder_setting(const struct instance *inst)
{
    return shared_folder_is_apart(inst) ? inst->shared.paths[inst->shared.number - 1] : "";
}

char *
shared_folder_path(const struct instance *inst, const char *name)
{
    if (!shared_folder_is_apart(inst))
        return xasprintf("%s/%s", inst->places.state, name);
    return xasprintf("%s/%s/%s", shared_folder_setting(inst), inst->name, name);
}

char *
shared_folder_logs(const struct instance *inst, int32_t number)
{
    if (number <= 0 || number > inst->shared.n)
        return xstrdup(inst->places.logs);
    return xasprintf("%s/%s/logs", inst->shared.paths[number - 1], inst->name);
}

/* --- making and opening --- */

int
shared_folder_open(struct instance *inst, struct err *e)
{
    struct shared_folder *f = &inst->shared;
    if (!shared_folder_is_apart(inst))
        return 0;
    auto_free char *path = shared_folder_path(inst, "jobs");
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int why = errno;
    if (f->jobs_fd >= 0)
        close(f->jobs_fd);
    f->jobs_fd = fd;
    if (fd < 0)
        return err_errno(e, ERR_FAILED, why, "slurm_folder: cannot open %s", path);
    return 0;
}

/* Anyone who can write to the folder could replace ours, and so choose what we run. */
static int
check_owner(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_errno(e, ERR_FAILED, errno, "slurm_folder: cannot inspect %s", path);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_FAILED, "slurm_folder: %s is not a folder", path);
    if (st.st_uid != geteuid())
        return err_set(e, ERR_FAILED,
                       "slurm_folder: %s belongs to user %u and not to user %u; choose a "
                       "folder of your own, such as one in it",
                       path, st.st_uid, geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(e, ERR_FAILED,
                       "slurm_folder: other users can write to %s (mode %o); run 'chmod go-w "
                       "%s', or choose another folder",
                       path, st.st_mode & 07777, path);
    return 0;
}

/* Makes the folder and its parents. Existing ones are skipped, because a server may report
 * that making one is forbidden before it reports that it exists. */
static int
make_folder(const char *path, struct err *e)
{
    struct stat st;
    auto_free char *above = xstrdup(path);
    char *slash = strrchr(above, '/');
    if (stat(path, &st) == 0)
        return 0;
    *slash = '\0';
    if (above[0] && make_folder(above, e) < 0)
        return -1;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_errno(e, ERR_FAILED, errno,
                         "slurm_folder: cannot make %s; choose a folder that you can write to, "
                         "and that the nodes have at the same path",
                         path);
    return 0;
}

static int
make_parts(const struct instance *inst, struct err *e)
{
    static const char *const parts[] = {"jobs", "allocations", "logs"};
    auto_free char *own = xasprintf("%s/%s", shared_folder_setting(inst), inst->name);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        auto_free char *path = shared_folder_path(inst, parts[i]);
        if (make_folder(path, e) < 0)
            return -1;
    }
    return check_owner(own, e);
}

int
shared_folder_make(struct instance *inst, struct err *e)
{
    const char *path = shared_folder_setting(inst);
    if (!shared_folder_is_apart(inst))
        return 0;
    if (make_folder(path, e) < 0)
        return -1;
    return check_owner(path, e) < 0 || make_parts(inst, e) < 0 ? -1
                                                               : shared_folder_open(inst, e);
}

static int32_t
number_of(struct shared_folder *f, const char *setting)
{
    for (int32_t i = 0; i < f->n; i++)
        if (strcmp(f->paths[i], setting) == 0)
            return i + 1;
    return setting[0] ? add_path(f, setting) : 0;
}

int
shared_folder_use(struct instance *inst, const char *setting, struct err *e)
{
    struct shared_folder *f = &inst->shared;
    struct err ignored;
    int32_t before = f->number;
    if (strchr(setting, '\n'))
        return err_set(e, ERR_FAILED, "slurm_folder: a line break is in it");
    f->number = number_of(f, setting);
    if (shared_folder_make(inst, e) < 0) {
        f->number = before;
        (void)shared_folder_open(inst, &ignored);
        return -1;
    }
    f->is_unsaved = true;
    log_info("event=slurm-folder path=%s", setting[0] ? setting : inst->places.state);
    return 0;
}
