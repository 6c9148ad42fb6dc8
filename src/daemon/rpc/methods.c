/* The table of methods; see methods.h. */
#include "daemon/rpc/methods.h"

#include <string.h>

/* One per line, to keep diffs apart. */
/* clang-format off */
static const struct method methods[] = {
    {"submit", method_submit, true},
    {"file.sync", method_file_sync, true},
    {"file.plan", method_file_plan, false},
    {"jobs", method_jobs, false},
    {"cancel", method_cancel, true},
    {"hold", method_hold, true},
    {"release", method_release, true},
    {"signal", method_signal, true},
    {"priority", method_priority, true},
    {"requeue", method_requeue, true},
    {"environment", method_environment, false},
    {"explain", method_explain, false},
    {"wait", method_wait, false},
    {"gpu.pause", method_gpu_pause, true},
    {"gpu.resume", method_gpu_resume, true},
    {"gpus", method_gpus, false},
    {"status", method_status, false},
    {"log.level", method_log_level, true},
    {"events", method_events, false},
    {"report", method_report, false},
    {"series", method_series, false},
    {"metrics", method_metrics, false},
    {"health", method_health, false},
    {"stop", method_stop, true},
};
/* clang-format on */

const struct method *
methods_find(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}
