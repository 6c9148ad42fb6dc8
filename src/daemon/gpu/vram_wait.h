/* The wait for the memory of jobs whose processes are gone: samples are asked for until it is
 * back, or the wait is over (`vram_wait_ms`). */
#ifndef DAEMON_GPU_VRAM_WAIT_H
#define DAEMON_GPU_VRAM_WAIT_H

struct cards;
struct change;

/* Reads of the changes that there is such a wait, and that something starts on a card: the next
 * samples come soon. */
void vram_wait_read(struct cards *cards, const struct change *x);

#endif
