/* Checks the paths that a job names; see job_places.h. Called by submit_verb.c, and by
 * run_file.c for each line. */
#include "cli/ask/job_places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/ask/request_write.h"

static int
settle_folder(struct request *r, struct err *e)
{
    auto_free char *folder = r->chdir ? realpath(r->chdir, NULL) : NULL;
    struct stat st;

    if (!r->chdir)
        return 0;
    if (!folder || stat(folder, &st) < 0)
        return err_errno(e, ERR_USAGE, errno, "chdir: %.200s", r->chdir);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_USAGE, "chdir: %.200s is not a folder", r->chdir);
    if (jobreq_check_folder(folder, e) < 0)
        return -1;
    free(r->chdir);
    r->chdir = TAKE(folder);
    return 0;
}

static bool
may(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

/* Truncates path to its deepest existing folder, in the end "/". */
static void
cut_to_existing(char *path, struct stat *st)
{
    while (stat(path, st) < 0) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path) {
            path[path[0] == '/'] = '\0';
            if (stat(path[0] ? path : ".", st) < 0)
                st->st_mode = S_IFDIR;
            return;
        }
        *slash = '\0';
    }
}

static int
refuse(struct err *e, const char *what, const char *pattern, const char *folder,
       const char *why)
{
    auto_buf struct buf file = BUF_INIT, where = BUF_INIT;

    text_add_safe(&file, pattern, strlen(pattern), 120);
    text_add_safe(&where, folder, strlen(folder), 120);
    return err_set(e, ERR_USAGE, "%s: %s cannot be written: %s %s", what, buf_str(&file),
                   buf_str(&where), why);
}

/* Checks the pattern only up to the first %, as the rest of the path is not known yet. */
static int
check_output(const char *what, const char *pattern, const char *folder, struct err *e)
{
    size_t known = pattern ? strcspn(pattern, "%") : 0;
    bool is_whole = pattern && !pattern[known];
    struct stat st;

    if (!pattern)
        return 0;
    auto_free char *path = pattern[0] == '/' || !folder
                               ? xstrndup(pattern, known)
                               : xasprintf("%s/%.*s", folder, (int)known, pattern);
    if (is_whole && stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return refuse(e, what, pattern, path, "is a folder");
        return may(path, W_OK) ? 0 : refuse(e, what, pattern, path, "is not writable for you");
    }
    char *slash = strrchr(path, '/');
    if (!slash)
        path[0] = '\0';
    else
        slash[slash == path] = '\0';
    if (!path[0])
        return may(".", W_OK | X_OK)
                   ? 0
                   : refuse(e, what, pattern, "this folder", "is not writable for you");
    cut_to_existing(path, &st);
    if (!S_ISDIR(st.st_mode))
        return refuse(e, what, pattern, path, "is not a folder");
    if (!may(path[0] ? path : ".", W_OK | X_OK))
        return refuse(e, what, pattern, path[0] ? path : "this folder",
                      "is not writable for you");
    return 0;
}

int
jobplaces_settle(struct request *r, struct err *e)
{
    if (settle_folder(r, e) < 0 || check_output("log", r->log, r->chdir, e) < 0 ||
        check_output("error", r->error, r->chdir, e) < 0)
        return -1;
    return 0;
}
