/* What the checks of `berth doctor` share. */
#ifndef CLI_DOCTOR_DOCTOR_VERB_H
#define CLI_DOCTOR_DOCTOR_VERB_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "cli/common/term.h"

enum doctor_verdict { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor {
    struct term term;
    struct buf out;
    json_t *checks;
    bool json;
    bool failed;
    bool simulated; /* the running daemon has no real cards */
    bool machines;  /* the running daemon is that of all users */
    char *dir;      /* and has this --dir; NULL: none */
    json_t *daemon; /* owned; what the running daemon says of itself; NULL: none runs */
    json_t *gpus;   /* owned; and of its GPUs */
};

/* One line: the verdict, what was looked at, the finding and what to do. */
void doctor_say(struct doctor *d, enum doctor_verdict v, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

struct places;

/* path, below BERTH_DOCTOR_ROOT where that is set. The caller frees. */
char *doctor_system_path(const char *path);

void doctor_check_rights(struct doctor *d, const struct places *p);
void doctor_check_other_daemons(struct doctor *d, const char *lock_dir, const char *state);
void doctor_check_persistence(struct doctor *d);
void doctor_check_screen(struct doctor *d);
/* Of the settings' folder, "" where they name none; what it found is appended. */
enum doctor_verdict doctor_ask_slurm(const char *folder, struct buf *words);
/* What the nodes have to see, by the daemon that runs. */
void doctor_check_slurm_folder(struct doctor *d);

/* By what the daemon says of itself (`daemon` of the method status; NULL: none runs). */
void doctor_check_confinement(struct doctor *d, const json_t *daemon);

/* By its GPUs (`gpus` of the same answer; NULL: none runs). */
void doctor_check_caps(struct doctor *d, const json_t *gpus);

/* What runs containers, and whether it can be given these GPUs. */
void doctor_check_containers(struct doctor *d, const json_t *gpus);

/* Asks berth-probe, as the daemon would. */
void doctor_check_gpus(struct doctor *d);

#endif
