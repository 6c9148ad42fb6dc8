/* The settings files of a daemon that would be started now: /etc/berth/config.yaml, then the
 * user's. */
#ifndef CLI_COMMON_CONFIG_FILES_H
#define CLI_COMMON_CONFIG_FILES_H

#include <stdbool.h>

struct config;

/* Reads the existing files over the values in *c. say: prints which are valid and which do not
 * exist. 0, or the exit status, with all errors printed. */
int config_files_read(struct config *c, bool say);
/* The same for a single file. */
int config_files_read_one(struct config *c, const char *path);

#endif
