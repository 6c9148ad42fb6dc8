/* Session keyrings of the kernel (keyrings(7)): a process inherits its parent's keyring and
 * all keys in it. A program that starts processes for several users must not pass one on. */
#ifndef SYS_KEYRING_H
#define SYS_KEYRING_H

/* Two steps around changing to a user give this process, and its future children, a new, empty
 * session keyring, as a login does. keyring_leave runs as root, so the user's key quota cannot
 * make it fail. keyring_settle runs as the user, who then owns the keyring; it links to that
 * user's own keys (the user keyring). System calls only. */

/* 0 or an errno value. A kernel without keyrings, or a container that forbids their system
 * calls, is not an error: there are no keys to read. */
int keyring_leave(void);

/* Best effort: on failure, keyring_leave's empty keyring stays in place. */
void keyring_settle(void);

#endif
