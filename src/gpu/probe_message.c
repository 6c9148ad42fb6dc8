/* Writes the probe's lines. A field without its bit in `valid` is written as null, which is
 * not 0. Called by berth-probe; the daemon reads these lines. Pure. */
#include "gpu/probe_message.h"

#include "base/buf.h"
#include "base/cpu_list.h"
#include "base/jsonw.h"
#include "gpu/backend.h"
#include "gpu/kmsg.h"

static void
put_int(struct jsonw *w, const char *key, uint32_t valid, enum card_field field, int64_t value)
{
    if (valid & field)
        jsonw_kint(w, key, value);
    else
        jsonw_knull(w, key);
}

static const char *
compute_mode_name(enum card_compute_mode mode)
{
    switch (mode) {
    case CARD_COMPUTE_DEFAULT:
        return "default";
    case CARD_COMPUTE_EXCLUSIVE:
        return "exclusive";
    case CARD_COMPUTE_PROHIBITED:
        return "prohibited";
    }
    return NULL;
}

static const char *
vendor_name(enum card_vendor vendor)
{
    static const char *const names[] = {[CARD_SIMULATED] = NULL,
                                        [CARD_NVIDIA] = "nvidia",
                                        [CARD_AMD] = "amd",
                                        [CARD_INTEL] = "intel"};

    return names[vendor];
}

static void
put_dri(struct jsonw *w, const struct backend_card *card)
{
    if (!(card->valid & CARD_HAS_DRI))
        return;
    jsonw_karray(w, "dri");
    jsonw_int(w, card->dri_card);
    jsonw_int(w, card->dri_render);
    jsonw_end_array(w);
}

static void
put_instance(struct jsonw *w, const struct backend_card *card)
{
    if (!card->mig_gpu[0])
        return;
    jsonw_kobject(w, "mig");
    jsonw_kstr(w, "gpu", card->mig_gpu);
    jsonw_kint(w, "gi", card->mig_gi);
    jsonw_kint(w, "ci", card->mig_ci);
    if (card->mig_gi_cap >= 0 && card->mig_ci_cap >= 0) {
        jsonw_karray(w, "caps");
        jsonw_int(w, card->mig_gi_cap);
        jsonw_int(w, card->mig_ci_cap);
        jsonw_end_array(w);
    }
    jsonw_end_object(w);
}

/* Lists GPUs in MIG mode: they answered, though they are not cards themselves. */
static void
put_mig_gpus(struct jsonw *w, const struct backend_machine *m)
{
    if (m->n_mig_gpus == 0)
        return;
    jsonw_karray(w, "mig_gpus");
    for (int i = 0; i < m->n_mig_gpus; i++)
        jsonw_str(w, m->mig_gpus[i]);
    jsonw_end_array(w);
    if (m->mig_major > 0)
        jsonw_kint(w, "mig_major", m->mig_major);
}

static void
put_card(struct jsonw *w, const struct backend_card *card)
{
    jsonw_object(w);
    jsonw_kint(w, "index", card->index);
    jsonw_kstr(w, "uuid", card->uuid);
    jsonw_kstr(w, "name", card->name);
    jsonw_kstr(w, "vendor", vendor_name(card->vendor));
    jsonw_kint_or_null(w, "total_mib", card->total_mib, card->total_mib > 0);
    jsonw_kstr(w, "bus_id", card->valid & CARD_HAS_BUS_ID ? card->bus_id : NULL);
    put_int(w, "minor", card->valid, CARD_HAS_MINOR, card->minor);
    if (card->valid & CARD_HAS_ORDER)
        jsonw_kint(w, "order", card->order);
    put_dri(w, card);
    put_instance(w, card);
    put_int(w, "numa", card->valid, CARD_HAS_NUMA, card->numa);
    put_int(w, "cc", card->valid, CARD_HAS_CC, card->cc);
    jsonw_kstr(w, "compute_mode",
               card->valid & CARD_HAS_COMPUTE_MODE ? compute_mode_name(card->compute_mode)
                                                   : NULL);
    jsonw_kstr(w, "cap", card->cap[0] ? card->cap : NULL);
    if (card->cap_key[0])
        jsonw_kstr(w, "cap_key", card->cap_key);
    if (!card->cap[0])
        jsonw_kstr(w, "cap_why", card->cap_why);
    jsonw_end_object(w);
}

static void
put_nodes(struct jsonw *w, const struct backend_machine *m)
{
    if (m->n_nodes == 0)
        return;
    jsonw_karray(w, "nodes");
    for (int i = 0; i < m->n_nodes; i++) {
        auto_buf struct buf cpus = BUF_INIT;
        cpu_list_add(&m->nodes[i].cpus, &cpus);
        jsonw_object(w);
        jsonw_kint(w, "node", m->nodes[i].node);
        jsonw_kstr(w, "cpus", buf_str(&cpus));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void
put_unanswered(struct jsonw *w, const struct backend_machine *m)
{
    if (m->n_unanswered == 0)
        return;
    jsonw_key(w, "unanswered");
    jsonw_array(w);
    for (int i = 0; i < m->n_unanswered; i++) {
        const struct backend_unanswered *u = &m->unanswered[i];
        jsonw_object(w);
        jsonw_kstr(w, "bus_id", u->bus_id[0] ? u->bus_id : NULL);
        jsonw_kbool(w, "lost", u->is_lost);
        jsonw_kstr(w, "text", u->text);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

void
message_hello(struct buf *out, const char *backend, const struct backend_machine *m,
              int64_t kernel_log)
{
    struct jsonw w;

    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kint(&w, "hello", 1);
    jsonw_kstr(&w, "backend", backend);
    jsonw_kstr(&w, "driver", m->driver[0] ? m->driver : NULL);
    if (kernel_log >= 0)
        jsonw_kint(&w, "kernel_log", kernel_log);
    else
        jsonw_knull(&w, "kernel_log");
    jsonw_karray(&w, "gpus");
    for (int i = 0; i < m->n; i++)
        put_card(&w, &m->cards[i]);
    jsonw_end_array(&w);
    jsonw_karray(&w, "links");
    for (int i = 0; i < m->n_links; i++) {
        jsonw_array(&w);
        jsonw_int(&w, m->cards[m->links[i][0]].index);
        jsonw_int(&w, m->cards[m->links[i][1]].index);
        jsonw_end_array(&w);
    }
    jsonw_end_array(&w);
    put_mig_gpus(&w, m);
    put_nodes(&w, m);
    if (m->n_left_out > 0) {
        jsonw_karray(&w, "left_out");
        for (int i = 0; i < m->n_left_out; i++)
            jsonw_str(&w, m->left_out[i]);
        jsonw_end_array(&w);
    }
    put_unanswered(&w, m);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

void
message_error(struct buf *out, const char *words)
{
    struct jsonw w;

    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "error", words);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

static void
put_fault(struct jsonw *w, const struct kmsg_record *r)
{
    jsonw_object(w);
    if (r->kind == KMSG_DRIVER) {
        jsonw_kbool(w, "driver_loaded", true);
    } else {
        jsonw_kint(w, "xid", r->code);
        jsonw_kstr(w, "bus_id", r->bus_id);
        if (r->gi >= 0)
            jsonw_kint(w, "gi", r->gi);
        if (r->ci >= 0)
            jsonw_kint(w, "ci", r->ci);
        if (r->pid)
            jsonw_kint(w, "pid", r->pid);
        else
            jsonw_knull(w, "pid");
        jsonw_kstr(w, "process", r->name[0] ? r->name : NULL);
        jsonw_kstr(w, "text", r->text);
    }
    jsonw_end_object(w);
}

void
message_faults(struct buf *out, int64_t kernel_log, const struct kmsg_record *records, int n)
{
    struct jsonw w;

    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kint(&w, "kernel_log", kernel_log);
    jsonw_karray(&w, "faults");
    for (int i = 0; i < n; i++)
        put_fault(&w, &records[i]);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

static const char *
health_name(enum card_memory_health health)
{
    static const char *const names[] = {
        [CARD_MEMORY_FINE] = "fine",
        [CARD_MEMORY_PENDING] = "pending",
        [CARD_MEMORY_FAILED] = "failed",
    };

    return names[health];
}

static void
put_procs(struct jsonw *w, const struct backend_usage *u, message_uid_fn uid_of)
{
    jsonw_key(w, "procs");
    if (!(u->valid & CARD_HAS_PROCS)) {
        jsonw_null(w);
        return;
    }
    jsonw_array(w);
    for (int i = 0; i < u->n_procs; i++) {
        const struct backend_proc *p = &u->procs[i];
        jsonw_object(w);
        jsonw_kint(w, "pid", p->pid);
        if (p->mib >= 0)
            jsonw_kint(w, "mib", p->mib);
        else
            jsonw_knull(w, "mib");
        if (p->peak_mib >= 0)
            jsonw_kint(w, "peak_mib", p->peak_mib);
        if (p->only_draws)
            jsonw_kbool(w, "only_draws", true);
        int64_t uid = uid_of(p->pid);
        jsonw_kint_or_null(w, "uid", uid, uid >= 0);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void
put_ended(struct jsonw *w, const struct backend_usage *u)
{
    if (u->n_ended == 0)
        return;
    jsonw_karray(w, "ended");
    for (int i = 0; i < u->n_ended; i++) {
        jsonw_object(w);
        jsonw_kint(w, "pid", u->ended[i].pid);
        jsonw_kint(w, "peak_mib", u->ended[i].peak_mib);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void
put_groups(struct jsonw *w, int card, const struct backend_group *groups, int n)
{
    bool begun = false;

    for (int i = 0; i < n; i++) {
        const struct backend_group *g = &groups[i];
        if (g->card != card)
            continue;
        if (!begun) {
            jsonw_karray(w, "groups");
            begun = true;
        }
        jsonw_object(w);
        jsonw_kstr(w, "group", g->name);
        jsonw_kint_or_null(w, "mib", g->mib, g->mib >= 0);
        if (g->peak_mib >= 0)
            jsonw_kint(w, "peak_mib", g->peak_mib);
        jsonw_end_object(w);
    }
    if (begun)
        jsonw_end_array(w);
}

void
message_sample(struct buf *out, int64_t number, const struct backend_machine *m,
               const struct backend_sample *s, const struct backend_group *groups, int n_groups,
               message_uid_fn uid_of)
{
    struct jsonw w;

    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kint(&w, "sample", number);
    jsonw_karray(&w, "gpus");
    for (int i = 0; i < m->n; i++) {
        const struct backend_usage *u = &s->use[i];
        if (!u->present)
            continue;
        jsonw_object(&w);
        jsonw_kstr(&w, "uuid", m->cards[i].uuid);
        if (u->is_unreadable) {
            jsonw_kbool(&w, "unreadable", true);
            jsonw_end_object(&w);
            continue;
        }
        put_int(&w, "used_mib", u->valid, CARD_HAS_USED, u->used_mib);
        put_int(&w, "util", u->valid, CARD_HAS_UTIL, u->util);
        put_int(&w, "temperature_c", u->valid, CARD_HAS_TEMPERATURE, u->temperature_c);
        if (u->valid & CARD_HAS_ENERGY)
            jsonw_kint(&w, "energy_mj", u->energy_mj);
        jsonw_kstr(&w, "memory", u->valid & CARD_HAS_HEALTH ? health_name(u->health) : NULL);
        put_procs(&w, u, uid_of);
        put_ended(&w, u);
        put_groups(&w, i, groups, n_groups);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}
