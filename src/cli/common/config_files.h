/* The files from which a daemon started now would take its settings: /etc/berth/config.yaml,
 * then the user's. */
#ifndef CLI_COMMON_CONFIG_FILES_H
#define CLI_COMMON_CONFIG_FILES_H

#include <stdbool.h>

struct config;

/* Reads those that exist, over what *c has. say: tells which are valid and which do not exist.
 * 0, or the exit status, with everything that is wrong said. */
int config_files_read(struct config *c, bool say);
/* The same for one file. */
int config_files_read_one(struct config *c, const char *path);

#endif
