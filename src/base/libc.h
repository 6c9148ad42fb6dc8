/* Functions of newer C libraries that glibc 2.31 lacks, with which the binary tarball is
 * built. Every build uses these, so that all builds behave alike. */
#ifndef BASE_LIBC_H
#define BASE_LIBC_H

/* A signal's name without SIG ("TERM"); NULL for real-time signals and unknown numbers. */
const char *libc_signal_name(int number);

/* Closes all descriptors >= first. Safe between fork and exec in a single-threaded process. */
void libc_close_from(int first);

/* Sets close-on-exec on all descriptors >= first. */
void libc_cloexec_from(int first);

#endif
