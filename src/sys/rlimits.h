/* Resource limits (ulimit), carried from the submitting shell to the job: read from the
 * kernel, stored as one line of text, set just before the command is executed. */
#ifndef SYS_RLIMITS_H
#define SYS_RLIMITS_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct buf;
struct err;

#define RLIMITS_TEXT_MAX 1024 /* size of the text, including its NUL */

struct rlimits {
    struct {
        bool is_set;
        struct rlimit value;
    } of[RLIM_NLIMITS];
};

/* Appends the limits of a process as "nofile=1024:524288 core=0:- ...": soft and hard, "-" for
 * unlimited. -1 if there is no such process. */
int rlimits_of(pid_t pid, struct buf *out);

/* Appends one limit (RLIMIT_...) to such a text. */
void rlimits_add(struct buf *out, int which, const struct rlimit *value);

/* Parses such a text. Limits that are missing stay unset and are not changed. */
int rlimits_parse(const char *text, struct rlimits *out, struct err *e);

/* Bounds a process's limits by those of its user's login: where the hard limit is above the
 * login's, the login's soft and hard limit apply instead. */
void rlimits_bound(struct rlimits *own, const struct rlimits *login);

/* Set the limits in this process, in two parts: the file size limit comes last, because the
 * process still has to write something of ours. A hard limit that may not be raised, and its
 * soft limit, are clamped to what is allowed. System calls only. 0 or an errno value. */
int rlimits_apply(const struct rlimits *limits);
int rlimits_apply_fsize(const struct rlimits *limits);

#endif
