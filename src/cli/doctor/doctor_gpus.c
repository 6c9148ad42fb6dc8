/* Checks of `berth doctor`: the GPUs as berth-probe reports them. It runs the same program in
 * the same way as the daemon, so the daemon will find the same. The limit is ten seconds,
 * because a driver may hang. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/child_output.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/doctor/doctor_verb.h"
#include "cli/table/gpu_table.h"
#include "wire/client.h"
#include "wire/places.h"

#define PROBE_MS 10000

/* Checks that this user's programs can open the devices of AMD's and Intel's GPUs, which
 * belong to the group `render` on most systems. */
static void
check_device(struct doctor *d, const char *name)
{
    auto_free char *path = doctor_system_path(name);

    if (access(path, R_OK | W_OK) == 0)
        return;
    if (errno == EACCES)
        doctor_say(d, DOCTOR_WARN, "devices",
                   "you cannot open %s: 'ls -l %s' shows the group to be in (often render)",
                   name, name);
    else
        doctor_say(d, DOCTOR_WARN, "devices", "%s cannot be opened: %s%s", name,
                   strerror(errno),
                   errno == ENOENT ? "; a container has to be given it (--device)" : "");
}

/* Checks the device files needed to open a MIG instance. */
static void
check_instance(struct doctor *d, const json_t *mig)
{
    size_t i;
    json_t *minor;

    json_array_foreach(json_object_get(mig, "caps"), i, minor)
    {
        auto_free char *name =
            xasprintf("/dev/nvidia-caps/nvidia-cap%lld", (long long)json_integer_value(minor));
        auto_free char *path = doctor_system_path(name);
        if (access(path, R_OK) < 0)
            doctor_say(d, DOCTOR_WARN, "devices",
                       "%s, which a job needs for its MIG instance, cannot be opened: %s%s",
                       name, strerror(errno),
                       errno == ENOENT ? "; 'nvidia-smi -L' as root makes it" : "");
    }
}

static void
check_devices(struct doctor *d, const json_t *gpus)
{
    bool has_amd = false;
    size_t i;
    json_t *gpu;

    json_array_foreach(gpus, i, gpu)
    {
        int64_t minor = json_integer_value(json_array_get(json_object_get(gpu, "dri"), 1));
        auto_free char *name = xasprintf("/dev/dri/renderD%lld", (long long)minor);
        if (minor > 0)
            check_device(d, name);
        check_instance(d, json_object_get(gpu, "mig"));
        has_amd |= strcmp(answer_str(gpu, "vendor"), "amd") == 0;
    }
    if (has_amd)
        check_device(d, "/dev/kfd");
}

static void
judge_line(struct doctor *d, const char *line, size_t n)
{
    auto_json json_t *msg = json_loadb(line, n, 0, NULL);
    const char *error = answer_str(msg, "error");
    auto_buf struct buf summary = BUF_INIT;
    json_t *note;
    size_t i;

    if (error[0]) {
        doctor_say(d, DOCTOR_FAIL, "gpus", "%s", error);
    } else if (json_object_get(msg, "hello")) {
        const char *driver = answer_str(msg, "driver");

        gpu_table_add_summary(json_object_get(msg, "gpus"), &summary);
        doctor_say(d, DOCTOR_OK, "gpus", "%s by %s, driver %s", buf_str(&summary),
                   answer_str(msg, "backend"), driver[0] ? driver : "n/a");
        json_array_foreach(json_object_get(msg, "left_out"), i, note)
            doctor_say(d, DOCTOR_OK, "gpus", "%s", json_string_value(note));
        json_array_foreach(json_object_get(msg, "unanswered"), i, note)
            doctor_say(d, DOCTOR_WARN, "gpus", "%s", answer_str(note, "text"));
        check_devices(d, json_object_get(msg, "gpus"));
    }
}

void
doctor_check_gpus(struct doctor *d)
{
    struct err e = {0};
    auto_free char *program = places_program("berth-probe", &e);
    const char *const argv[] = {program, "--once", NULL};
    auto_buf struct buf answer = BUF_INIT;
    const char *nl;

    if (!program)
        return; /* already reported among the programs */
    const struct child probe = {.argv = argv, .patience_ms = PROBE_MS};
    int rc = child_output(&probe, &answer, NULL, &e);
    if (rc < 0 && e.code != ERR_TIMED_OUT)
        doctor_say(d, DOCTOR_FAIL, "gpus", "%s", e.text);
    else if (rc < 0)
        doctor_say(d, DOCTOR_FAIL, "gpus",
                   "the driver has not answered for %d s; if 'nvidia-smi' hangs too, 'dmesg' "
                   "may show the reason. With many GPUs NVIDIA's needs that long without "
                   "persistence mode (nvidia-smi -pm 1)",
                   PROBE_MS / 1000);
    else if ((nl = memchr(buf_str(&answer), '\n', answer.len)))
        judge_line(d, answer.data, (size_t)(nl - answer.data));
    else
        doctor_say(d, DOCTOR_FAIL, "gpus", "%s ended without an answer", program);
}
