/* The listening socket. */
#ifndef WEB_WEB_LISTENER_H
#define WEB_WEB_LISTENER_H

#include <stddef.h>

struct err;
struct options;

/* The listening descriptor, or -1. address: the URL for a browser, or the socket's path. */
int web_listener_open(const struct options *o, char *address, size_t size, struct err *e);

#endif
