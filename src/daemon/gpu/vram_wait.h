/* The wait for the memory of jobs whose processes are gone: requests samples until the memory
 * is free or `vram_wait_ms` is over. */
#ifndef DAEMON_GPU_VRAM_WAIT_H
#define DAEMON_GPU_VRAM_WAIT_H

struct cards;
struct change;

/* Reads a change: starts the wait for a job that ended, and takes samples soon if a job starts
 * on a GPU. */
void vram_wait_read(struct cards *cards, const struct change *x);

#endif
