/* The spec: what one attempt runs. The daemon writes it into the attempt's lock file, after
 * the first EXITREC_HEAD_BYTES. */
#ifndef SHEPHERD_COMMON_ATTEMPT_SPEC_H
#define SHEPHERD_COMMON_ATTEMPT_SPEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/common/groups.h"
#include "shepherd/common/mps_client.h"

struct err;

/* The container of the command, and the devices available in it. The lists are owned; their
 * strings and the texts live as long as the spec. */
struct container {
    const char *image;   /* NULL: no container */
    const char *program; /* podman, or Apptainer if apptainer is set: a path or a name */
    const char *name;    /* name of the container */
    char **mounts;       /* "SOURCE:DESTINATION" or "SOURCE:DESTINATION:ro" */
    char **devices;      /* device files */
    char **uuids;        /* of the NVIDIA GPUs */
    char **indices;      /* indices of the same GPUs */
    int32_t captured;    /* the first so many variables come from the submitter's shell */
    bool apptainer;
    bool amd; /* some GPUs are AMD's */
};

/* Strings live as long as the spec. */
struct spec {
    uint32_t job;
    int32_t attempt;
    const char *mark;
    char **argv; /* at least one element */
    char **env;
    char *text; /* as read: env points into it if it came as a block */
    const char *cwd;
    const char *log;
    struct groups_wish groups;
    struct container container;
    struct mps_wish mps;
    const char *error; /* path for standard error; NULL: the log */
    bool truncate;     /* truncate log and error first */
    mode_t umask;
    int64_t uid;           /* the job's user; -1: our own */
    const char *user;      /* the user's name at submission; NULL: not known */
    const char *pam;       /* PAM service to ask about the account; NULL: none */
    bool locked_runs;      /* run jobs of a locked account */
    int64_t drop_caps;     /* bit N: capability N is dropped from the bounding set */
    bool no_new_privs;     /* setuid programs have no effect */
    const char *cpu_list;  /* CPUs to bind to, "0-15"; NULL: any */
    const char *rlimits;   /* in the format of sys/rlimits.h; NULL: ours */
    bool login;            /* run in a login environment */
    bool shell;            /* argv is /bin/sh -c TEXT, from a command line */
    const char *env_setup; /* shell text to run first; NULL: none */
    const char *conda;     /* conda environment to activate first; NULL: none */
    const char *attach;    /* socket for clients of an interactive job; NULL: not interactive */
    bool no_client;        /* no client is about to connect there */
    const char *screen;    /* name of its screen session; NULL: none */
    bool pty;              /* an interactive job has a terminal of this size */
    uint16_t rows, columns;
    bool log_own;     /* the log's path is the instance's default, not chosen by the job */
    bool log_mkdir;   /* its own folder may be made there */
    int64_t limit_ms; /* 0: none */
    int64_t grace_ms;
    int64_t log_max_mib;     /* bound on the log's size; 0: none */
    int64_t log_reserve_mib; /* to leave free on the state's disk */
    int64_t warn_ms;         /* send warn_signal this long before the limit */
    int32_t warn_signal;     /* 0: none */
    bool warn_batch;         /* only to the command's own process */
    bool slurm;              /* runs on a cluster's node, as a Slurm job */
    bool slurm_env;          /* the command gets all of Slurm's variables */
    char **oom_patterns;
    void *root; /* parsed JSON that owns the strings */
};

/* Reads the spec from the attempt's lock file. Optional fields that are missing are zero. */
int spec_read(int lock_fd, struct spec *out, struct err *e);
void spec_free(struct spec *spec);

#endif
