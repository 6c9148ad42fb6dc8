/* The folder of a user's control daemon, inside root's, with a bounded size. */
#ifndef SHEPHERD_MPS_MPS_FOLDER_H
#define SHEPHERD_MPS_MPS_FOLDER_H

#include "shepherd/begin/identity.h"

struct err;

/* Makes the folder `name` in parent_fd, where only root (or we) can write. If root makes it for
 * a user, owner is that user, and a 16 MiB file system of the user's is mounted on it. If none
 * can be mounted, or owner is NULL (we are that user), the user gets the folder itself. Reuses
 * an existing mount. 0, or -1 with the reason. */
int mps_folder_make(int parent_fd, const char *name, const struct identity *owner,
                    struct err *e);

/* Unmounts the file system, unless it is in use. path: the folder's. */
void mps_folder_end(int parent_fd, const char *name, const char *path);

#endif
