/* The state file of `scheduler`: {"gpu_status": [allocations], "paused_gpus": [ids]}. Any
 * program may write it: changes of paused_gpus are requests to the running scheduler. It is
 * always replaced atomically. Read and written by `start` (sched_cards.c) and by the commands
 * beside it. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/ask/answer.h"
#include "compat/engine/compat_paths.h"
#include "compat/engine/line_records.h"
#include "compat/engine/takeover.h"
#include "compat/py/pytext.h"
#include "compat/scheduler/scheduler.h"
#include "gpu/sim_spec.h"

#define STATE_MAX_BYTES (1UL << 20)
#define INDENT          4
#define ABOUT_MAX       65536

static double
clamp(double v)
{
    return isfinite(v) && v > 0 ? (v < 1 ? v : 1) : 0;
}

static void
take_paused(const json_t *list, struct sched_state *out)
{
    size_t i;
    json_t *v;

    json_array_foreach(list, i, v)
    {
        json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;

        if (id >= 0 && id < GPU_MAX)
            out->paused |= UINT64_C(1) << id;
    }
}

int
sched_state_read(const char *path, struct sched_state *out, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    json_error_t je;
    json_t *root, *v;
    size_t i;

    *out = (struct sched_state){0};
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (compat_read_regular(path, STATE_MAX_BYTES, &text, e) < 0)
        return -1;
    root = json_loadb(buf_str(&text), text.len, 0, &je);
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(e, ERR_FAILED, "the state file %s is no JSON object", path);
    }
    v = json_object_get(root, "paused_gpus");
    if (v && !json_is_array(v)) {
        json_decref(root);
        return err_set(e, ERR_FAILED, "the state file %s: paused_gpus is no list of ids", path);
    }
    out->there = true;
    take_paused(v, out);
    json_array_foreach(json_object_get(root, "gpu_status"), i, v)
    {
        if (i >= GPU_MAX)
            break;
        out->alloc[out->n++] = clamp(json_number_value(v));
    }
    json_decref(root);
    return 0;
}

int
sched_state_write(const char *path, const struct sched_state *s, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    json_t *root = json_pack("{s:[],s:[]}", "gpu_status", "paused_gpus");
    json_t *status = json_object_get(root, "gpu_status");
    json_t *paused = json_object_get(root, "paused_gpus");

    for (int i = 0; i < s->n; i++) {
        json_array_append_new(status, json_real(round(s->alloc[i] * 1e4) / 1e4));
        if (s->paused >> i & 1)
            json_array_append_new(paused, json_integer(i));
    }
    py_add_json(&text, root, INDENT);
    json_decref(root);
    return records_replace(path, text.data, text.len, false, e);
}

/* Lock the folder, because the file itself is replaced. */
int
sched_state_lock(const char *path, struct err *e)
{
    auto_free char *for_dir = xstrdup(path);
    const char *dir = dirname(for_dir);
    auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the folder %s", dir);
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR)
            return err_errno(e, ERR_FAILED, errno, "cannot lock the folder %s", dir);
    }
    return TAKE_FD(fd);
}

int
sched_state_pause(const char *path, int gpu, int n_gpus, bool pause, struct err *e)
{
    auto_close int lock = sched_state_lock(path, e);
    struct sched_state s;
    uint64_t bit = UINT64_C(1) << gpu;
    bool was;

    if (lock < 0 || sched_state_read(path, &s, e) < 0)
        return -1;
    was = s.paused & bit;
    if (s.n < n_gpus)
        s.n = n_gpus;
    s.paused = pause ? s.paused | bit : s.paused & ~bit;
    if (sched_state_write(path, &s, e) < 0)
        return -1;
    return was == pause;
}

/* From BERTH_SIM (such as 4x24G), else the number of the driver's device files. */
int
sched_count_cards(void)
{
    const char *sim = getenv("BERTH_SIM");
    int n = 0;

    struct sim_spec spec;

    if (sim && *sim)
        return sim_spec_parse(sim, &spec, NULL) == 0 ? spec.n : 0;
    for (int i = 0; i < GPU_MAX; i++) {
        auto_free char *path = xasprintf("/dev/nvidia%d", i);

        n += access(path, F_OK) == 0;
    }
    return n;
}

/* --- the owner of the state file --- */

/* The JSON in the lock file. Ignore bytes after it: a longer text may not be truncated yet. */
static json_t *
read_about(const char *path)
{
    auto_buf struct buf text = BUF_INIT;

    return file_read(path, ABOUT_MAX, &text, NULL) < 0
               ? NULL
               : json_loadb(buf_str(&text), text.len, JSON_DISABLE_EOF_CHECK, NULL);
}

int
sched_own(const char *state_file, json_t **last, struct err *e)
{
    auto_free char *path = records_lock_path(state_file);
    struct stat st;

    if (stat(state_file, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILED, "%s is no regular file", state_file);

    auto_close int fd = compat_lock(
        path, e, "another scheduler works with %s; it takes what is added to its jobs file",
        state_file);

    if (fd < 0)
        return -1;
    *last = read_about(path);
    if (*last)
        return sched_own_tell(fd, json_incref(*last), false, e) < 0 ? -1 : TAKE_FD(fd);
    if (ftruncate(fd, 0) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write the lock of %s", state_file);
    return TAKE_FD(fd);
}

/* Overwrite first, then truncate, so that the file always holds a complete text. */
int
sched_own_tell(int lock, json_t *about, bool open, struct err *e)
{
    auto_free char *text = NULL;
    size_t n;

    if (!open)
        json_object_set_new(about, "closed", json_true());
    text = json_dumps(about, JSON_COMPACT);
    n = strlen(text);
    json_decref(about);
    if (pwrite(lock, text, n, 0) != (ssize_t)n || ftruncate(lock, (off_t)n) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot write the scheduler's lock");
    return 0;
}

json_t *
sched_owner(const char *state_file)
{
    auto_free char *path = records_lock_path(state_file);
    auto_json json_t *about =
        file_is_locked_at(AT_FDCWD, path, NULL) == 1 ? read_about(path) : NULL;

    return answer_bool(about, "closed") ? NULL : json_incref(about);
}
