/* Keeps looking up the users and the group (admin_group) named in the settings until all are
 * known. */
#ifndef DAEMON_COMMON_SETTINGS_NAMES_H
#define DAEMON_COMMON_SETTINGS_NAMES_H

#include <stdint.h>
#include <uv.h>

struct instance;

struct settings_names {
    const struct instance *inst; /* borrowed */
    uv_timer_t again;            /* until the next round of lookups */
    uint64_t pause_ms;           /* before it */
};

/* Looks all of them up, synchronously. Call after users_start. */
void settings_names_start(struct settings_names *n, const struct instance *inst);
/* Asks again for all, after the settings have been read again; users_answered_fn follows if
 * anything has changed. */
void settings_names_ask(struct settings_names *n);
void settings_names_close(struct settings_names *n);

#endif
