/* Shared by the checks of `berth doctor`. */
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
    bool simulated; /* the running daemon has simulated GPUs */
    bool machines;  /* the daemon, running or failed, serves all users */
    char *dir;      /* its --dir; NULL: none */
    json_t *daemon; /* owned; the running daemon's status; NULL: none runs */
    json_t *gpus;   /* owned; its GPUs */
};

/* Prints one line: verdict, subject, finding and what to do. */
void doctor_say(struct doctor *d, enum doctor_verdict v, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

struct places;

/* path, below BERTH_DOCTOR_ROOT if that is set. The caller frees. */
char *doctor_system_path(const char *path);

void doctor_check_rights(struct doctor *d, const struct places *p);
void doctor_check_other_daemons(struct doctor *d, const char *lock_dir, const char *state);
void doctor_check_persistence(struct doctor *d);
void doctor_check_screen(struct doctor *d);
/* folder: the settings' folder of Slurm's commands, or "". Appends the finding to words. */
enum doctor_verdict doctor_ask_slurm(const char *folder, struct buf *words);
/* Checks the folder that nodes must see, as the running daemon uses it. */
void doctor_check_slurm_folder(struct doctor *d);

/* daemon: `daemon` in the answer to the method status; NULL: none runs. */
void doctor_check_confinement(struct doctor *d, const json_t *daemon);

/* gpus: `gpus` in the same answer; NULL: none runs. */
void doctor_check_caps(struct doctor *d, const json_t *gpus);

/* Checks what runs containers, and whether it can give these GPUs to them. */
void doctor_check_containers(struct doctor *d, const json_t *gpus);

/* Runs berth-probe, as the daemon would. */
void doctor_check_gpus(struct doctor *d);

#endif
