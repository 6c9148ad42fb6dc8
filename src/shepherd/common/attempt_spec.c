/* Reads the spec from the attempt's lock file. Called by the shepherd at its start and by its
 * sweep. The daemon writes the file, so what is wrong here is a defect or a damaged disk: it is
 * said, never guessed. */
#include "shepherd/common/attempt_spec.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "sys/exitrec.h"
#include "sys/spawn.h"

#define SPEC_MAX_BYTES (64 * 1024 * 1024) /* as one request on the daemon's socket */

void
spec_free(struct spec *spec)
{
    free(spec->argv);
    free(spec->env);
    free(spec->oom_patterns);
    free(spec->text);
    json_decref(spec->root);
    memset(spec, 0, sizeof *spec);
}

static int
get_int(const json_t *o, const char *key, int64_t min, int64_t max, int64_t missing,
        int64_t *out, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    *out = missing;
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
        return err_set(e, ERR_FAILED, "'%s' is not a whole number in %" PRId64 "..%" PRId64,
                       key, min, max);
    *out = json_integer_value(v);
    return 0;
}

/* A string; one that must be there when `required`. */
static int
get_text(const json_t *o, const char *key, bool required, const char **out, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    *out = json_string_value(v);
    if (!*out && (required || (v && !json_is_null(v))))
        return err_set(e, ERR_FAILED, "'%s' is not a string", key);
    return 0;
}

/* An array of strings as a NULL-terminated list of borrowed pointers; missing is empty. */
static int
get_list(const json_t *o, const char *key, char ***out, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    if (v && !json_is_null(v) && !json_is_array(v))
        return err_set(e, ERR_FAILED, "'%s' is not an array", key);
    size_t n = json_array_size(v);
    *out = xcalloc(n + 1, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = (char *)json_string_value(json_array_get(v, i));
        if (!(*out)[i])
            return err_set(e, ERR_FAILED, "'%s' holds something that is not a string", key);
    }
    return 0;
}

static int
get_numbers(const json_t *o, struct spec *s, struct err *e)
{
    int64_t job, attempt, mask, warn, rows, columns;
    if (get_int(o, "job", 0, UINT32_MAX, 0, &job, e) < 0 ||
        get_int(o, "attempt", 0, INT32_MAX, 0, &attempt, e) < 0 ||
        get_int(o, "umask", 0, 0777, 022, &mask, e) < 0 ||
        get_int(o, "uid", 0, UINT32_MAX - 1, -1, &s->uid, e) < 0 ||
        get_int(o, "drop_caps", 0, INT64_MAX, 0, &s->drop_caps, e) < 0 ||
        get_int(o, "log_max_mib", 0, INT64_MAX >> 21, 0, &s->log_max_mib, e) < 0 ||
        get_int(o, "log_reserve_mib", 0, INT64_MAX >> 21, 0, &s->log_reserve_mib, e) < 0 ||
        get_int(o, "limit_ms", 0, INT64_MAX / 2000, 0, &s->limit_ms, e) < 0 ||
        get_int(o, "grace_ms", 0, INT64_MAX / 2000, GRACE_DEFAULT_MS, &s->grace_ms, e) < 0 ||
        get_int(o, "warn_signal", 0, 64, 0, &warn, e) < 0 ||
        get_int(o, "warn_ms", 0, INT64_MAX / 2000, 0, &s->warn_ms, e) < 0 ||
        get_int(o, "rows", 0, UINT16_MAX, 0, &rows, e) < 0 ||
        get_int(o, "columns", 0, UINT16_MAX, 0, &columns, e) < 0)
        return -1;
    s->job = (uint32_t)job;
    s->attempt = (int32_t)attempt;
    s->umask = (mode_t)mask;
    s->warn_signal = (int32_t)warn;
    s->rows = (uint16_t)rows;
    s->columns = (uint16_t)columns;
    return 0;
}

static int
get_all(const json_t *o, struct spec *s, struct err *e)
{
    if (!json_is_object(o))
        return err_set(e, ERR_FAILED, "not a JSON object");
    if (get_numbers(o, s, e) < 0 || groups_read(o, &s->groups, e) < 0 ||
        get_text(o, "mark", true, &s->mark, e) < 0 ||
        get_text(o, "cwd", true, &s->cwd, e) < 0 || get_text(o, "log", true, &s->log, e) < 0 ||
        get_text(o, "error", false, &s->error, e) < 0 ||
        get_text(o, "attach", false, &s->attach, e) < 0 ||
        get_text(o, "user", false, &s->user, e) < 0 ||
        get_text(o, "env_setup", false, &s->env_setup, e) < 0 ||
        get_text(o, "screen", false, &s->screen, e) < 0 ||
        get_text(o, "conda", false, &s->conda, e) < 0 ||
        get_text(o, "rlimits", false, &s->rlimits, e) < 0 ||
        get_text(o, "pam", false, &s->pam, e) < 0 || get_list(o, "argv", &s->argv, e) < 0 ||
        get_list(o, "env", &s->env, e) < 0 ||
        get_list(o, "oom_patterns", &s->oom_patterns, e) < 0)
        return -1;
    if (!s->argv[0])
        return err_set(e, ERR_FAILED, "'argv' is empty");
    s->no_client = json_is_true(json_object_get(o, "no_client"));
    s->pty = json_is_true(json_object_get(o, "pty"));
    s->shell = json_is_true(json_object_get(o, "shell"));
    s->login = json_is_true(json_object_get(o, "login"));
    s->no_new_privs = json_is_true(json_object_get(o, "no_new_privs"));
    s->locked_runs = json_is_true(json_object_get(o, "locked_runs"));
    s->log_own = json_is_true(json_object_get(o, "log_own"));
    s->warn_batch = json_is_true(json_object_get(o, "warn_batch"));
    s->truncate = json_is_true(json_object_get(o, "truncate"));
    s->log_mkdir = json_is_true(json_object_get(o, "log_mkdir"));
    return 0;
}

/* The environment stands behind the first line as it is handed to execve: NUL-terminated
 * strings. As JSON it would be most of what a short job's shepherd does. */
static int
take_env_block(struct spec *s, char *bytes, size_t n, struct err *e)
{
    if (n == 0)
        return 0; /* then "env" in the object has it */
    if (bytes[n - 1] != '\0')
        return err_set(e, ERR_FAILED, "the environment is cut off");
    free(s->env);
    s->env = spawn_envp(bytes, n);
    return 0;
}

/* The rest of the file after its head, read at once: it is complete before anything refers to
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
    out->root = json_loadb(out->text, line, 0, &why);
    if (!out->root)
        return err_set(e, ERR_FAILED, "lock: %s at byte %d of the specification", why.text,
                       why.position);
    if (get_all(out->root, out, e) < 0 ||
        take_env_block(out, out->text + line, n - line, e) < 0) {
        err_prefix(e, "lock");
        return -1;
    }
    return 0;
}
