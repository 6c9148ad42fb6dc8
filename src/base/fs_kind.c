/* Kinds of file systems: see fs_kind.h. The daemon refuses to keep its state on a network file
 * system, because a lock there may be granted twice and an acknowledged write may be lost. */
#include "base/fs_kind.h"

#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

static const struct {
    unsigned long type; /* statfs(2), linux/magic.h, and the file systems' own sources */
    enum fs_kind kind;
    const char *name;
} kinds[] = {
    {0x6969, FS_NETWORK, "NFS"},        {0x517b, FS_NETWORK, "SMB"},
    {0xff534d42, FS_NETWORK, "CIFS"},   {0xfe534d42, FS_NETWORK, "SMB"},
    {0x0bd00bd0, FS_NETWORK, "Lustre"}, {0x47504653, FS_NETWORK, "GPFS"},
    {0x19830326, FS_NETWORK, "BeeGFS"}, {0x00c36400, FS_NETWORK, "Ceph"},
    {0x5346414f, FS_NETWORK, "AFS"},    {0x01021997, FS_NETWORK, "9p"},
    {0x65735546, FS_FUSE, "FUSE"},
};

/* Looks up the magic number of statfs(2). */
static enum fs_kind
kind_of_type(unsigned long type, const char **name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if ((type & 0xffffffff) == kinds[i].type) {
            *name = kinds[i].name;
            return kinds[i].kind;
        }
    }
    *name = "local";
    return FS_LOCAL;
}

char *
fs_nearest_folder(const char *path)
{
    char *p = xstrdup(path);

    while (access(p, F_OK) < 0) {
        char *slash = strrchr(p, '/');

        if (!slash || slash == p) {
            free(p);
            return xstrdup("/");
        }
        *slash = '\0';
    }
    return p;
}

enum fs_kind
fs_kind_of(const char *path, const char **name)
{
    auto_free char *folder = fs_nearest_folder(path);
    struct statfs fs;

    if (statfs(folder, &fs) == 0)
        return kind_of_type((unsigned long)fs.f_type, name);
    *name = "unknown";
    return FS_LOCAL;
}
