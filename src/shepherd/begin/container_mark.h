/* The memory file shared by the supervisor and berth-init in the container. It starts with the
 * variables of the job's environment, each preceded by one of these letters and
 * NUL-terminated; an empty string ends them. After that, berth-init appends a line for each
 * step. */
#ifndef SHEPHERD_BEGIN_CONTAINER_MARK_H
#define SHEPHERD_BEGIN_CONTAINER_MARK_H

#define CONTAINER_FD 3 /* descriptor number in the container */

#define CONTAINER_OWN      'o' /* overrides the image's variable */
#define CONTAINER_CAPTURED 'c' /* does not override it */
#define CONTAINER_SCRIPT   's' /* not a variable: the command's /dev/fd/3 */

#define CONTAINER_BEGUN   "begun"
#define CONTAINER_NO_EXEC "errno"   /* and the errno: the exec failed */
#define CONTAINER_TROUBLE "trouble" /* and the errno: the exec was not tried */
#define CONTAINER_EXIT    "exit"    /* and the exit code */
#define CONTAINER_SIGNAL  "signal"  /* and the signal number */

#endif
