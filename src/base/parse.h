/* The only parser of numbers, sizes and durations in the tree, and a strict one. Each function
 * takes the whole string (no blanks around it, nothing after it) and fills *out, or explains
 * in e what is wrong and what would be right: "'8X' is not a size; write 8G, 8192M or 8192
 * (MiB)". */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

struct err;

int parse_int(const char *s, int64_t min, int64_t max, int64_t *out, struct err *e);
int parse_double(const char *s, double min, double max, double *out, struct err *e);
int parse_bool(const char *s, bool *out, struct err *e); /* true false yes no on off 1 0 */

/* MiB, > 0, rounded to the nearest; decimals allowed. A bare number is MiB; k/kb/kib,
 * m/mb/mib, g/gb/gib, t/tb/tib in any case are all binary. */
int parse_size_mib(const char *s, int64_t *out, struct err *e);

/* Milliseconds, > 0: "90s 15m 2h 1d 1d12h 1.5h", "HH:MM:SS", "MM:SS", "D-HH:MM:SS", or a bare
 * number in units of bare_unit_ms (1000: seconds; 60000: minutes, as in Slurm). */
int parse_duration_ms(const char *s, int64_t bare_unit_ms, int64_t *out, struct err *e);

/* "0-3,6" -> bit set of indices 0..63, non-empty. */
int parse_index_set(const char *s, uint64_t *out, struct err *e);

/* "3,1" -> exact list in order, no repeats, at most max entries. Returns the count or -1. */
int parse_index_list(const char *s, uint8_t *out, int max, struct err *e);

/* "USR2", "SIGUSR2", "usr2" or "12": 1..64. */
int parse_signal(const char *s, int *out, struct err *e);

/* Sets ERR_USAGE with "'8X' WHAT" or "an empty value WHAT", s made safe to show. Returns -1.
 * For parsers in other layers, so that messages are uniform. */
int parse_refuse(struct err *e, const char *s, const char *what);

/* "18.0 GiB", "642 MiB" into out (at least 24 bytes); negative is "n/a". Returns out. */
char *format_mib(int64_t mib, char *out);
/* A request for memory as people write it: "6.7G", "3300M". Rounded so finely that following
 * the advice is not itself reported as asking for too much. out at least 24 bytes. */
char *format_ask_mib(int64_t mib, char *out);
/* "29m34s", "1h01m", "2d03h", "0.4s": the two largest units. out at least 24 bytes. */
char *format_duration(int64_t ms, char *out);

#endif
