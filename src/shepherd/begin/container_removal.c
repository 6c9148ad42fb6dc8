/* Runs `podman rm` for a container whose podman was killed: see container_removal.h. stop.c
 * starts it once nothing else of the attempt is left, sweep.c does so for a killed supervisor.
 *
 * A separate process enters the attempt's groups, looks the account up, and waits for podman.
 * So everything that runs as the user, or answers for the user's account, has the job's limits
 * and devices and ends with its groups, and the supervisor never blocks. */
#include "shepherd/begin/container_removal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/libc.h"
#include "shepherd/begin/child_setup.h"
#include "shepherd/begin/container.h"
#include "shepherd/begin/container_words.h"
#include "shepherd/begin/identity.h"
#include "shepherd/common/attempt_spec.h"
#include "shepherd/common/groups.h"
#include "sys/spawn.h"

#define PATIENCE_MS 30000 /* for a child that its user may stop */
#define FD_FIRST    3     /* after the standard descriptors */
/* If the container's monitor was killed too, Podman 5 fails the first time and only records
 * that. */
#define TRIES_MAX 3

static pid_t
spawn_podman(const struct spec *spec, const struct identity *id)
{
    auto_buf struct buf words = BUF_INIT, variables = BUF_INIT;
    auto_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    container_add_removal(spec, &words);
    container_add_podman_env(spec->env, "void", &variables);
    auto_free char **argv = spawn_envp(words.data, words.len);
    auto_free char **env = spawn_envp(variables.data, variables.len);
    const struct groups none = GROUPS_NONE; /* it starts in its parent's groups */
    struct last_steps last = {.identity = id,
                              .v1_fds = none.v1_fds,
                              .lock_fd = -1,
                              .shepherd = getpid(),
                              .death_signal = SIGKILL};
    const struct spawn s = {.argv = argv,
                            .envp = env,
                            .path = CONTAINER_FOLDERS,
                            .fds = {null_fd, null_fd, null_fd},
                            .n_fds = 3,
                            .cgroup_fd = none.fd,
                            .new_session = true,
                            .death_signal = SIGKILL,
                            .patience_ms = id ? PATIENCE_MS : 0,
                            .before_exec = last_steps_take,
                            .ctx = &last};
    enum spawn_stage stage;
    int errnum;
    return spawn_process(&s, &errnum, &stage);
}

static bool
run_podman(const struct spec *spec, const struct identity *id)
{
    int status = -1;
    pid_t pid = spawn_podman(spec, id);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && status == 0;
}

/* Enters the groups while their descriptors are open, then closes everything of the
 * supervisor's: if its lock stayed open, the attempt would seem to have a supervisor. */
static int
run_removal(const struct spec *spec, const struct groups *groups, pid_t parent)
{
    auto_identity struct identity id = IDENTITY_INIT;
    bool as_user = spec->uid >= 0;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
        groups_enter_for_end(groups) < 0)
        return 1;
    libc_close_from(FD_FIRST);
    if (as_user && identity_look_up(spec, &id) < 0)
        return 1;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        if (run_podman(spec, as_user ? &id : NULL))
            return 0;
    }
    return 1;
}

pid_t
container_start_removal(const struct spec *spec, const struct groups *groups)
{
    pid_t parent = getpid();
    if (!spec->container.image || spec->container.apptainer)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_removal(spec, groups, parent));
    return pid;
}
