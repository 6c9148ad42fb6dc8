/* What makes two submissions "the same": the command with its arguments in their order, the
 * folder it runs in, its image and what is set up before it. By it --unique refuses, and by it
 * the time that the last runs took is known. Pure. */
#ifndef SPEC_FINGERPRINT_H
#define SPEC_FINGERPRINT_H

struct request;

/* 64 bits: among a million jobs, two alike by chance once in 4e7. */
#define FINGERPRINT_HEX 16

/* SHA-1 cut to FINGERPRINT_HEX digits. */
void fingerprint_make(const struct request *r, const char *cwd, char out[FINGERPRINT_HEX + 1]);

#endif
