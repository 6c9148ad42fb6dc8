/* File names in the form the daemon takes: the daemon does not run in the front end's
 * folder. */
#ifndef COMPAT_ENGINE_COMPAT_PATHS_H
#define COMPAT_ENGINE_COMPAT_PATHS_H

#include <stddef.h>

struct buf;
struct err;

/* The real path of path; if it does not exist, its folder's real path and the name; NULL if
 * the folder does not exist either. The caller frees. */
char *compat_real(const char *path);
/* The absolute path, whether or not the file exists. The caller frees. */
char *compat_absolute(const char *path);
/* "folder/name" as a job's log pattern: percent signs in folder are doubled, name is a pattern
 * already. The caller frees. */
char *compat_log_pattern(const char *folder, const char *name);
/* file_read_at for regular files only: reading a pipe would block until a writer comes. */
int compat_read_regular(const char *path, size_t max, struct buf *out, struct err *e);

#endif
