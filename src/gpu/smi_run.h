/* Runs nvidia-smi and reads what it prints. */
#ifndef GPU_SMI_RUN_H
#define GPU_SMI_RUN_H

struct buf;
struct err;

/* Starts argv[0] (searched in PATH), without a shell, and puts its standard output into
 * *out (cleared first). *status is its exit status, 128 + N for signal N. -1 with e when it
 * cannot be run, says more than 4 MiB, or has not ended after limit_ms (it is killed). */
int smi_run(char *const *argv, int limit_ms, struct buf *out, int *status, struct err *e);

#endif
