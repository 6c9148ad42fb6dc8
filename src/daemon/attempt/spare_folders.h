/* Folders of ended attempts, kept for reuse: making and removing folders is most of what a
 * short job costs the file system. A spare folder contains only an empty lock file, like a
 * new one. */
#ifndef DAEMON_ATTEMPT_SPARE_FOLDERS_H
#define DAEMON_ATTEMPT_SPARE_FOLDERS_H

#include <stdbool.h>
#include <stdint.h>

struct spare_folders;

/* An empty collection; free with free(). The folders themselves stay, and a later daemon
 * removes them. */
struct spare_folders *spare_new(void);

/* Keeps the folder NAME of an attempt whose end is committed, and empties it. False: it still
 * has its name, and must be removed. */
bool spare_keep(struct spare_folders *s, int jobs_fd, const char *name);

/* Renames a spare folder to NAME. Its lock is empty and was free, and nothing of the previous
 * attempt is left. False: none available; NAME is unchanged. */
bool spare_take(struct spare_folders *s, int jobs_fd, const char *name);

/* True if NAME is a spare folder that an earlier daemon left behind. */
bool spare_is_left(const struct spare_folders *s, const char *name);

#endif
