/* Session keyrings of the kernel (keyrings(7)): a process inherits its parent's, with all the
 * keys in it. A program that starts processes for several users must not pass one on. */
#ifndef SYS_KEYRING_H
#define SYS_KEYRING_H

/* Gives this process a new, empty session keyring, as a login does; its children inherit it.
 * Called twice around becoming a user: keyring_leave as root, which no quota of the user can
 * prevent, and keyring_settle as the user, who then owns the keyring; it links to that user's
 * own keys (the user keyring). System calls only. */

/* 0 or an errno value. A kernel without keyrings, or a container that forbids their system
 * calls, is no error: there are no keys to read. */
int keyring_leave(void);

/* What cannot be done leaves the empty keyring of keyring_leave in place. */
void keyring_settle(void);

#endif
