/* Names of files as the daemon takes them, which knows nothing of a front end's folder. */
#ifndef COMPAT_ENGINE_COMPAT_PATHS_H
#define COMPAT_ENGINE_COMPAT_PATHS_H

#include <stddef.h>

struct buf;
struct err;

/* By its real name; of what is not there that of its folder, and where that is not either:
 * NULL. The caller frees it. */
char *compat_real(const char *path);
/* By its whole name, whether it is there or not; the caller frees it. */
char *compat_absolute(const char *path);
/* "folder/name" as the pattern of a job's log: a percent sign of the folder is said twice, the
 * name is a pattern already. The caller frees it. */
char *compat_log_pattern(const char *folder, const char *name);
/* file_read_at, of a regular file alone: a pipe would keep us waiting for its writer. */
int compat_read_regular(const char *path, size_t max, struct buf *out, struct err *e);

#endif
