/* The keys of `berth top`. */
#ifndef CLI_TOP_TOP_KEYS_H
#define CLI_TOP_TOP_KEYS_H

#include <stdbool.h>

struct top;
struct top_feed;

/* False: quit. */
bool top_press(struct top *t, struct top_feed *f, int key);

#endif
