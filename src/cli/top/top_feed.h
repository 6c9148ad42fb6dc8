/* Where `berth top` gets what it shows: asynchronous requests to the daemon, made when
 * something has happened, figures of the cards each second, and the way back when the daemon
 * has gone. */
#ifndef CLI_TOP_TOP_FEED_H
#define CLI_TOP_TOP_FEED_H

#include <jansson.h>

struct cli;
struct top;
struct top_feed;

struct top_feed *top_feed_new(const struct cli *cli, struct top *t);
void top_feed_free(struct top_feed *f);

/* The descriptor to wait on; -1: there is no connection. */
int top_feed_fd(const struct top_feed *f);

/* Takes what has come, connects when it is time to, asks what is due. Returns after how many
 * milliseconds it wants to be called again at the latest. */
int top_feed_run(struct top_feed *f);

/* Does something to jobs or cards; done: what to say when it went well, with what the daemon
 * says it touched behind it. params is stolen. */
void top_feed_do(struct top_feed *f, const char *method, json_t *params, const char *done);

/* What is asked for has changed (more jobs, another one selected): ask now. */
void top_feed_refresh(struct top_feed *f);

#endif
