/* Slurm runs a script as it was when submitted, so a copy is kept in scripts/HOST of the
 * user's own instance, named by a hash of its text: a thousand submissions of one script need
 * one file. Jobs run the copy. Old copies are removed once no job of the user's or the
 * machine's daemon needs them. Machines that share the home folder have separate folders,
 * because their jobs are not known here. */
#include "compat/slurm/slurm_script.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/ask/connect.h"
#include "cli/submit/submit_script.h"
#include "compat/slurm/slurm.h"
#include "wire/client.h"
#include "wire/places.h"

#define PREFIX "slurm_script."
#define DIGITS 40 /* hex digits of the hash in the name */
#define STAMP  "tidied"
#define DAY_S  (24 * 3600)
#define OLD_S  (7 * DAY_S)

int
slurm_read_script(const char *path, struct buf *text)
{
    struct err e = {0};

    if (file_read(path ? path : "-", SLURM_SCRIPT_MAX, text, &e) < 0) {
        if (path && access(path, R_OK) < 0)
            return slurm_fail(1, "Unable to open file %s", path);
        return slurm_fail(1, "%s", e.text);
    }
    if (text->len == 0 || text->data[strspn(buf_str(text), " \t\n")] == '\0')
        return slurm_fail(1, "Batch script is empty!");
    if (memchr(text->data, '\0', text->len))
        return slurm_fail(1, "The Slurm controller does not allow scripts that contain a NULL "
                             "character '\\0'.");
    if (text->len < 3 || memcmp(text->data, "#!", 2) != 0) {
        (void)slurm_fail(1, "This does not look like a batch script.  The first");
        (void)slurm_fail(1, "line must start with #! followed by the path to an interpreter.");
        return slurm_fail(1, "For instance: #!/bin/sh");
    }
    if (memmem(text->data, text->len, "\r\n", 2)) {
        (void)slurm_fail(1, "Batch script contains DOS line breaks (\\r\\n)");
        return slurm_fail(1, "instead of expected UNIX line breaks (\\n).");
    }
    return 0;
}

void
slurm_wrap_script(const char *command, struct buf *text)
{
    buf_addf(text, "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n%s\n", command);
}

/* The folder of the copies, created if make is set. NULL with e. */
static char *
find_folder(bool make, struct err *e)
{
    struct places p;
    char *folder;

    if (places_find(NULL, &p, e) < 0)
        return NULL;
    *strrchr(p.state, '/') = '\0';
    folder = xasprintf("%s/scripts/%s", p.state, slurm_node());
    places_free(&p);
    if (make && file_mkdirs(folder, 0700, e) < 0) {
        free(folder);
        return NULL;
    }
    return folder;
}

/* Options can only be in the head of a script. */
static void
take_head(const struct buf *text, struct submit_script *script)
{
    size_t n = text->len < SUBMIT_HEAD_BYTES ? text->len : SUBMIT_HEAD_BYTES;
    const char *newline = memrchr(text->data, '\n', n);

    buf_add(&script->head, text->data,
            n < text->len && newline ? (size_t)(newline - text->data) : n);
}

int
slurm_keep_script(const struct buf *text, const char *shown, struct submit_script *script)
{
    struct err e = {0};
    auto_free char *folder = find_folder(true, &e);
    char digest[DIGITS + 1];

    if (!folder)
        return slurm_fail(1, "%s", e.text);
    text_sha1(text->data, text->len, digest);
    auto_free char *path = xasprintf("%s/" PREFIX "%s", folder, digest);
    /* Do not rewrite a copy, which may be running; its mtime is the last submission. */
    if (utimensat(AT_FDCWD, path, NULL, 0) < 0 &&
        file_write_atomic_at(AT_FDCWD, path, text->data, text->len, 0700, true, &e) < 0)
        return slurm_fail(1, "%s", e.text);
    script->path = TAKE(path);
    script->shown = shown;
    script->can_run = true;
    take_head(text, script);
    return 0;
}

/* command is shell-quoted, so a path with blanks is in quotes. */
char *
slurm_kept_script(const char *command)
{
    const char *path = command + (command[0] == '\''), *name = strstr(path, "/" PREFIX), *hash;

    if (!name || path[0] != '/' ||
        memchr(path, path == command ? ' ' : '\'', (size_t)(name - path)))
        return NULL;
    hash = name + sizeof PREFIX;
    if (strspn(hash, "0123456789abcdef") != DIGITS)
        return NULL;
    return strchr("' ", hash[DIGITS]) ? xstrndup(path, (size_t)(hash + DIGITS - path)) : NULL;
}

/* --- removal of old copies --- */

/* True once a day; restarts the interval. */
static bool
is_due(int dir)
{
    struct stat st;
    auto_close int fd = -1;

    if (fstatat(dir, STAMP, &st, 0) == 0 && time(NULL) - st.st_mtime < DAY_S)
        return false;
    fd = openat(dir, STAMP, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    return fd >= 0 && futimens(fd, NULL) == 0;
}

/* Append the commands of this daemon's live jobs. False: not known. */
static bool
add_commands(struct client *c, struct buf *out)
{
    const char *text;
    size_t n;

    if (client_call_raw(c, "jobs", json_pack("{s:[s]}", "fields", "command"), &text, &n, NULL) <
        0)
        return false;
    buf_add(out, text, n);
    return true;
}

/* If the daemon of an instance is not running, its jobs are not known. */
static bool
add_commands_of(const struct places *p, struct buf *out)
{
    auto_free char *path = places_live_socket(p);
    auto_client struct client *c = client_connect(path, NULL);

    if (!c)
        return access(p->state, F_OK) < 0 && errno == ENOENT;
    client_set_patience(c, CONNECT_PATIENCE_MS);
    return add_commands(c, out);
}

/* With BERTH_DIR the machine has no instance of its own. */
static bool
add_all_commands(struct buf *out)
{
    auto_client struct client *c = slurm_connect("sbatch");
    struct places own, system;
    struct err e;
    bool known = c && add_commands(c, out);

    if (!known || places_find(NULL, &own, &e) < 0)
        return false;
    known = add_commands_of(&own, out);
    places_free(&own);
    if (known && places_system(NULL, &system, &e) == 0) {
        known = add_commands_of(&system, out);
        places_free(&system);
    }
    return known;
}

static void
remove_old(int dir, DIR *listing, const char *in_use)
{
    const struct dirent *entry;
    struct stat st;

    while ((entry = readdir(listing))) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0 &&
            fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            time(NULL) - st.st_mtime > OLD_S && !strstr(in_use, entry->d_name))
            (void)unlinkat(dir, entry->d_name, 0);
    }
}

void
slurm_tidy_scripts(void)
{
    struct err e;
    auto_buf struct buf in_use = BUF_INIT;
    auto_free char *folder = find_folder(false, &e);
    auto_dir DIR *listing = folder ? opendir(folder) : NULL;

    if (!listing || !is_due(dirfd(listing)))
        return;
    if (add_all_commands(&in_use))
        remove_old(dirfd(listing), listing, buf_str(&in_use));
}
