/* Checks of `berth doctor`: requirements of jobs with --container. Only such jobs need them,
 * so a missing program is not a failure. */
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/child_output.h"
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
#define TRIAL_MS         10000

static const struct {
    const char *path, *what;
} id_files[] = {{"/etc/subuid", "user"}, {"/etc/subgid", "group"}};

/* True if the file has a range for the user: a line "NAME:FIRST:N". */
static bool
has_range(const char *file, const char *user)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *start = xasprintf("%s:", user);
    auto_free char *path = doctor_system_path(file);
    const char *at;

    if (file_read(path, SUBUID_MAX_BYTES, &text, NULL) < 0)
        return false;
    for (at = buf_str(&text); at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, start, strlen(start)) == 0)
            return true;
    }
    return false;
}

/* What a user other than root lacks for the user namespaces in which podman runs
 * containers. */
static char *
rootless_lacks(void)
{
    auto_account struct account account;
    auto_free char *newuidmap = container_find("newuidmap");

    if (!newuidmap)
        return xstrdup("podman needs newuidmap for it: install the package 'uidmap'");
    if (!account_by_uid(geteuid(), &account))
        return NULL;
    auto_free char *number = xasprintf("%u", account.uid);
    for (size_t i = 0; i < sizeof id_files / sizeof id_files[0]; i++)
        if (!has_range(id_files[i].path, account.name) && !has_range(id_files[i].path, number))
            return xasprintf("podman needs a range of %s ids for you in %s: 'usermod "
                             "--add-subuids 100000-165535 --add-subgids 100000-165535 %s'",
                             id_files[i].what, id_files[i].path, account.name);
    return NULL;
}

/* The line of podman's output that contains the error, or the last line. */
static char *
complaint(const struct buf *said)
{
    const char *text = buf_str(said), *last = text;

    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (*at != '\n')
            last = at;
        if (strncmp(at, "Error:", strlen("Error:")) == 0)
            break;
    }
    return xstrndup(last, strcspn(last, "\n"));
}

/* Tests whether podman works at all. Queries its storage only for root: for other users this
 * would leave a process that holds their user namespace. */
static char *
trial(const char *podman)
{
    const char *word = geteuid() == 0 ? "info" : "--version";
    const char *const argv[] = {podman, word, NULL};
    const struct child tried = {.argv = argv, .patience_ms = TRIAL_MS, .with_errors = true};
    auto_buf struct buf said = BUF_INIT;
    struct err e = {0};
    int status = 0;

    if (child_output(&tried, &said, &status, &e) < 0)
        return e.code == ERR_TIMED_OUT ? xasprintf("'%s %s' does not end", podman, word)
                                       : xasprintf("%s cannot be executed", podman);
    if (status == 0)
        return NULL;
    auto_free char *why = complaint(&said);
    return xasprintf("'%s %s' fails%s%s", podman, word, why[0] ? ": " : "", why);
}

/* Why an installed podman cannot run jobs of this user; NULL: no reason found. The caller owns
 * it. *broken: it is faulty, not just missing something. */
static char *
podman_lacks(const char *podman, bool *broken)
{
    struct err unfound = {0};
    auto_free char *init = places_program("berth-init", &unfound);
    auto_free char *crun = container_find("crun");
    auto_free char *mixed = doctor_system_path("/sys/fs/cgroup/unified/cgroup.procs");

    *broken = false;
    if (!crun)
        return xstrdup("podman needs crun for it: install the package 'crun'");
    if (!init)
        return xstrdup("this build of Berth has no berth-init, which podman needs for it");
    char *why = geteuid() != 0 ? rootless_lacks() : NULL;
    if (why)
        return why;
    *broken = true;
    if (access(mixed, F_OK) == 0)
        return xstrdup(
            "podman's crun refuses a machine that has cgroups of both versions: boot "
            "it with systemd.unified_cgroup_hierarchy=1");
    return trial(podman);
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
    bool broken = false;
    auto_free char *lack = podman ? podman_lacks(podman, &broken) : NULL;

    if (!podman && !apptainer)
        doctor_say(d, DOCTOR_OK, "container",
                   "not found; --container needs the package 'podman' or 'apptainer'");
    else if (lack)
        doctor_say(d, broken ? DOCTOR_WARN : DOCTOR_OK, "container", "%s", lack);
    else
        doctor_say(d, DOCTOR_OK, "container", "%s%s%s, for --container", podman ? podman : "",
                   podman && apptainer ? " and " : "", apptainer ? apptainer : "");
    if (podman && has_nvidia(gpus) && !cdi_is_ready())
        doctor_say(d, DOCTOR_WARN, "container",
                   "podman cannot be given NVIDIA's GPUs: run 'nvidia-ctk cdi generate "
                   "--output=/etc/cdi/nvidia.yaml'");
}
