/* Identifies equal submissions: the command with its ordered arguments, the folder it runs in,
 * its image and its set-up. --unique refuses by it, and run-time estimates find earlier runs
 * by it. Pure. */
#ifndef SPEC_FINGERPRINT_H
#define SPEC_FINGERPRINT_H

struct request;

/* 64 bits: among a million jobs, the chance of a collision is 1 in 4e7. */
#define FINGERPRINT_HEX 16

/* SHA-1 truncated to FINGERPRINT_HEX digits. */
void fingerprint_make(const struct request *r, const char *cwd, char out[FINGERPRINT_HEX + 1]);

#endif
