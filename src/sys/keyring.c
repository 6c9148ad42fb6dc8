/* Session keyrings: see keyring.h. Raw system calls, because libkeyutils is not everywhere and
 * the callers sit between fork and exec. */
#include "sys/keyring.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int
keyring_leave(void)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
        return 0;
    return errno == ENOSYS || errno == EPERM || errno == EOPNOTSUPP ? 0 : errno;
}

void
keyring_settle(void)
{
    /* If the user's key quota is exhausted, root's keyring stays in place. */
    (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    (void)syscall(SYS_keyctl, KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING);
}
