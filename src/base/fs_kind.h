/* What kind of file system a path is on. */
#ifndef BASE_FS_KIND_H
#define BASE_FS_KIND_H

enum fs_kind {
    FS_LOCAL,
    FS_FUSE,   /* a program's: may be anything, sshfs among it */
    FS_NETWORK /* locks and fsync are another machine's, which may be away */
};

/* Of the nearest folder of path that exists. *name (borrowed) is what it is called. */
enum fs_kind fs_kind_of(const char *path, const char **name);

/* The nearest folder above path, or itself, that exists: what decides where it will be. The
 * caller frees. */
char *fs_nearest_folder(const char *path);

#endif
