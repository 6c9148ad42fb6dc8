/* Workloads and machines for tests of simulations in virtual time. */
#ifndef TESTS_SIM_SUPPORT_H
#define TESTS_SIM_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "sim/textbook/textbook_sim.h"
#include "sim/workload/read.h"

static inline struct machine
machine_of(int n, int32_t mib)
{
    struct machine m = {.n = n, .margin_mib = 512};
    for (int i = 0; i < n; i++)
        m.total_mib[i] = mib;
    return m;
}

/* Reads a file of tests/sim/data whole. */
static inline void
read_data(const char *name, struct buf *out)
{
    struct err e;
    const char *dir = getenv("SIM_DATA");
    assert_non_null(dir);
    auto_free char *path = xasprintf("%s/%s", dir, name);
    if (file_read(path, 16 << 20, out, &e) < 0)
        fail_msg("%s", e.text);
}

static inline void
load_csv(const char *name, struct workload *w)
{
    auto_buf struct buf text = BUF_INIT;
    struct err e;
    read_data(name, &text);
    if (read_csv(name, text.data, text.len, w, &e) < 0 || workload_sort(w, name, &e) < 0)
        fail_msg("%s", e.text);
}

static inline void
add_job(struct workload *w, int64_t arrival, int64_t duration, int gpus, int32_t vram)
{
    struct sim_job job = {.id = (int64_t)w->n,
                          .arrival = arrival,
                          .duration = duration,
                          .estimate = duration,
                          .line = (uint32_t)w->n + 1};
    struct shape shape = {.allowed = UINT64_MAX, .vram_mib = vram, .n = (uint8_t)gpus};
    workload_add(w, &job, &shape);
}

#endif
