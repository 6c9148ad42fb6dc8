/* Shared by scontrol's files only. */
#ifndef COMPAT_SLURM_SLURM_SCONTROL_H
#define COMPAT_SLURM_SLURM_SCONTROL_H

#include <stdbool.h>

struct scontrol {
    bool one_line, quiet;
    int details;
};

/* scontrol show; words[0] is the entity. Returns the exit status. */
int scontrol_show(const struct scontrol *s, char *const *words, int n);

#endif
