/* Derives the command's end from that of podman or Apptainer. */
#ifndef SHEPHERD_ATTEMPT_CONTAINER_OUTCOME_H
#define SHEPHERD_ATTEMPT_CONTAINER_OUTCOME_H

#include <stdbool.h>

struct ending;
struct exitrec;
struct facts;

/* Replaces podman's code and signal in *en by the command's, if known. */
void container_fill_status(const struct facts *f, struct ending *en);

/* True if the command never began; then sets the outcome and its text, and the blame if the
 * job's request is not the cause. */
bool container_fill_failure(const struct facts *f, struct exitrec *r);

#endif
