/* The folder shared with nodes (common/shared_folder.h), as the engine needs it: when a
 * changed setting is adopted, that the folder exists before an attempt starts, and what to do
 * while it is away because its server is down or it is not mounted. Then nothing is known of
 * its contents: no attempt counts as lost, silent or never begun, and none is sent. Nor is
 * what the daemon did not see meanwhile held against a node afterwards (back_us). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/common/folder_name.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/slurm/slurm_priv.h"

#define BLIND_US (5 * S_US) /* between two checks; longer: the server hung */

bool
slurm_is_lack(int errnum)
{
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == EINTR;
}

static void
set_trouble(struct slurm *s, const struct err *e)
{
    if (strcmp(s->folder_trouble.text, e->text) != 0)
        log_warn("event=slurm-folder-trouble %s", e->text);
    s->folder_trouble = *e;
}

static void
clear_trouble(struct slurm *s)
{
    if (s->folder_trouble.code)
        log_info("event=slurm-folder-well");
    s->folder_trouble = (struct err){0};
    s->folder_us = s->folder_pause_us = 0;
}

/* --- presence --- */

static bool
is_in_use(const struct slurm *s)
{
    return s->remotes || s->allocs || s->are_allocs_unread;
}

static void
set_away(struct slurm *s, const struct err *e)
{
    if (slurm_is_lack(e->errnum))
        return; /* this error says nothing about the folder */
    struct err said = *e;
    if (e->errnum == ENOENT)
        err_set(
            &said, ERR_FAILED,
            "%.300s: mount its file system; if it was removed for good, make it again, empty: "
            "then the jobs that were in it are lost",
            e->text);
    set_trouble(s, &said);
    s->is_away = is_in_use(s); /* otherwise the next start creates it */
}

static void
set_there(struct slurm *s, int64_t now)
{
    if (s->is_away || now - s->looked_us > BLIND_US)
        s->back_us = now;
    if (s->is_away) {
        s->is_away = false;
        clear_trouble(s);
        turn_touch(s->inst);
    }
    s->looked_us = now;
}

bool
slurm_folder_is_there(struct slurm *s)
{
    struct err e = {0};
    if (!shared_folder_is_apart(s->inst))
        return true;
    if (shared_folder_open(s->inst, &e) < 0) {
        set_away(s, &e);
        return false;
    }
    set_there(s, clock_boot_us());
    slurm_allocs_reopen(s);
    if (s->are_allocs_unread)
        slurm_allocs_recover(s);
    return true;
}

bool
slurm_folder_is_gone(struct slurm *s, const struct remote *r)
{
    char name[32];
    struct err ignored;
    return shared_folder_open(s->inst, &ignored) == 0 &&
           faccessat(shared_folder_fd(s->inst), folder_name(r->job, r->attempt, name), F_OK,
                     AT_SYMLINK_NOFOLLOW) < 0 &&
           errno == ENOENT;
}

/* --- starts --- */

const char *
slurm_folder_next(const struct slurm *s)
{
    const char *wanted = s->inst->config.slurm_folder;
    return strcmp(wanted, shared_folder_setting(s->inst)) == 0 ? NULL : wanted;
}

static int
make_ready(struct slurm *s, struct err *e)
{
    const char *next = slurm_folder_next(s);
    if (next && !is_in_use(s)) {
        if (s->allocs_fd >= 0)
            close(TAKE_FD(s->allocs_fd));
        s->backlog_is_written = false;
        return shared_folder_use(s->inst, next, e);
    }
    if (shared_folder_open(s->inst, e) == 0)
        return 0;
    return e->errnum == ENOENT && !is_in_use(s) ? shared_folder_make(s->inst, e) : -1;
}

int
slurm_folder_ready(struct slurm *s)
{
    struct err e = {0};
    if (s->folder_us > clock_boot_us() || s->is_away)
        return -1;
    if (make_ready(s, &e) < 0) {
        slurm_folder_failed(s, &e);
        return -1;
    }
    clear_trouble(s);
    return 0;
}

void
slurm_folder_failed(struct slurm *s, const struct err *e)
{
    set_trouble(s, e);
    s->folder_us = clock_boot_us() + slurm_pause_us(&s->folder_pause_us);
    slurm_wake(s);
}

void
slurm_folder_follow(struct slurm *s)
{
    const char *next = slurm_folder_next(s);
    if (next && is_in_use(s) && !s->is_change_said)
        log_warn("event=setting key=slurm_folder takes effect when no job is on Slurm");
    s->is_change_said = next && is_in_use(s);
    if (s->folder_us == 0 || s->folder_us > clock_boot_us())
        return;
    s->folder_us = 0;
    turn_touch(s->inst);
}
