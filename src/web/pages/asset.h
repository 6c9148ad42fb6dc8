/* The files of assets/, compiled in by embed.py. */
#ifndef WEB_PAGES_ASSET_H
#define WEB_PAGES_ASSET_H

#include <stddef.h>

struct asset {
    const char *name;
    const char *type;
    const unsigned char *bytes;
    size_t n;
};

extern const struct asset assets[]; /* terminated by a NULL name */

#endif
