/* Writing into a user's file without what root may take of a disk beyond others. */
#ifndef SHEPHERD_TALK_QUOTA_WRITE_H
#define SHEPHERD_TALK_QUOTA_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* write(2) by root, within the quota of that user and without the blocks that file systems keep
 * for root; uid -1: as the process itself. */
ssize_t quota_write(int fd, const void *bytes, size_t n, int64_t uid);

#endif
