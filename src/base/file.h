/* Files: bounded reads of whole files, atomic writes, locks. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf;
struct err;
struct stat;

/* Reads a whole file, or standard input for "-", into *out (cleared first). More than max
 * bytes is an error that names the bound. Accepts regular files, pipes and character devices;
 * a directory is an error. */
int file_read(const char *path, size_t max, struct buf *out, struct err *e);
int file_read_at(int dirfd, const char *name, size_t max, struct buf *out, struct err *e);

/* Opens a file for reading that another user may have put there. Never opens anything but a
 * regular file: a device or FIFO is detected beforehand. -1 with errno; EINVAL: not a regular
 * file. */
int file_open_regular(const char *path);

/* Writes NAME.tmp in the same folder, optionally fsyncs it, and renames it to NAME. With sync,
 * also fsyncs the folder, so the new content survives power loss once this returns. */
int file_write_atomic_at(int dirfd, const char *name, const void *bytes, size_t n, mode_t mode,
                         bool sync, struct err *e);
/* The two halves of file_write_atomic_at, for callers that must check something before the
 * rename. */
int file_write_temp_at(int dirfd, const char *name, const void *bytes, size_t n, mode_t mode,
                       bool sync, struct err *e);
int file_rename_temp_at(int dirfd, const char *name, bool sync, struct err *e);

/* mkdir -p; new folders get this mode. */
int file_mkdirs(const char *path, mode_t mode, struct err *e);

/* Opens the file (created if missing, mode 0600, O_CLOEXEC) and takes an exclusive flock
 * without waiting. Returns the descriptor, which holds the lock until its last copy is closed;
 * -1 with *held true if another process holds the lock. */
int file_lock(const char *path, bool *held, struct err *e);

/* Whether any process holds a flock on NAME: 1 yes, 0 no (or no such file), -1 error. */
int file_is_locked_at(int dirfd, const char *name, struct err *e);

/* As file_is_locked_at, and reads the file's text, in which the holder identifies itself. */
int file_read_locked_at(int dirfd, const char *name, size_t max, struct buf *out,
                        struct err *e);

/* Type, size and device of an open file from the kernel's cache: fstat would ask a file
 * server, or a user's FUSE program, that may never answer. This machine's own writes are
 * included. */
int file_look(int fd, struct stat *out);

/* True if both stats are of the same file with no write in between. */
bool file_is_same(const struct stat *a, const struct stat *b);

/* True if some process has the file open for writing; fd must be read-only. Also false if that
 * cannot be known: another user's file, a file system without leases. */
bool file_has_writers(int fd);

/* Writes everything, retrying short writes and EINTR. 0 or -1 with errno. */
int file_write_all(int fd, const void *bytes, size_t n);
int file_write_all_at(int fd, const void *bytes, size_t n, off_t offset);

/* A memory file with these bytes, positioned at the start (O_CLOEXEC); name shows in /proc. -1
 * with errno. */
int file_in_memory(const char *name, const void *bytes, size_t n);

/* Waits until fd is readable or at end of file, retrying if a signal or anything else ends a
 * poll early; false after patience_ms. */
bool file_await(int fd, int patience_ms);

#endif
