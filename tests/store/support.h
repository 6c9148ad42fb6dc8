/* Shared by the store's tests: a temporary folder, and jobs with random values in every
 * field. */
#ifndef TESTS_STORE_SUPPORT_H
#define TESTS_STORE_SUPPORT_H

#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

struct dir {
    char *path;
};

struct dir *dir_new(void); /* in TMPDIR or /tmp */
void dir_free(struct dir *d);
char *dir_file(const struct dir *d, const char *name); /* its path; the caller frees it */

/* Opens the store, or fails the test with the error's text. */
struct store *must_open(const struct dir *d);
void must_commit(struct store *s);

/* xorshift: the same seed gives the same jobs on every machine. */
struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *r);

struct job *random_job(struct rng *r, uint32_t id);
struct attempt *random_attempt(struct rng *r, int32_t number); /* the caller frees it */
/* n UUIDs for its cards, in static memory. */
const char *const *some_uuids(int first);

/* Compares every durable field, and those of run if both jobs have one. */
void assert_same_job(const struct job *a, const struct job *b);
void assert_same_attempt(const struct attempt *a, const struct attempt *b);

/* A plain pending job with this id and command, for tests in which the fields do not
 * matter. */
struct job *plain_job(uint32_t id, const char *command);
void add_plain_job(struct store *s, uint32_t id);

#endif
