/* Folders of attempts that are over, kept for attempts to come: what a short job costs the file
 * system is mostly the making and removing of these. A spare folder holds a lock file, which is
 * empty, and nothing else, as a new one does. */
#ifndef DAEMON_ATTEMPT_SPARE_FOLDERS_H
#define DAEMON_ATTEMPT_SPARE_FOLDERS_H

#include <stdbool.h>
#include <stdint.h>

struct spare_folders;

/* None yet. The caller frees it with free; the folders stay, for a later daemon to remove. */
struct spare_folders *spare_new(void);

/* Keeps the folder NAME of an attempt whose end is committed: what it holds is not needed any
 * more. False: it is still there under its name, and is to be removed. */
bool spare_keep(struct spare_folders *s, int jobs_fd, const char *name);

/* Makes a spare folder the folder NAME. Its lock is empty and was free; nothing is left of the
 * attempt that had it. False: there is none, and NAME is as it was. */
bool spare_take(struct spare_folders *s, int jobs_fd, const char *name);

/* Whether NAME is that of a spare folder, and not one of these: an earlier daemon left it. */
bool spare_is_left(const struct spare_folders *s, const char *name);

#endif
