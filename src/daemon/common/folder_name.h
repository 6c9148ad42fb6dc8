/* The folders of attempts, by their names below `jobs_fd`. */
#ifndef DAEMON_COMMON_FOLDER_NAME_H
#define DAEMON_COMMON_FOLDER_NAME_H

#include <stdint.h>

/* That of the attempt, "12.1", into out (at least 32 bytes); returns out. */
char *folder_name(uint32_t job, int32_t attempt, char *out);

#endif
