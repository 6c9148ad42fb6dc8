/* What `submit --wait` shares with `wait`. */
#ifndef CLI_WAIT_H
#define CLI_WAIT_H

#include <jansson.h>

/* The highest exit status in the answer of the `wait` method. */
int wait_highest(const json_t *result);

#endif
