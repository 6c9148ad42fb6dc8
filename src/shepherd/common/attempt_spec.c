/* Reads the spec from the attempt's lock file. Called by the supervisor at its start and by
 * its sweep. The daemon writes the file, so an invalid one is a bug or a damaged disk: it is
 * reported, never guessed. */
#include "shepherd/common/attempt_spec.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "sys/exitrec.h"
#include "sys/spawn.h"
#include "wire/json_text.h"
#include "wire/members.h"

#define SPEC_MAX_BYTES (64 * 1024 * 1024) /* same bound as a request on the daemon's socket */

void
spec_free(struct spec *spec)
{
    free(spec->argv);
    free(spec->env);
    free(spec->oom_patterns);
    free(spec->container.mounts);
    free(spec->container.devices);
    free(spec->container.uuids);
    free(spec->container.indices);
    free(spec->text);
    json_decref(spec->root);
    memset(spec, 0, sizeof *spec);
}

static const struct member members[] = {
    {MEMBER(NUMBER, spec, job), .max = UINT32_MAX},
    {MEMBER(NUMBER, spec, attempt), .max = INT32_MAX},
    {MEMBER(NUMBER, spec, umask), .max = 0777},
    {MEMBER(NUMBER, spec, uid), .max = UINT32_MAX - 1},
    {MEMBER(NUMBER, spec, drop_caps), .max = INT64_MAX},
    {MEMBER(NUMBER, spec, log_max_mib), .max = INT64_MAX >> 21},
    {MEMBER(NUMBER, spec, log_reserve_mib), .max = INT64_MAX >> 21},
    {MEMBER(NUMBER, spec, limit_ms), .max = INT64_MAX / 2000},
    {MEMBER(NUMBER, spec, grace_ms), .max = INT64_MAX / 2000},
    {MEMBER(NUMBER, spec, warn_signal), .max = 64},
    {MEMBER(NUMBER, spec, warn_ms), .max = INT64_MAX / 2000},
    {MEMBER(NUMBER, spec, rows), .max = UINT16_MAX},
    {MEMBER(NUMBER, spec, columns), .max = UINT16_MAX},
    {MEMBER(TEXT, spec, mark), .needed = true},
    {MEMBER(TEXT, spec, cwd), .needed = true},
    {MEMBER(TEXT, spec, log), .needed = true},
    {MEMBER(TEXT, spec, error)},
    {MEMBER(TEXT, spec, attach)},
    {MEMBER(TEXT, spec, user)},
    {MEMBER(TEXT, spec, env_setup)},
    {MEMBER(TEXT, spec, screen)},
    {MEMBER(TEXT, spec, conda)},
    {MEMBER(TEXT, spec, cpu_list)},
    {MEMBER(TEXT, spec, rlimits)},
    {MEMBER(TEXT, spec, pam)},
    {MEMBER(LIST, spec, argv)},
    {MEMBER(LIST, spec, env)},
    {MEMBER(LIST, spec, oom_patterns)},
    {MEMBER(FLAG, spec, no_client)},
    {MEMBER(FLAG, spec, pty)},
    {MEMBER(FLAG, spec, shell)},
    {MEMBER(FLAG, spec, login)},
    {MEMBER(FLAG, spec, no_new_privs)},
    {MEMBER(FLAG, spec, locked_runs)},
    {MEMBER(FLAG, spec, log_own)},
    {MEMBER(FLAG, spec, warn_batch)},
    {MEMBER(FLAG, spec, slurm)},
    {MEMBER(FLAG, spec, slurm_env)},
    {MEMBER(FLAG, spec, truncate)},
    {MEMBER(FLAG, spec, log_mkdir)},
    {0},
};

static const struct member of_container[] = {
    {MEMBER(TEXT, container, image), .needed = true},
    {MEMBER(TEXT, container, program), .needed = true},
    {MEMBER(TEXT, container, name), .needed = true},
    {MEMBER(LIST, container, mounts)},
    {MEMBER(LIST, container, devices)},
    {MEMBER(LIST, container, uuids)},
    {MEMBER(LIST, container, indices)},
    {MEMBER(NUMBER, container, captured), .max = INT32_MAX},
    {MEMBER(FLAG, container, apptainer)},
    {MEMBER(FLAG, container, amd)},
    {0},
};

static int
get_container(const json_t *o, struct container *out, struct err *e)
{
    const json_t *inside = json_object_get(o, "container");
    if (!inside || members_read(inside, of_container, out, e) == 0)
        return 0;
    return err_prefix(e, "'container'");
}

static int
get_all(const json_t *o, struct spec *s, struct err *e)
{
    s->umask = 022;
    s->uid = -1;
    s->grace_ms = GRACE_DEFAULT_MS;
    if (members_read(o, members, s, e) < 0 || groups_read(o, &s->groups, e) < 0 ||
        get_container(o, &s->container, e) < 0 || mps_wish_read(o, &s->mps, e) < 0)
        return -1;
    if (!s->argv[0])
        return err_set(e, ERR_FAILED, "'argv' is empty");
    return 0;
}

/* --- the environment of a command on a cluster's node --- */

/* Only Slurm knows which GPUs the job may use. Frameworks take most SLURM_* variables as a
 * sign that srun started them, so a job gets those only on request. */
static const char *const always[] = {
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",     "GPU_DEVICE_ORDINAL",     "SLURM_JOB_ID",
    "SLURM_JOB_GPUS",       "SLURM_ARRAY_JOB_ID",     "SLURM_CLUSTER_NAME",
    "SLURM_CONF",           "SLURMD_NODENAME",        NULL};
/* Set for the submitting machine, meaningless here. */
static const char *const ours[] = {"CUDA_VISIBLE_DEVICES",
                                   "NVIDIA_VISIBLE_DEVICES",
                                   "ROCR_VISIBLE_DEVICES",
                                   "BERTH_GPUS",
                                   "BERTH_GPU_UUIDS",
                                   "BERTH_SOCKET",
                                   NULL};

static bool
is_among(const char *var, const char *const *names)
{
    size_t n = strcspn(var, "=");
    for (; *names; names++)
        if (strlen(*names) == n && strncmp(var, *names, n) == 0)
            return true;
    return false;
}

static bool
is_of_slurm(const char *var, bool all)
{
    return is_among(var, always) || (all && strncmp(var, "SLURM_", 6) == 0);
}

/* The environment with Slurm's own variables in place of equally named ones. The caller frees
 * only the list: the strings belong to env and to the process. all: every SLURM_* variable,
 * else only those that identify the job. */
static char **
cluster_env(char *const *env, bool all)
{
    char **out = xcalloc(text_list_len(env) + text_list_len(environ) + 1, sizeof *out);
    size_t n = 0;
    for (; *env; env++)
        if (!is_among(*env, ours) && !is_of_slurm(*env, all))
            out[n++] = *env;
    for (char **e = environ; *e; e++)
        if (is_of_slurm(*e, all))
            out[n++] = *e;
    return out;
}

/* --- the lock file --- */

/* The environment follows the first line in the form that execve takes: NUL-terminated
 * strings. Parsing it as JSON would be most of a supervisor's work for a short job. */
static int
take_env_block(struct spec *s, char *bytes, size_t n, struct err *e)
{
    if (n == 0)
        return 0; /* "env" in the object has it */
    if (bytes[n - 1] != '\0')
        return err_set(e, ERR_FAILED, "the environment is cut off");
    free(s->env);
    s->env = spawn_envp(bytes, n);
    return 0;
}

/* Reads the rest of the file after its head at once: it is complete before anything refers to
 * it. */
static char *
read_text(int lock_fd, size_t *n, struct err *e)
{
    struct stat st;
    if (fstat(lock_fd, &st) < 0) {
        err_errno(e, ERR_FAILED, errno, "cannot read the attempt's lock file");
        return NULL;
    }
    *n = st.st_size > EXITREC_HEAD_BYTES ? (size_t)(st.st_size - EXITREC_HEAD_BYTES) : 0;
    if (*n == 0 || *n > SPEC_MAX_BYTES) {
        err_set(e, ERR_FAILED,
                "the attempt's lock file holds no spec, or one that is too large");
        return NULL;
    }
    auto_free char *text = xmalloc(*n);
    ssize_t got = pread(lock_fd, text, *n, EXITREC_HEAD_BYTES);
    if (got != (ssize_t)*n) {
        err_errno(e, ERR_FAILED, got < 0 ? errno : EIO, "cannot read the attempt's lock file");
        return NULL;
    }
    return TAKE(text);
}

int
spec_read(int lock_fd, struct spec *out, struct err *e)
{
    size_t n = 0;
    memset(out, 0, sizeof *out);
    out->text = read_text(lock_fd, &n, e);
    if (!out->text)
        return -1;
    json_error_t why;
    char *line_end = memchr(out->text, '\n', n);
    size_t line = line_end ? (size_t)(line_end - out->text) + 1 : n;
    out->root = json_text_read(out->text, line, &why);
    if (!out->root)
        return err_set(e, ERR_FAILED, "lock: %s at byte %d of the specification", why.text,
                       why.position);
    if (get_all(out->root, out, e) < 0 ||
        take_env_block(out, out->text + line, n - line, e) < 0) {
        err_prefix(e, "lock");
        return -1;
    }
    if (out->slurm) {
        char **env = cluster_env(out->env, out->slurm_env);
        free(out->env);
        out->env = env;
    }
    return 0;
}
