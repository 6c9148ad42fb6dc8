/* See mps_place.h. The shepherd's mps/ writes and reads this, the daemon's job_mps.c reads. */
#include "sys/mps_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "sys/procs.h"

/* A state has this size, and ends in a line end: a file that does not is being written. */
#define STATE_BYTES 512

const char *
mps_users_name(int64_t uid, char out[MPS_USERS_SIZE])
{
    snprintf(out, MPS_USERS_SIZE, "%" PRIu32 ".users", (uint32_t)uid);
    return out;
}

int
mps_state_write(int fd, const struct mps_state *s)
{
    char text[STATE_BYTES];
    memset(text, '\n', sizeof text);
    int n = snprintf(text, sizeof text,
                     "%d %" PRIu32 " %" PRId32 " %" PRIu64 " %" PRId64 " %s\n%" PRId32
                     " %" PRIu64 " %s\n",
                     (int)s->phase, (uint32_t)s->uid, (int32_t)s->pid, s->ticks, s->began_us,
                     s->text, (int32_t)s->died_pid, s->died_ticks, s->died_text);
    text[n] = '\n'; /* for its NUL */
    return file_write_all_at(fd, text, sizeof text, 0);
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

bool
mps_state_read(int fd, struct mps_state *out)
{
    char text[STATE_BYTES + 1];
    int phase, at = 0;
    uint32_t uid;
    int32_t pid;
    ssize_t n = pread(fd, text, STATE_BYTES, 0);
    if (n != STATE_BYTES || text[STATE_BYTES - 1] != '\n')
        return false;
    text[STATE_BYTES] = '\0';
    char *end = strchr(text, '\n'), *second = end + 1;
    *end = '\0';
    second[strcspn(second, "\n")] = '\0';
    *out = (struct mps_state){0};
    if (sscanf(text, "%d %" SCNu32 " %" SCNd32 " %" SCNu64 " %" SCNd64 " %n", &phase, &uid,
               &pid, &out->ticks, &out->began_us, &at) != 5 ||
        phase < MPS_STARTING || phase > MPS_ENDED || pid <= 0)
        return false;
    out->phase = (enum mps_phase)phase;
    out->uid = uid;
    out->pid = pid;
    snprintf(out->text, sizeof out->text, "%s", at > 0 ? text + at : "");
    read_death(second, out);
    return true;
}

bool
mps_state_lives(const struct mps_state *s)
{
    struct proc p;
    return proc_read(s->pid, &p) == 0 && p.start_ticks == s->ticks && p.state != 'Z';
}
