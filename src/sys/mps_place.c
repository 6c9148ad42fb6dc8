/* See mps_place.h. The shepherd's mps/ writes and reads the state; the daemon's job_mps.c
 * reads it. */
#include "sys/mps_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/procs.h"

#define DEPTH 64 /* longest chain of parents from a server to its keeper */

/* A complete state has this size and ends in a newline; anything else is still being written.
 * The first part, which also ends in a newline, is what earlier versions write and read. */
#define FIRST_BYTES 512
#define STATE_BYTES 2048

const char *
mps_users_name(int64_t uid, char out[MPS_USERS_SIZE])
{
    snprintf(out, MPS_USERS_SIZE, "%" PRIu32 ".users", (uint32_t)uid);
    return out;
}

char *
mps_mark(const char *dir, int64_t uid)
{
    return xasprintf("mps:%s/%" PRIu32, dir, (uint32_t)uid);
}

/* --- writing --- */

static void
write_first(char *out, const struct mps_state *s)
{
    int n = snprintf(out, FIRST_BYTES,
                     "%d %" PRIu32 " %" PRId32 " %" PRIu64 " %" PRId64 " %s\n%" PRId32
                     " %" PRIu64 " %s\n",
                     (int)s->phase, (uint32_t)s->uid, (int32_t)s->pid, s->ticks, s->said_us,
                     s->text, (int32_t)s->died_pid, s->died_ticks, s->died_text);
    out[n] = '\n'; /* overwrites the NUL */
}

static void
write_second(char *out, const struct mps_state *s)
{
    int n = snprintf(out, STATE_BYTES - FIRST_BYTES,
                     "%s\n%d %" PRIu32 " %" PRId32 " %" PRIu64 "\n%s\n%s\n", clock_boot_id(),
                     s->left, (uint32_t)s->left_uid, (int32_t)s->control_pid, s->control_ticks,
                     s->group, s->group_pids);
    out[n] = '\n';
}

int
mps_state_write(int fd, const struct mps_state *s)
{
    char text[STATE_BYTES];
    memset(text, '\n', sizeof text);
    write_first(text, s);
    write_second(text + FIRST_BYTES, s);
    return file_write_all_at(fd, text, sizeof text, 0);
}

/* --- reading --- */

/* The next line, without its newline. */
static const char *
take_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    *at = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

/* "PID TICKS WORDS" */
static void
read_death(const char *line, struct mps_state *out)
{
    int32_t pid;
    int at = 0;
    if (sscanf(line, "%" SCNd32 " %" SCNu64 " %n", &pid, &out->died_ticks, &at) != 2 ||
        pid <= 0)
        return;
    out->died_pid = pid;
    snprintf(out->died_text, sizeof out->died_text, "%s", at > 0 ? line + at : "");
}

static bool
read_first(char *text, struct mps_state *out)
{
    int phase, at = 0;
    uint32_t uid;
    int32_t pid;
    const char *line = take_line(&text);
    if (sscanf(line, "%d %" SCNu32 " %" SCNd32 " %" SCNu64 " %" SCNd64 " %n", &phase, &uid,
               &pid, &out->ticks, &out->said_us, &at) != 5 ||
        phase < MPS_STARTING || phase > MPS_ENDED || pid <= 0)
        return false;
    out->phase = (enum mps_phase)phase;
    out->uid = uid;
    out->pid = pid;
    snprintf(out->text, sizeof out->text, "%s", at > 0 ? line + at : "");
    read_death(take_line(&text), out);
    return true;
}

/* False: the state is of an earlier boot, so it is stale. */
static bool
read_second(char *text, struct mps_state *out)
{
    int left;
    uint32_t uid;
    int32_t pid;
    if (strcmp(take_line(&text), clock_boot_id()) != 0 ||
        sscanf(take_line(&text), "%d %" SCNu32 " %" SCNd32 " %" SCNu64, &left, &uid, &pid,
               &out->control_ticks) != 4)
        return false;
    out->left = left != 0;
    out->left_uid = uid;
    out->control_pid = pid > 0 ? pid : 0;
    snprintf(out->group, sizeof out->group, "%s", take_line(&text));
    snprintf(out->group_pids, sizeof out->group_pids, "%s", take_line(&text));
    return true;
}

bool
mps_state_read(int fd, struct mps_state *out)
{
    char text[STATE_BYTES + 1];
    ssize_t n = pread(fd, text, STATE_BYTES, 0);
    *out = (struct mps_state){0};
    if ((n != FIRST_BYTES && n != STATE_BYTES) || text[FIRST_BYTES - 1] != '\n' ||
        text[n - 1] != '\n')
        return false;
    text[FIRST_BYTES - 1] = text[n] = '\0';
    return read_first(text, out) && (n == FIRST_BYTES || read_second(text + FIRST_BYTES, out));
}

static bool
lives(pid_t pid, uint64_t ticks)
{
    struct proc p;
    return pid > 0 && proc_read(pid, &p) == 0 && p.start_ticks == ticks && p.state != 'Z';
}

bool
mps_state_lives(const struct mps_state *s)
{
    return lives(s->pid, s->ticks);
}

bool
mps_control_lives(const struct mps_state *s)
{
    return lives(s->control_pid, s->control_ticks);
}

static bool
is_kept(const struct mps_state *s, const struct proc *p)
{
    return (p->pid == s->pid && p->start_ticks == s->ticks) ||
           (p->pid == s->control_pid && p->start_ticks == s->control_ticks);
}

bool
mps_has_process(const struct mps_state *s, pid_t pid)
{
    struct proc p;
    for (int depth = 0; depth < DEPTH && pid > 1 && proc_read(pid, &p) == 0; depth++) {
        if (is_kept(s, &p))
            return true;
        pid = p.ppid;
    }
    return false;
}
