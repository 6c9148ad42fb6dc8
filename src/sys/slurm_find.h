/* Finds Slurm's own programs, for the daemon and `berth doctor`. */
#ifndef SYS_SLURM_FIND_H
#define SYS_SLURM_FIND_H

struct err;

/* The program of this name in the folder or, if that is "", in PATH. Never one of our drop-in
 * commands, which would call us back. The caller frees; NULL with the reason. */
char *slurm_find(const char *folder, const char *name, struct err *e);

#endif
