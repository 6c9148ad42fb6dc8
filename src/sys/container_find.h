/* Finds the container programs, for the daemon and `berth doctor`. */
#ifndef SYS_CONTAINER_FIND_H
#define SYS_CONTAINER_FIND_H

#include <stdbool.h>

/* The path of a program by name, of podman, or of Apptainer (called singularity in older
 * releases), from PATH and the usual folders. The caller frees; NULL: not installed. */
char *container_find(const char *name);
char *container_find_podman(void);
char *container_find_apptainer(void);

/* True if the image's name has a form that only Apptainer takes: a file, or a prefix of its
 * own. */
bool container_is_image_file(const char *image);

#endif
