/* The nvidia-smi backend, for machines whose NVML cannot be loaded: runs the program twice per
 * sample. It reports less than NVML (no links, no minor numbers) and costs a process. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/child_output.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "gpu/backend.h"
#include "gpu/smi_csv.h"
#include "gpu/sysfs.h"

#define SMI_LIMIT_MS 10000

struct smi {
    const struct backend_config *config;
    struct buf out;
    struct backend_machine machine; /* as discovered */
    struct backend_machine now;     /* as last listed */
    struct backend_sample listed;
};

static const char *
program(const struct smi *smi)
{
    return smi->config->smi_path ? smi->config->smi_path : "nvidia-smi";
}

static int
run_query(struct smi *smi, const char *query, int *status, struct err *e)
{
    const char *const argv[] = {program(smi), query, "--format=csv,noheader,nounits", NULL};
    const struct child child = {.argv = argv, .patience_ms = SMI_LIMIT_MS};
    int rc = child_output(&child, &smi->out, status, e);

    return rc < 0 && e->code == ERR_TIMED_OUT
               ? err_set(e, ERR_TIMED_OUT, "%s has not answered for %d s; the driver may hang",
                         argv[0], SMI_LIMIT_MS / 1000)
               : rc;
}

static int
fail_with_words(struct smi *smi, int status, struct err *e)
{
    const char *words = buf_str(&smi->out);
    int n = (int)strcspn(words, "\n");

    if (strstr(words, "version mismatch"))
        return err_set(e, ERR_FAILED, "%s: %.*s; %s", program(smi), n, words,
                       SYSFS_MISMATCH_ADVICE);
    return err_set(e, ERR_FAILED, "%s ended with status %d%s%.*s", program(smi), status,
                   n ? ": " : "", n > 300 ? 300 : n, words);
}

/* A lost GPU makes nvidia-smi fail while the others are still listed, so rows count more than
 * the exit code. */
static int
list_cards(struct smi *smi, struct err *e)
{
    int status;
    struct err why = {.code = ERR_NONE};

    if (run_query(smi, "--query-gpu=" SMI_CSV_GPU_COLUMNS, &status, e) < 0)
        return -1;
    int parsed = smi_csv_gpus(buf_str(&smi->out), smi->out.len, &smi->now, &smi->listed, &why);
    if (status != 0 && (parsed < 0 || smi->now.n == 0))
        return fail_with_words(smi, status, e);
    if (parsed < 0)
        return err_set(e, why.code, "%s", why.text);
    return 0;
}

/* A GPU that -L does not list with instances (an old driver) counts as undivided. */
static void
leave_out_divided(struct smi *smi)
{
    const char *const argv[] = {program(smi), "-L", NULL};
    const struct child child = {.argv = argv, .patience_ms = SMI_LIMIT_MS};
    int status;

    if (child_output(&child, &smi->out, &status, NULL) == 0 && status == 0)
        smi_csv_leave_out_divided(buf_str(&smi->out), &smi->machine);
}

static int
smi_open(const struct backend_config *config, void **state, struct err *e)
{
    struct smi *smi = xcalloc(1, sizeof *smi);

    (void)e;
    smi->config = config;
    *state = smi;
    return 0;
}

/* Without an answer the compute capabilities stay unknown; nothing else depends on them. */
static void
add_capabilities(struct smi *smi)
{
    struct err e;
    int status;

    if (run_query(smi, "--query-gpu=" SMI_CSV_CC_COLUMNS, &status, &e) == 0 && status == 0)
        smi_csv_cc(buf_str(&smi->out), smi->out.len, &smi->machine);
}

static int
smi_discover(void *state, struct backend_machine *out, struct err *e)
{
    struct smi *smi = state;

    if (list_cards(smi, e) < 0)
        return -1;
    if (smi->now.n == 0)
        return err_set(e, ERR_FAILED, "%s runs but lists no GPU", program(smi));
    smi->machine = smi->now;
    add_capabilities(smi);
    leave_out_divided(smi);
    if (smi->machine.n == 0)
        return err_set(e, ERR_FAILED, "%s", smi->machine.left_out[0]);
    for (int i = 0; i < smi->machine.n; i++)
        sysfs_fill_numa(smi->config->sys_root, &smi->machine.cards[i]);
    sysfs_driver_version(smi->config->proc_root, smi->machine.driver,
                         sizeof smi->machine.driver);
    *out = smi->machine;
    return 0;
}

/* Copies the use of a discovered GPU from the newest listing; absent if it is not listed. */
static void
copy_usage(const struct smi *smi, const char *uuid, struct backend_usage *out)
{
    for (int i = 0; i < smi->now.n; i++) {
        const struct backend_usage *u = &smi->listed.use[i];
        if (strcmp(smi->now.cards[i].uuid, uuid) != 0)
            continue;
        out->present = true;
        out->valid = u->valid;
        out->used_mib = u->used_mib;
        out->util = u->util;
        out->temperature_c = u->temperature_c;
    }
}

static int
smi_sample(void *state, struct backend_sample *out, struct err *e)
{
    struct smi *smi = state;
    int status;

    if (list_cards(smi, e) < 0)
        return -1;
    backend_sample_reset(out);
    for (int i = 0; i < smi->machine.n; i++)
        copy_usage(smi, smi->machine.cards[i].uuid, &out->use[i]);
    if (run_query(smi, "--query-compute-apps=" SMI_CSV_PROC_COLUMNS, &status, e) < 0)
        return -1;
    /* Without exit code 0 the lists stay unknown, which is not the same as empty. */
    if (status != 0)
        return 0;
    return smi_csv_procs(buf_str(&smi->out), smi->out.len, &smi->machine, out, e);
}

static void
smi_close(void *state)
{
    struct smi *smi = state;

    if (!smi)
        return;
    buf_free(&smi->out);
    backend_sample_free(&smi->listed);
    free(smi);
}

const struct backend backend_smi = {.name = "nvidia-smi",
                                    .open = smi_open,
                                    .discover = smi_discover,
                                    .sample = smi_sample,
                                    .close = smi_close};
