/* The kind of file system a path is on. */
#ifndef BASE_FS_KIND_H
#define BASE_FS_KIND_H

enum fs_kind {
    FS_LOCAL,
    FS_FUSE,   /* served by a user's program: may be anything, such as sshfs */
    FS_NETWORK /* locks and fsync depend on another machine, which may be away */
};

/* The kind for the nearest existing folder of path. *name (borrowed) is the type's name. */
enum fs_kind fs_kind_of(const char *path, const char **name);

/* The nearest existing folder at or above path, which decides the file system of a new file.
 * The caller frees. */
char *fs_nearest_folder(const char *path);

#endif
