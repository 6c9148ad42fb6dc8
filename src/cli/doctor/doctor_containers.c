/* What jobs with --container need of the machine, as `berth doctor` says it. Only they need it,
 * so that it is missing is no fault. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/ask/answer.h"
#include "cli/doctor/doctor_verb.h"
#include "sys/cdi_names.h"
#include "sys/container_find.h"
#include "wire/account.h"
#include "wire/places.h"

#define SUBUID_MAX_BYTES (16 << 20)

/* Whether the file gives the user a range: a line "NAME:FIRST:N". */
static bool
has_range(const char *file, const char *user)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *start = xasprintf("%s:", user);
    const char *at;

    if (file_read(file, SUBUID_MAX_BYTES, &text, NULL) < 0)
        return false;
    for (at = buf_str(&text); at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, start, strlen(start)) == 0)
            return true;
    }
    return false;
}

/* Why podman, which is there, cannot run a job of this user; NULL: it can. */
static const char *
podman_lacks(void)
{
    auto_account struct account account;
    bool is_known = account_by_uid(geteuid(), &account);
    struct err unfound = {0};
    auto_free char *init = places_program("berth-init", &unfound);
    auto_free char *crun = container_find("crun");

    if (!crun)
        return "podman needs crun for it: install the package 'crun'";
    if (!init)
        return "this build of Berth has no berth-init, which podman needs for it";
    if (geteuid() != 0 && is_known && !has_range("/etc/subuid", account.name))
        return "podman needs a range of user ids for you: 'usermod --add-subuids "
               "100000-165535 --add-subgids 100000-165535 NAME'";
    return NULL;
}

static bool
has_nvidia(const json_t *gpus)
{
    const json_t *gpu;
    size_t i;

    json_array_foreach(gpus, i,
                       gpu) if (strcmp(answer_str(gpu, "vendor"), "nvidia") == 0) return true;
    return false;
}

void
doctor_check_containers(struct doctor *d, const json_t *gpus)
{
    auto_free char *podman = container_find_podman();
    auto_free char *apptainer = container_find_apptainer();
    const char *lack = podman ? podman_lacks() : NULL;

    if (!podman && !apptainer)
        doctor_say(d, DOCTOR_OK, "container",
                   "not found; --container needs the package 'podman' or 'apptainer'");
    else if (lack)
        doctor_say(d, DOCTOR_OK, "container", "%s", lack);
    else
        doctor_say(d, DOCTOR_OK, "container", "%s%s%s, for --container", podman ? podman : "",
                   podman && apptainer ? " and " : "", apptainer ? apptainer : "");
    if (podman && has_nvidia(gpus) && !cdi_is_ready())
        doctor_say(d, DOCTOR_WARN, "container",
                   "podman cannot be given NVIDIA's GPUs: run 'nvidia-ctk cdi generate "
                   "--output=/etc/cdi/nvidia.yaml'");
}
