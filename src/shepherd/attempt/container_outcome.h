/* What the end of podman or Apptainer means for the command that it was to run. */
#ifndef SHEPHERD_ATTEMPT_CONTAINER_OUTCOME_H
#define SHEPHERD_ATTEMPT_CONTAINER_OUTCOME_H

#include <stdbool.h>

struct ending;
struct exitrec;
struct facts;

/* Code and signal in *en, which are podman's, become the command's, where that is known. */
void container_fill_status(const struct facts *f, struct ending *en);

/* Whether the command was never begun: then the outcome and its words are set, and whose
 * trouble it was where that was not what the job asked for. */
bool container_fill_failure(const struct facts *f, struct exitrec *r);

#endif
