/* Creates and frees the struct shared by the files of this folder: see attempts.h. Called
 * by berthd.c. */
#include "daemon/attempt/attempts.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "daemon/attempt/launch.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/attempt/spare_folders.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/nursery/nursery_link.h"
#include "sys/confine.h"

/* Applies the setting device_filter; `auto` means the machine's daemon, if available. */
static void
choose_device_filter(struct attempts *a)
{
    const struct config *c = &a->inst->config;
    const struct confinement *place = nursery_place(a->nursery);
    a->wants_device_filter = c->device_filter == DEVICE_FILTER_ON ||
                             (c->device_filter == DEVICE_FILTER_AUTO && a->inst->places.system);
    if (c->device_filter == DEVICE_FILTER_ON && !place->has[CONFINE_DEVICES])
        log_warn("event=no-device-filter %s", place->why[CONFINE_DEVICES]);
}

struct attempts *
attempts_new(struct instance *inst, const struct card_facts *cards, struct limits *limits,
             const char *unit, struct err *e)
{
    struct nursery *nursery = nursery_new(inst->name, unit, e);
    if (!nursery)
        return NULL;
    struct attempts *a = xcalloc(1, sizeof *a);
    a->inst = inst;
    a->cards = cards;
    a->nursery = nursery;
    choose_device_filter(a);
    uv_timer_init(inst->loop, &a->strays_timer);
    a->spare_folders = spare_new();
    a->launches = launches_new();
    a->watcher = watcher_new(a);
    a->machine = machine_new(a, limits);
    return a;
}

void
attempts_close(struct attempts *a)
{
    watcher_close(a->watcher);
    machine_close(a->machine);
    uv_close((uv_handle_t *)&a->strays_timer, NULL);
}

void
attempts_free(struct attempts *a)
{
    watcher_free(a->watcher);
    machine_free(a->machine);
    launches_free(a->launches);
    nursery_free(a->nursery);
    free(a->spare_folders);
    free(a);
}
