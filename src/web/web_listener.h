/* The socket at which browsers arrive. */
#ifndef WEB_WEB_LISTENER_H
#define WEB_WEB_LISTENER_H

#include <stddef.h>

struct err;
struct options;

/* The descriptor, listening; -1. address: what to type into a browser, or the file's name. */
int web_listener_open(const struct options *o, char *address, size_t size, struct err *e);

#endif
