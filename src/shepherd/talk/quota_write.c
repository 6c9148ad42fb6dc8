/* Writing on behalf of a user: see quota_write.h. CAP_SYS_RESOURCE bypasses quotas and gives
 * access to reserved blocks of ext4 and others, and so does root's uid as the owner of those
 * blocks; the rest of the process needs both. console.c uses this to write a terminal's
 * output. */
#include "shepherd/talk/quota_write.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

struct caps {
    struct __user_cap_header_struct head;
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
};

/* False: the capabilities cannot be read, and nothing was changed. */
static bool
give_up_resource(struct caps *before)
{
    const int which = CAP_TO_INDEX(CAP_SYS_RESOURCE);
    before->head = (struct __user_cap_header_struct){.version = _LINUX_CAPABILITY_VERSION_3};
    if (syscall(SYS_capget, &before->head, before->sets) < 0)
        return false;
    struct caps less = *before;
    less.sets[which].effective &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
    return syscall(SYS_capset, &less.head, less.sets) == 0;
}

ssize_t
quota_write(int fd, const void *bytes, size_t n, int64_t uid)
{
    struct caps before;
    if (uid < 0)
        return write(fd, bytes, n);
    bool is_less = give_up_resource(&before);
    int own = setfsuid((uid_t)uid);
    ssize_t rc = write(fd, bytes, n);
    int why = errno;
    (void)setfsuid((uid_t)own);
    if (is_less)
        (void)syscall(SYS_capset, &before.head, before.sets);
    errno = why;
    return rc;
}
