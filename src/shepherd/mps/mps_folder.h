/* The folder of a user's control daemon: in root's, and no more than a little of its room. */
#ifndef SHEPHERD_MPS_MPS_FOLDER_H
#define SHEPHERD_MPS_MPS_FOLDER_H

#include "shepherd/begin/identity.h"

struct err;

/* Makes the folder `name` in parent_fd, where only root (or we) can write. owner: the user
 * that root makes it for, and that gets a file system of 16 MiB on it; where none can be
 * mounted, and with owner NULL (we are that user), the folder itself. One that is mounted
 * already is used again. 0, or -1 with the reason. */
int mps_folder_make(int parent_fd, const char *name, const struct identity *owner,
                    struct err *e);

/* Unmounts what was mounted there, unless it is in use. path: the folder's. */
void mps_folder_end(int parent_fd, const char *name, const char *path);

#endif
