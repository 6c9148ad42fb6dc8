/* Writes into a user's file without root's extra disk space. */
#ifndef SHEPHERD_TALK_QUOTA_WRITE_H
#define SHEPHERD_TALK_QUOTA_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* write(2) by root, subject to that user's quota and without the blocks that file systems
 * reserve for root; uid -1: a plain write. */
ssize_t quota_write(int fd, const void *bytes, size_t n, int64_t uid);

#endif
