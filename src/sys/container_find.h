/* The programs that run containers, for the daemon and `berth doctor`. */
#ifndef SYS_CONTAINER_FIND_H
#define SYS_CONTAINER_FIND_H

#include <stdbool.h>

/* A program of that name, podman, or Apptainer (called singularity in older releases), in PATH
 * and the usual folders. The caller frees; NULL: it is not installed. */
char *container_find(const char *name);
char *container_find_podman(void);
char *container_find_apptainer(void);

/* The name of the image shows that it is Apptainer's: a file, or a word of its own in front. */
bool container_is_image_file(const char *image);

#endif
