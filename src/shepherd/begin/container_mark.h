/* What the supervisor and berth-init, in the container, write to each other in a file in
 * memory. First come the variables of the job's environment, each with a NUL behind it and one
 * of these letters before it; an empty one ends them. Behind that berth-init adds a line for
 * each step. */
#ifndef SHEPHERD_BEGIN_CONTAINER_MARK_H
#define SHEPHERD_BEGIN_CONTAINER_MARK_H

#define CONTAINER_FD 3 /* in the container */

#define CONTAINER_OWN      'o' /* replaces what the image has */
#define CONTAINER_CAPTURED 'c' /* does not */
#define CONTAINER_SCRIPT   's' /* no variable, but what the command finds in /dev/fd/3 */

#define CONTAINER_BEGUN   "begun"
#define CONTAINER_NO_EXEC "errno"   /* and its number: the command could not be executed */
#define CONTAINER_TROUBLE "trouble" /* and its number: why it was not tried */
#define CONTAINER_EXIT    "exit"    /* and the code */
#define CONTAINER_SIGNAL  "signal"  /* and its number */

#endif
