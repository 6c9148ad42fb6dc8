/* Composite column values: see store_row_fields.c. Reads return 0, or -1 if the column is
 * invalid. Files outside src/store must not include this. */
#ifndef STORE_STORE_ROW_FIELDS_H
#define STORE_STORE_ROW_FIELDS_H

#include <sqlite3.h>
#include <stddef.h>

struct attempt;
struct demand;
struct hooks;
struct job;
struct request;
struct store_attempt;
struct task_set;
struct tasks;

void row_bind_argv(sqlite3_stmt *st, int at, char *const *argv);
void row_bind_ids(sqlite3_stmt *st, int at, const struct demand *d);
void row_bind_cards(sqlite3_stmt *st, int at, const struct attempt *a,
                    const char *const *uuids);
void row_bind_peaks(sqlite3_stmt *st, int at, const struct attempt *a);
void row_bind_deps(sqlite3_stmt *st, int at, const struct request *r);
void row_bind_hooks(sqlite3_stmt *st, int at, const struct hooks *h);
void row_bind_set(sqlite3_stmt *st, int at, const struct task_set *set);
void row_bind_book(sqlite3_stmt *st, int at, const struct tasks *t);

char *row_text(sqlite3_stmt *st, int col); /* the caller frees; may be NULL */
int row_read_argv(sqlite3_stmt *st, int col, char ***out);
int row_read_ids(sqlite3_stmt *st, int col, struct demand *d);
int row_read_cards(sqlite3_stmt *st, int col, struct store_attempt *a);
int row_read_peaks(sqlite3_stmt *st, int col, struct attempt *a);
void row_read_words(sqlite3_stmt *st, int col, char *out, size_t size);
int row_read_deps(sqlite3_stmt *st, int col, struct request *r);
int row_read_hooks(sqlite3_stmt *st, int col, struct hooks **out);
int row_read_set(sqlite3_stmt *st, int col, struct task_set *set);
int row_read_book(sqlite3_stmt *st, int col, struct job *job);

#endif
