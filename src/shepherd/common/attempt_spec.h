/* The spec: what one attempt is to run, as the daemon wrote it into its lock file, behind the
 * first EXITREC_HEAD_BYTES. */
#ifndef SHEPHERD_COMMON_ATTEMPT_SPEC_H
#define SHEPHERD_COMMON_ATTEMPT_SPEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/common/groups.h"
#include "shepherd/common/mps_client.h"

struct err;

/* What the command runs in, and which of the machine's devices are there too. The lists are
 * owned, what is in them and the texts live as long as the spec. */
struct container {
    const char *image;   /* NULL: in none */
    const char *program; /* podman, or with apptainer set Apptainer: a path, or a name */
    const char *name;    /* of the container */
    char **mounts;       /* "SOURCE:DESTINATION" or "SOURCE:DESTINATION:ro" */
    char **devices;      /* device files */
    char **uuids;        /* of NVIDIA's cards */
    char **indices;      /* the same cards' numbers */
    int32_t captured;    /* so many of the variables, the first, are the submitter's shell's */
    bool apptainer;
    bool amd; /* there are cards of AMD among them */
};

/* Strings live as long as the spec. */
struct spec {
    uint32_t job;
    int32_t attempt;
    const char *mark;
    char **argv; /* at least one element */
    char **env;
    char *text; /* as it was read: env points into it, when it came as a block */
    const char *cwd;
    const char *log;
    struct groups_wish groups;
    struct container container;
    struct mps_wish mps;
    const char *error; /* where standard error goes; NULL: into the log */
    bool truncate;     /* both are emptied first */
    mode_t umask;
    int64_t uid;           /* whose job it is; -1: our own */
    const char *user;      /* the name that went with it when the job came; NULL: not known */
    const char *pam;       /* service that is asked about the account; NULL: none is */
    bool locked_runs;      /* jobs of a locked account start all the same */
    int64_t drop_caps;     /* bit N: capability N is out of the job's reach */
    bool no_new_privs;     /* setuid programs have no effect */
    const char *cpu_list;  /* CPUs that it is bound to, "0-15"; NULL: any */
    const char *rlimits;   /* as sys/rlimits.h has them; NULL: ours */
    bool login;            /* in the environment of a login */
    bool shell;            /* argv is /bin/sh -c TEXT, as a command line is run */
    const char *env_setup; /* shell text to be run first; NULL: none */
    const char *conda;     /* environment to be activated first; NULL: none */
    const char *attach;    /* the socket for clients of an interactive job; NULL: it is none */
    bool no_client;        /* no client is on the way to that socket */
    const char *screen;    /* name of the screen session it is shown in; NULL: in none */
    bool pty;              /* such a job has a terminal, with this many rows and columns */
    uint16_t rows, columns;
    bool log_own;     /* the log's place is the instance's, not one that the job named */
    bool log_mkdir;   /* and its own folder may be made there */
    int64_t limit_ms; /* 0: none */
    int64_t grace_ms;
    int64_t log_max_mib;     /* of the log; 0: any */
    int64_t log_reserve_mib; /* that logs leave free on the state's disk */
    int64_t warn_ms;         /* before the limit, warn_signal is sent */
    int32_t warn_signal;     /* 0: none */
    bool warn_batch;         /* to the command's own process alone */
    bool slurm;              /* it runs on a node of a cluster, as Slurm's job */
    bool slurm_env;          /* and all of Slurm's variables are for the command */
    char **oom_patterns;
    void *root; /* the parsed JSON that owns the strings */
};

/* Reads it in the attempt's lock file. Fields that are missing and may be have their zero
 * value. */
int spec_read(int lock_fd, struct spec *out, struct err *e);
void spec_free(struct spec *spec);

#endif
