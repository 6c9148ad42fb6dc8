/* `berth doctor`: checks everything that Berth needs, and prints one line per check with what
 * to do about it. It changes nothing and starts no daemon. FAIL: jobs will not run as
 * requested. */
#include "cli/doctor/doctor_verb.h"

#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/fs_kind.h"
#include "base/parse.h"
#include "cli/ask/answer.h"
#include "cli/ask/connect.h"
#include "cli/ask/machine_turn.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/term.h"
#include "wire/account.h"
#include "wire/client.h"
#include "wire/places.h"

#define SPACE_FAIL_MIB 64
#define SPACE_WARN_MIB 1024
#define WATCHES_WARN   1024

static const struct page page = {
    .usage = "berth doctor",
    .about = "Check programs, daemon, folders, GPUs and which limits are enforced on jobs: one "
             "line each,\n"
             "with ok, warn or FAIL and what to do. Exit status 1 if anything is FAIL.",
};

static void
check_slurm(struct doctor *d)
{
    auto_buf struct buf words = BUF_INIT;
    enum doctor_verdict v = doctor_ask_slurm(answer_str(d->daemon, "slurm_commands"), &words);

    doctor_say(d, v, "slurm", "%s", buf_str(&words));
}

static void
check_programs(struct doctor *d)
{
    static const char *const programs[] = {"berthd", "berth-shepherd", "berth-probe",
                                           "berth-user"};

    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        struct err e = {0};
        auto_free char *path = places_program(programs[i], &e);

        if (path)
            doctor_say(d, DOCTOR_OK, "program", "%s", path);
        else
            doctor_say(d, DOCTOR_FAIL, "program", "%s; reinstall Berth", e.text);
    }
}

/* Only the machine's daemon can have failed: a user's own is started when it is needed. */
static void
say_no_daemon(struct doctor *d, const struct cli *cli, const struct err *e)
{
    switch (connect_machine(cli).state) {
    case MACHINE_FAILED:
    case MACHINE_DIED:
    case MACHINE_STARTING:
        d->machines = true; /* its folders matter, not ours */
        doctor_say(d, DOCTOR_FAIL, "daemon", "%s", e->text);
        return;
    case MACHINE_STOPPED:
        doctor_say(d, DOCTOR_WARN, "daemon",
                   "the system daemon was stopped ('systemctl start berthd' starts it); 'berth "
                   "run' starts one of your own when it is needed");
        return;
    case MACHINE_UNSEEN:
        if (access("/var/lib/berth/state", F_OK) == 0 && machine_is_enabled()) {
            doctor_say(d, DOCTOR_WARN, "daemon",
                       "the system daemon has not run since the machine was started (systemctl "
                       "status berthd); 'berth run' starts one of your own when it is needed");
            return;
        }
        break;
    case MACHINE_NONE:
        break;
    }
    doctor_say(d, DOCTOR_OK, "daemon", "not running; 'berth run' starts one when it is needed");
}

static void
check_daemon(struct doctor *d, const struct cli *cli)
{
    struct err e = {0};
    auto_client struct client *c = connect_running(cli, &e);
    auto_json json_t *status = NULL;
    const json_t *daemon;

    if (!c && e.code == ERR_UNREACHABLE) {
        say_no_daemon(d, cli, &e);
        return;
    }
    if (!c || client_call(c, "status", NULL, &status, &e) < 0) {
        doctor_say(d, DOCTOR_FAIL, "daemon", "%s", e.text);
        return;
    }
    daemon = json_object_get(status, "daemon");
    d->simulated = strcmp(answer_str(status, "backend"), "sim") == 0;
    d->machines = strcmp(answer_str(daemon, "mode"), "system") == 0;
    if (d->machines && answer_str(daemon, "dir")[0])
        d->dir = xstrdup(answer_str(daemon, "dir"));
    d->daemon = json_incref(json_object_get(status, "daemon"));
    d->gpus = json_incref(json_object_get(status, "gpus"));
    if (strcmp(answer_str(daemon, "version"), BERTH_VERSION) != 0)
        doctor_say(d, DOCTOR_WARN, "daemon",
                   "version %s is running, but this is %s; '%s' switches to the new one",
                   answer_str(daemon, "version"), BERTH_VERSION,
                   d->machines ? "systemctl restart berthd" : "berth daemon stop");
    else
        doctor_say(d, DOCTOR_OK, "daemon", "pid %lld is running at %s",
                   (long long)answer_int(daemon, "pid", 0), answer_str(daemon, "socket"));
}

static void
check_folder(struct doctor *d, const char *what, const char *path)
{
    auto_free char *folder = fs_nearest_folder(path);
    const char *kind;
    struct statfs fs;
    int64_t free_mib;
    char size[24];

    if (access(folder, W_OK) < 0) {
        doctor_say(d, DOCTOR_FAIL, what,
                   "no permission to write to %s; choose another folder with --dir", folder);
        return;
    }
    if (statfs(folder, &fs) < 0) {
        doctor_say(d, DOCTOR_WARN, what, "the file system of %s is unknown", folder);
        return;
    }
    free_mib = (int64_t)(fs.f_bavail * (unsigned long long)fs.f_bsize >> 20);
    format_mib(free_mib, size);
    if (fs_kind_of(path, &kind) == FS_NETWORK)
        doctor_say(d, DOCTOR_FAIL, what,
                   "%s is on a network file system (%s), where locks are unreliable; choose a "
                   "local folder with --dir or BERTH_DIR (and slurm_folder for --on slurm)",
                   path, kind);
    else if (fs_kind_of(path, &kind) == FS_FUSE)
        doctor_say(d, DOCTOR_WARN, what,
                   "%s is on a FUSE file system; if that is on the network, choose a local "
                   "folder with --dir or BERTH_DIR",
                   path);
    else if (free_mib < SPACE_WARN_MIB)
        doctor_say(
            d, free_mib < SPACE_FAIL_MIB ? DOCTOR_FAIL : DOCTOR_WARN, what,
            "only %s are free for %s; free some space, or choose another folder with --dir",
            size, path);
    else
        doctor_say(d, DOCTOR_OK, what, "%s, %s free", path, size);
}

/* The paths of the daemon that answers, or of one that would be started from here. */
static int
find_places(const struct doctor *d, const struct cli *cli, struct places *p, struct err *e)
{
    if (!d->machines)
        return places_find(cli->dir, p, e);
    return places_system(d->dir, p, e);
}

static void
check_places(struct doctor *d, const struct cli *cli)
{
    struct err e = {0};
    struct places p;

    if (find_places(d, cli, &p, &e) < 0) {
        doctor_say(d, DOCTOR_FAIL, "folder", "%s", e.text);
        return;
    }
    check_folder(d, "state", p.state);
    doctor_check_rights(d, &p);
    check_folder(d, "logs", p.logs);
    places_free(&p);
}

static void
check_locks(struct doctor *d, const struct cli *cli)
{
    struct places p;
    struct err e = {0};
    const char *moved = getenv("BERTH_LOCK_DIR"), *dir = places_lock_dir();
    bool is_usual = (moved && moved[0]) || strcmp(dir, "/run/lock") == 0;

    if (access(dir, W_OK) == 0 && is_usual)
        doctor_say(d, DOCTOR_OK, "locks", "%s", dir);
    else if (access(dir, W_OK) == 0)
        doctor_say(d, DOCTOR_WARN, "locks",
                   "%s, as only root can write to /run/lock; a GPU that another daemon has "
                   "locked there is not seen; set BERTH_LOCK_DIR to a folder that all users of "
                   "these GPUs share",
                   dir);
    else
        doctor_say(d, DOCTOR_FAIL, "locks",
                   "no permission to write to %s, where each GPU has a lock; set "
                   "BERTH_LOCK_DIR to a folder "
                   "that all users of these GPUs share",
                   dir);
    if (find_places(d, cli, &p, &e) == 0) {
        doctor_check_other_daemons(d, dir, p.state);
        places_free(&p);
    }
}

static void
check_inotify(struct doctor *d)
{
    auto_buf struct buf text = BUF_INIT;
    long watches;

    if (file_read("/proc/sys/fs/inotify/max_user_watches", 64, &text, NULL) < 0) {
        doctor_say(d, DOCTOR_WARN, "inotify",
                   "not available; edits of a jobs file are noticed after a second");
        return;
    }
    watches = strtol(buf_str(&text), NULL, 10);
    doctor_say(d, watches < WATCHES_WARN ? DOCTOR_WARN : DOCTOR_OK, "inotify",
               "%ld watches are allowed", watches);
}

/* A user's daemon runs its jobs below the user's service manager, which systemd stops after
 * the last session; a daemon started in a shell keeps its session open. */
static void
check_linger(struct doctor *d)
{
    auto_account struct account account;
    bool is_known = account_by_uid(geteuid(), &account);
    auto_free char *name =
        xasprintf("/var/lib/systemd/linger/%s", is_known ? account.name : "");
    auto_free char *flag = doctor_system_path(name);
    auto_free char *logind = doctor_system_path("/run/systemd/users");

    if (geteuid() == 0 || d->machines || access(logind, F_OK) < 0)
        return;
    if (is_known && access(flag, F_OK) == 0)
        doctor_say(d, DOCTOR_OK, "linger", "on: jobs survive a logout");
    else
        doctor_say(d, DOCTOR_WARN, "linger",
                   "off: after a logout jobs end with their daemon, immediately if it is a "
                   "service (systemctl --user); 'loginctl enable-linger' keeps both");
}

/* Checks what the daemon needs from the machine. The daemon for all users runs as root, whose
 * rights another user cannot check. */
static void
check_ground(struct doctor *d, const struct cli *cli)
{
    if (d->machines && geteuid() != 0) {
        doctor_say(d, DOCTOR_OK, "machine",
                   "this daemon serves all users; 'sudo berth doctor' checks its folders "
                   "and locks");
        return;
    }
    check_places(d, cli);
    check_locks(d, cli);
}

int
cmd_doctor(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct doctor d = {.term = term_of_stdout()};
    int status = 0;

    if (!opt_read_nothing(&r, cli, &page, argc, argv))
        return r.status;
    d.json = cli->json;
    d.checks = json_array();
    check_programs(&d);
    check_daemon(&d, cli);
    check_ground(&d, cli);
    doctor_check_confinement(&d, d.daemon);
    doctor_check_caps(&d, d.gpus);
    if (d.simulated)
        doctor_say(&d, DOCTOR_OK, "gpus", "simulated, as this daemon was started with --sim");
    else
        doctor_check_gpus(&d);
    doctor_check_persistence(&d);
    check_inotify(&d);
    check_linger(&d);
    doctor_check_screen(&d);
    doctor_check_containers(&d, d.gpus);
    check_slurm(&d);
    doctor_check_slurm_folder(&d);
    if (cli->json) {
        auto_json json_t *all = json_pack("{s:i,s:O}", "version", 1, "checks", d.checks);

        status = cli_put_json(all);
    } else {
        status = cli_put(&d.out);
    }
    json_decref(d.checks);
    json_decref(d.daemon);
    json_decref(d.gpus);
    free(d.dir);
    buf_free(&d.out);
    return d.failed ? 1 : status;
}
