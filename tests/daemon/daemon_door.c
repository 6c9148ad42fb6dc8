/* See daemon_door.h. */
#include "daemon_door.h"

#include <stdlib.h>

struct door *
door_open(int n_cards)
{
    struct door *d = xcalloc(1, sizeof *d);
    d->w = world_open(n_cards);
    config_init(&d->config);
    d->budget = (struct budget){.config = &d->config, .system = true};
    d->a = (struct admission){
        .state = &d->w->s, .config = &d->config, .budget = &d->budget, .store = d->w->store};
    return d;
}

void
door_close(struct door *d)
{
    config_free(&d->config);
    world_close(d->w);
    free(d);
}

void
door_crash(struct door *d)
{
    world_crash(d->w);
    d->a.store = d->w->store;
}
