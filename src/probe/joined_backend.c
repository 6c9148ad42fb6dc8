/* See joined_backend.h. The first backend's cards keep their places, so that its links and what
 * it is asked about its cards need no translation. Called by choose_backend.c. */
#include "probe/joined_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

struct joined {
    const struct backend *first;
    void *first_state, *drm_state;
    int n_first, n_drm;
    struct backend_sample drm; /* its sample; the lists change places with those of the whole */
};

static int
joined_sample(void *state, struct backend_sample *out, struct err *e)
{
    struct joined *j = state;

    if (j->first->sample(j->first_state, out, e) < 0 ||
        backend_drm.sample(j->drm_state, &j->drm, e) < 0)
        return -1;
    for (int i = 0; i < j->n_drm; i++) {
        struct backend_usage mine = out->use[j->n_first + i];
        out->use[j->n_first + i] = j->drm.use[i];
        j->drm.use[i] = mine;
    }
    return 0;
}

static bool
joined_has_changed(void *state)
{
    const struct joined *j = state;

    return (j->first->has_changed && j->first->has_changed(j->first_state)) ||
           backend_drm.has_changed(j->drm_state);
}

static void
joined_close(void *state)
{
    struct joined *j = state;

    j->first->close(j->first_state);
    backend_drm.close(j->drm_state);
    backend_sample_free(&j->drm);
    free(j);
}

static void
joined_group_use(void *state, struct backend_group *g)
{
    const struct joined *j = state;

    if (g->card < j->n_first && j->first->group_use)
        j->first->group_use(j->first_state, g);
}

static const struct backend nvml_and_drm = {.name = "nvml+drm",
                                            .sample = joined_sample,
                                            .has_changed = joined_has_changed,
                                            .close = joined_close,
                                            .group_use = joined_group_use};
static const struct backend smi_and_drm = {.name = "nvidia-smi+drm",
                                           .sample = joined_sample,
                                           .has_changed = joined_has_changed,
                                           .close = joined_close,
                                           .group_use = joined_group_use};

const struct backend *
joined_backend_make(const struct backend *first, void *first_state, void *drm_state,
                    struct backend_machine *machine, const struct backend_machine *drm,
                    void **state)
{
    struct joined *j = xcalloc(1, sizeof *j);
    auto_free char *driver =
        xasprintf("%s%s%s", machine->driver, machine->driver[0] ? ", " : "", drm->driver);

    *j = (struct joined){.first = first,
                         .first_state = first_state,
                         .drm_state = drm_state,
                         .n_first = machine->n};
    for (int i = 0; i < drm->n; i++) {
        if (machine->n == GPU_MAX) {
            backend_machine_leave_out(machine, "%s is left out: there are more than %d GPUs",
                                      drm->cards[i].bus_id, GPU_MAX);
            continue;
        }
        struct backend_card *card = &machine->cards[machine->n];
        *card = drm->cards[i];
        card->index = machine->n++;
    }
    j->n_drm = machine->n - j->n_first;
    for (int i = 0; i < drm->n_left_out; i++)
        backend_machine_leave_out(machine, "%s", drm->left_out[i]);
    snprintf(machine->driver, sizeof machine->driver, "%s", driver);
    *state = j;
    return first == &backend_nvml ? &nvml_and_drm : &smi_and_drm;
}
