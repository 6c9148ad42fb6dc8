/* Helpers for all backends to fill the values of backend.h: process lists that are reused
 * between samples, the set of linked pairs, and notes. */
#include "gpu/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

void
backend_sample_reset(struct backend_sample *s)
{
    for (int i = 0; i < GPU_MAX; i++) {
        s->use[i].valid = 0;
        s->use[i].present = false;
        s->use[i].n_procs = 0;
        s->use[i].n_ended = 0;
    }
}

void
backend_sample_free(struct backend_sample *s)
{
    for (int i = 0; i < GPU_MAX; i++) {
        free(s->use[i].procs);
        free(s->use[i].ended);
    }
    memset(s, 0, sizeof *s);
}

static void
add_process(struct backend_usage *u, int32_t pid, int64_t mib, bool draws)
{
    for (int i = 0; i < u->n_procs; i++) {
        struct backend_proc *p = &u->procs[i];
        if (p->pid != pid)
            continue;
        if (mib > p->mib)
            p->mib = mib;
        p->only_draws &= draws;
        return;
    }
    u->procs = xgrow(u->procs, u->n_procs, &u->cap_procs, sizeof *u->procs);
    u->procs[u->n_procs++] =
        (struct backend_proc){.pid = pid, .mib = mib, .peak_mib = -1, .only_draws = draws};
}

void
backend_usage_add(struct backend_usage *u, int32_t pid, int64_t mib)
{
    add_process(u, pid, mib, false);
}

void
backend_usage_add_drawing(struct backend_usage *u, int32_t pid, int64_t mib)
{
    add_process(u, pid, mib, true);
}

void
backend_usage_add_ended(struct backend_usage *u, int32_t pid, int64_t peak_mib)
{
    u->ended = xgrow(u->ended, u->n_ended, &u->cap_ended, sizeof *u->ended);
    u->ended[u->n_ended++] = (struct backend_proc){.pid = pid, .mib = -1, .peak_mib = peak_mib};
}

void
backend_machine_link(struct backend_machine *m, int a, int b)
{
    uint8_t low = (uint8_t)(a < b ? a : b);
    uint8_t high = (uint8_t)(a < b ? b : a);

    if (low == high)
        return;
    for (int i = 0; i < m->n_links; i++) {
        if (m->links[i][0] == low && m->links[i][1] == high)
            return;
    }
    if (m->n_links == BACKEND_LINKS_MAX)
        err_abort("more links than pairs of cards");
    m->links[m->n_links][0] = low;
    m->links[m->n_links][1] = high;
    m->n_links++;
}

void
backend_machine_add_node(struct backend_machine *m, int32_t node, const cpu_set_t *cpus)
{
    if (m->n_nodes == BACKEND_NODES_MAX)
        return;
    m->nodes[m->n_nodes].node = node;
    m->nodes[m->n_nodes++].cpus = *cpus;
}

void
backend_machine_leave_out(struct backend_machine *m, const char *fmt, ...)
{
    va_list ap;

    if (m->n_left_out == BACKEND_NOTES_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(m->left_out[m->n_left_out++], BACKEND_NOTE_MAX, fmt, ap);
    va_end(ap);
}

void
backend_machine_add_unanswered(struct backend_machine *m, const char *bus_id, bool is_lost,
                               const char *fmt, ...)
{
    va_list ap;

    if (m->n_unanswered == BACKEND_NOTES_MAX)
        return;
    struct backend_unanswered *u = &m->unanswered[m->n_unanswered++];
    snprintf(u->bus_id, sizeof u->bus_id, "%s", bus_id);
    u->is_lost = is_lost;
    va_start(ap, fmt);
    vsnprintf(u->text, sizeof u->text, fmt, ap);
    va_end(ap);
}
