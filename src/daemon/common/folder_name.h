/* Names of attempts' folders, relative to `jobs_fd`. */
#ifndef DAEMON_COMMON_FOLDER_NAME_H
#define DAEMON_COMMON_FOLDER_NAME_H

#include <stdint.h>

/* Writes the attempt's folder name, such as "12.1", to out (at least 32 bytes);
 * returns out. */
char *folder_name(uint32_t job, int32_t attempt, char *out);

#endif
