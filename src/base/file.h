/* Files: whole reads with a bound, writes that are all or nothing, locks. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf;
struct err;
struct stat;

/* Reads a whole file, or standard input for "-", into *out (which is cleared first).
 * More than max bytes is an error that names the bound. Regular files, pipes and character
 * devices are read; a directory is an error. */
int file_read(const char *path, size_t max, struct buf *out, struct err *e);
int file_read_at(int dirfd, const char *name, size_t max, struct buf *out, struct err *e);

/* Opens for reading a file that another user may have put there. Only a regular file is ever
 * opened: a device or FIFO is recognised without that. -1 with errno; EINVAL: it is something
 * else. */
int file_open_regular(const char *path);

/* Writes NAME.tmp beside it, optionally fsyncs, renames over NAME. With sync, the folder
 * is fsynced too, so the new content survives power loss once this returns. */
int file_write_atomic_at(int dirfd, const char *name, const void *bytes, size_t n, mode_t mode,
                         bool sync, struct err *e);
/* Its two halves, for callers that have to look once more before the rename. */
int file_write_temp_at(int dirfd, const char *name, const void *bytes, size_t n, mode_t mode,
                       bool sync, struct err *e);
int file_rename_temp_at(int dirfd, const char *name, bool sync, struct err *e);

/* mkdir -p with this mode for the folders it makes. */
int file_mkdirs(const char *path, mode_t mode, struct err *e);

/* Opens (creating if missing, mode 0600, O_CLOEXEC) and takes an exclusive flock without
 * waiting. Returns the descriptor, which holds the lock until its last copy is closed; -1 with
 * *held true when another process has it. */
int file_lock(const char *path, bool *held, struct err *e);

/* Whether any process holds a flock on NAME: 1 yes, 0 no (or no such file), -1 error. */
int file_is_locked_at(int dirfd, const char *name, struct err *e);

/* The same, and the file's text, in which the holder names itself. */
int file_read_locked_at(int dirfd, const char *name, size_t max, struct buf *out,
                        struct err *e);

/* Kind, size and device of an open file as far as the kernel knows them: fstat asks a file
 * server, or a program of a user's (FUSE), that may never answer. What this machine writes is
 * known. */
int file_look(int fd, struct stat *out);

/* Whether two looks at a name saw the same file, and nothing written to it in between. */
bool file_is_same(const struct stat *a, const struct stat *b);

/* Whether some process has the file open to write into it; fd is open for reading alone. False
 * too where that cannot be known: another user's file, a file system without leases. */
bool file_has_writers(int fd);

/* Everything, retrying short writes and EINTR. 0 or -1 with errno. */
int file_write_all(int fd, const void *bytes, size_t n);
int file_write_all_at(int fd, const void *bytes, size_t n, off_t offset);

/* A file in memory with these bytes, read from its beginning (O_CLOEXEC); name is for people
 * who look into /proc. -1 with errno. */
int file_in_memory(const char *name, const void *bytes, size_t n);

/* Waits until there is something to read, or nothing ever will be, through signals and whatever
 * else ends a poll early; false when that takes longer than patience_ms. */
bool file_await(int fd, int patience_ms);

#endif
