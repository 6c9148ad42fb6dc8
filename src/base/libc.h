/* Functions that newer C libraries have and glibc 2.31 lacks: the programs of the binary
 * tarball are built with that one. Every build uses these, so that all builds do the same. */
#ifndef BASE_LIBC_H
#define BASE_LIBC_H

/* A signal's name without SIG ("TERM"); NULL for real-time signals and for other numbers. */
const char *libc_signal_name(int number);

/* Closes all descriptors from first on. Safe between fork and exec of a process that has one
 * thread. */
void libc_close_from(int first);

/* Sets close-on-exec on all descriptors from first on. */
void libc_cloexec_from(int first);

#endif
