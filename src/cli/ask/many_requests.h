/* For requests that name very many jobs one by one: the daemon accepts 1,000 words per
 * request. */
#ifndef CLI_ASK_MANY_REQUESTS_H
#define CLI_ASK_MANY_REQUESTS_H

#include <jansson.h>

struct client;
struct err;

/* As client_call, for params with a list "select", which is split into several requests if it
 * is long. Lists in the answers (jobs, rows, ids, ended) are concatenated in order. */
int many_call(struct client *c, const char *method, json_t *params, json_t **result,
              struct err *e);

#endif
