/* Keeps open pages up to date. While a page is open, it queries the overview after every
 * change (as often as the daemon can bear) and every few seconds for values that change
 * without an event, such as loads. If the answer differs from the last, the pages get the
 * number of the new revision, and fetch it. */
#ifndef WEB_PAGES_LIVE_PAGES_H
#define WEB_PAGES_LIVE_PAGES_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

struct cache;
struct live;
struct stream;

struct live *live_pages_new(uv_loop_t *loop);
/* Sets what it uses. Separate from live_pages_new, as cache and stream depend on it too. */
void live_pages_join(struct live *l, struct cache *cache, struct stream *stream);
void live_pages_free(struct live *l);

void live_pages_on_event(struct live *l, const json_t *event);
void live_pages_on_state(struct live *l, bool connected, const char *why);
void live_pages_on_listeners(struct live *l, int listeners);

#endif
