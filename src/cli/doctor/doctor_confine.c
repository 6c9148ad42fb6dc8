/* Checks of `berth doctor`: which limits are enforced on jobs. The daemon reports this after
 * trying it where jobs run, because the caller's own cgroup may allow other things. */
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "cli/ask/answer.h"
#include "cli/doctor/doctor_verb.h"

static const struct {
    const char *name;
    const char *yes, *no; /* followed by the reason */
} parts[] = {
    {"kill", "all processes of a job end with it, even if they detached themselves",
     "processes of a job are found by descent and by a mark in their environment only"},
    {"memory", "--mem is enforced", "--mem is not enforced"},
    {"swap", "--mem counts memory and swap together", "--mem does not limit swap"},
    {"cpus", "--cpus is enforced", "--cpus is not enforced"},
    {"processes", "job_max_processes is enforced", "job_max_processes is not enforced"},
};

/* About GPUs of which the daemon does not know the devices. */
static void
check_unfiltered(struct doctor *d, const json_t *gpus)
{
    auto_buf struct buf numbers = BUF_INIT;
    const json_t *gpu;
    size_t i;

    json_array_foreach(gpus, i, gpu)
        buf_addf(&numbers, "%s%lld", i > 0 ? "," : "", (long long)json_integer_value(gpu));
    if (numbers.len > 0)
        doctor_say(d, DOCTOR_WARN, "devices",
                   "jobs with GPU %s can open every GPU: the driver does not report which "
                   "device it is",
                   buf_str(&numbers));
}

static void
check_devices(struct doctor *d, const json_t *daemon, bool possible, const char *why)
{
    bool required = json_is_true(json_object_get(daemon, "device_filter_required"));

    if (json_is_true(json_object_get(daemon, "device_filter"))) {
        doctor_say(d, DOCTOR_OK, "devices", "jobs can open only their own GPUs");
        check_unfiltered(d, json_object_get(daemon, "unfiltered_gpus"));
    } else if (possible)
        doctor_say(d, DOCTOR_OK, "devices",
                   "jobs can open every GPU that their user can; 'device_filter: on' restricts "
                   "them to their own");
    else
        doctor_say(d, required ? DOCTOR_WARN : DOCTOR_OK, "devices",
                   "jobs can open every GPU that their user can: device_filter cannot be "
                   "enforced here: %s",
                   why);
}

/* group: the cgroup that contains those of jobs; "": none. */
static void
advise(struct doctor *d, const char *group)
{
    if (!d->machines && strstr(group, "/user@"))
        doctor_say(d, DOCTOR_WARN, "confine",
                   "your own service manager can delegate no controllers: with cgroup v1, only "
                   "root's berthd.service can enforce limits");
    else if (d->machines)
        doctor_say(d, DOCTOR_WARN, "confine",
                   "to enforce limits, run the daemon as the service berthd.service on a "
                   "machine with cgroup v2");
    else
        doctor_say(
            d, DOCTOR_WARN, "confine",
            "to enforce limits, the daemon needs your own service manager (systemd --user), "
            "which runs while you are logged in, or always after 'loginctl enable-linger'; "
            "then stop the daemon and start it again");
}

void
doctor_check_confinement(struct doctor *d, const json_t *daemon)
{
    const json_t *place = json_object_get(daemon, "confinement");
    const json_t *enforced = json_object_get(place, "enforced");
    const json_t *why = json_object_get(place, "why");

    if (!enforced) {
        doctor_say(d, DOCTOR_OK, "confine",
                   "which limits are enforced on jobs is known once a daemon of this version "
                   "runs ('berth daemon start')");
        return;
    }
    if (answer_str(place, "cgroup")[0])
        doctor_say(d, DOCTOR_OK, "cgroup", "each job has its own group below %s",
                   answer_str(place, "cgroup"));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (json_is_true(json_object_get(enforced, parts[i].name)))
            doctor_say(d, DOCTOR_OK, parts[i].name, "%s", parts[i].yes);
        else
            doctor_say(d, DOCTOR_WARN, parts[i].name, "%s: %s", parts[i].no,
                       answer_str(why, parts[i].name));
    }
    check_devices(d, daemon, json_is_true(json_object_get(enforced, "devices")),
                  answer_str(why, "devices"));
    if (!json_is_true(json_object_get(enforced, "memory")))
        advise(d, answer_str(place, "cgroup"));
}
