/* A way for SQLite to its files by which a commit is one write. */
#ifndef STORE_STORE_GATHER_H
#define STORE_STORE_GATHER_H

/* The name to open databases with (sqlite3_open_v2); NULL: SQLite's own way has to do. Calls of
 * several threads must not overlap. */
const char *gather_vfs_name(void);

#endif
