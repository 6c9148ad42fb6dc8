/* A job's set-up: see setup.h. command.c prepares it before it creates the command's process,
 * outcome.c checks it once that has ended. bash runs a fixed script without user text; the
 * set-up is a file that it sources, the command is evaluated or executed by it. Any failure on
 * the way - also an `exit 0` in the set-up, or a missing /dev/fd - ends it before the command.
 *
 * The file holds the set-up's text and ends in an open comment, to which the shell appends a
 * letter for each completed step. So the failed step is known, and a status of the set-up is
 * not mistaken for the command's. */
#include "shepherd/begin/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "shepherd/begin/command.h"
#include "shepherd/common/attempt_spec.h"

#define COMMENT  "\n#"
#define FD_ABOVE 64

#define STEP_CONDA    'c' /* the environment is active */
#define STEP_NO_CONDA 'n' /* conda was not found */
#define STEP_DONE     'd' /* the command is next */

/* $1: the file's descriptor. $2: a conda environment, or "". $3 to $6: variables that select
 * the job's GPUs, which profiles and set-ups must not change: "NAME=VALUE" or "". $7: `text`
 * with $8, a command line, which this shell evaluates; or `argv` with a program and its
 * arguments, which replace this shell. A command line that is a single program replaces the
 * shell too, so that no shell stays to wait.
 *
 * The script is a single line, because bash continues line numbers in evaluated text: its
 * error messages about the command should count from line 1, as its user wrote it. */
static const char SCRIPT[] =
    "berth_mark=$1 berth_conda=$2 berth_cards=(\"${@:3:4}\") berth_kind=$7; "
    "berth_command=(\"${@:8}\"); "
    "set --; " /* hide our arguments from sourced files */
    "berth_find_conda() {"
    "  for berth_root in ${CONDA_PREFIX:+\"$CONDA_PREFIX/../..\" \"$CONDA_PREFIX\"}"
    "      ~/anaconda3 ~/miniconda3 /opt/conda ~/miniforge3 ''; do"
    "    [ -n \"$berth_root\" ] || berth_root=$(command conda info --base 2>/dev/null);"
    "    [ ! -f \"$berth_root/etc/profile.d/conda.sh\" ] || return 0;"
    "  done;"
    "  return 1;"
    "}; "
    "berth_no_conda() {"
    "  echo 'berth: there is no conda: no etc/profile.d/conda.sh in $CONDA_PREFIX/../..,"
    " ~/anaconda3, ~/miniconda3, /opt/conda or ~/miniforge3, and no conda in PATH that says"
    " where it is' >&2;"
    "  return 127;"
    "}; "
    "if [ -n \"$berth_conda\" ]; then"
    "  if ! berth_find_conda; then printf n >&$berth_mark; berth_no_conda; exit; fi;"
    "  . \"$berth_root/etc/profile.d/conda.sh\" && conda activate \"$berth_conda\" || exit;"
    "  set --; "
    /* Non-interactive shells seldom define `conda activate`, but a set-up may use it. */
    "elif ! declare -F conda >/dev/null; then"
    "  conda() {"
    "    if berth_find_conda; then"
    "      unset -f conda; . \"$berth_root/etc/profile.d/conda.sh\"; conda \"$@\";"
    "    elif type -P conda >/dev/null; then"
    "      command conda \"$@\";"
    "    else"
    "      berth_no_conda;"
    "    fi;"
    "  };"
    "  berth_stand_in=1; "
    "fi; "
    "printf c >&$berth_mark; "
    ". /dev/fd/$berth_mark; " /* not with || or &&, which would disable its `set -e` */
    "berth_status=$?; "
    "[ $berth_status = 0 ] || exit $berth_status; "
    "printf d >&$berth_mark; "
    "exec {berth_mark}>&-; "
    "for berth_root in \"${berth_cards[@]}\"; do"
    "  [ -z \"$berth_root\" ] || export \"$berth_root\";"
    "done; "
    "if [ -n \"$berth_stand_in\" ] && [[ $(declare -f conda) == *berth_find_conda* ]]; then"
    "  unset -f conda; "
    "fi; "
    "unset -f berth_find_conda berth_no_conda; "
    "unset berth_mark berth_conda berth_cards berth_root berth_status berth_stand_in; "
    "if [ $berth_kind = argv ]; then exec \"${berth_command[@]}\"; fi; "
    "set --; "
    "if [ -z \"$(trap -p)\" ] && [[ $berth_command != *[!a-zA-Z0-9_./:,+@%=[:blank:]-]* ]] &&"
    "   [ \"$(type -t -- \"${berth_command%%[[:blank:]]*}\")\" = file ]; then"
    "  eval \"exec $berth_command\"; "
    "fi; "
    "eval \"$berth_command\"";

static bool
is_said(const char *text)
{
    return text && text[0];
}

bool
setup_is_wanted(const struct spec *spec)
{
    return is_said(spec->env_setup) || is_said(spec->conda);
}

int
setup_open(const struct spec *spec, struct err *e)
{
    const char *text = spec->env_setup ? spec->env_setup : "";
    auto_close int low = memfd_create("set-up", MFD_CLOEXEC);
    auto_close int fd = low < 0 ? -1 : fcntl(low, F_DUPFD, FD_ABOVE);
    if (fd < 0 || file_write_all(fd, text, strlen(text)) ||
        file_write_all(fd, COMMENT, strlen(COMMENT)))
        return err_errno(e, ERR_FAILED, errno, "cannot hand over the set-up");
    return TAKE_FD(fd);
}

/* The whole "NAME=VALUE"; "": not set. */
static const char *
variable_of(char *const *env, const char *name)
{
    const char *value = command_env(env, name);
    return value ? value - strlen(name) - 1 : "";
}

char **
setup_argv(const struct spec *spec, char *const *argv, int fd, char number[12])
{
    const char *conda = spec->conda ? spec->conda : "";
    const char *front[] = {"bash",
                           "-l",
                           "-c",
                           SCRIPT,
                           spec->login ? "-bash" : "bash",
                           number,
                           conda,
                           variable_of(spec->env, "CUDA_VISIBLE_DEVICES"),
                           variable_of(spec->env, "ROCR_VISIBLE_DEVICES"),
                           variable_of(spec->env, "HIP_VISIBLE_DEVICES"),
                           variable_of(spec->env, "ZE_AFFINITY_MASK"),
                           spec->shell ? "text" : "argv"};
    const size_t n_front = sizeof front / sizeof front[0];
    char *const *rest = spec->shell ? argv + 2 : argv; /* skips "/bin/sh -c" */
    size_t n = text_list_len(rest), at = 0;
    snprintf(number, 12, "%d", fd);
    char **out = xcalloc(n_front + n + 1, sizeof *out);
    for (size_t i = 0; i < n_front; i++)
        if (i != 1 || spec->login)
            out[at++] = (char *)(uintptr_t)front[i];
    memcpy(out + at, rest, n * sizeof *out);
    return out;
}

/* Copies two texts to one line. */
static void
put_line(char *out, size_t size, const char *before, const char *text)
{
    auto_free char *line = xasprintf("%s%s", before, text);
    text_copy_cut(out, size, line);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

bool
setup_was_done(const struct spec *spec, int fd, char *text, size_t size)
{
    char steps[4] = "";
    size_t from = (spec->env_setup ? strlen(spec->env_setup) : 0) + strlen(COMMENT);
    ssize_t n = pread(fd, steps, sizeof steps - 1, (off_t)from);
    steps[n > 0 ? n : 0] = '\0';
    if (strchr(steps, STEP_DONE))
        return true;
    if (strchr(steps, STEP_NO_CONDA))
        put_line(text, size, "there is no conda to activate ", spec->conda);
    else if (is_said(spec->conda) && !strchr(steps, STEP_CONDA))
        put_line(text, size, "conda activate ", spec->conda);
    else
        put_line(text, size, "", spec->env_setup ? spec->env_setup : "");
    return false;
}
