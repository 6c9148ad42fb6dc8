/* `berth queue --json`. */
#ifndef CLI_TABLE_QUEUE_JSON_H
#define CLI_TABLE_QUEUE_JSON_H

#include <jansson.h>

struct cli;

/* Prints the jobs that the method `jobs` returns for these params (stolen). Returns the exit
 * status. */
int queue_json_print(const struct cli *cli, json_t *params);

#endif
