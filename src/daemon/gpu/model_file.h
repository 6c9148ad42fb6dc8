/* The table of models that the setting `models` names. */
#ifndef DAEMON_GPU_MODEL_FILE_H
#define DAEMON_GPU_MODEL_FILE_H

struct config;
struct modelfile;
struct models;

struct modelfile *modelfile_new(void);
void modelfile_free(struct modelfile *f);

/* The current table: reread when a stat shows that the file has changed. While the file is
 * missing or invalid, the last valid table stays in use, and a warning is logged for each new
 * state of the file. NULL: there is no table. Borrowed until the next call. */
const struct models *modelfile_current(struct modelfile *f, const struct config *c);

#endif
