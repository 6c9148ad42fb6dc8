/* An SQLite VFS that turns each commit into a single write. */
#ifndef STORE_STORE_GATHER_H
#define STORE_STORE_GATHER_H

/* The VFS name for sqlite3_open_v2; NULL: use SQLite's default. Not reentrant: calls from
 * several threads must not overlap. */
const char *gather_vfs_name(void);

#endif
