/* Gets the data of `berth top`: asynchronous requests to the daemon after events, figures of
 * the GPUs each second, and reconnection when the daemon is gone. */
#ifndef CLI_TOP_TOP_FEED_H
#define CLI_TOP_TOP_FEED_H

#include <jansson.h>

struct cli;
struct top;
struct top_feed;

struct top_feed *top_feed_new(const struct cli *cli, struct top *t);
void top_feed_free(struct top_feed *f);

/* The descriptor to wait on; -1: not connected. */
int top_feed_fd(const struct top_feed *f);

/* Handles received data, connects when it is time, sends requests that are due. Returns the
 * number of milliseconds until the next call is needed. */
int top_feed_run(struct top_feed *f);

/* Sends a request that changes jobs or GPUs; done: message on success, followed by the ids in
 * the answer. params is stolen. */
void top_feed_do(struct top_feed *f, const char *method, json_t *params, const char *done);

/* Sends requests now, as the view has changed (more jobs, another selection). */
void top_feed_refresh(struct top_feed *f);

#endif
