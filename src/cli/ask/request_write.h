/* Writes requests in wire format: docs/protocol.md section 2, "A job in a request". Writes
 * straight into a buffer, because a file of 10,000 lines becomes one such text. */
#ifndef CLI_ASK_REQUEST_WRITE_H
#define CLI_ASK_REQUEST_WRITE_H

struct env_choice;
struct jobsfile_line;
struct jsonw;
struct request;

/* Adds the fields of one job to an open object. */
void jobreq_add_fields(struct jsonw *w, const struct request *r);

struct err;

/* The current folder; the caller frees it. NULL with e if the folder is gone or its name
 * cannot be sent: running the job elsewhere would be worse than not at all. */
char *jobreq_current_folder(struct err *e);
/* 0 if the folder's name can be sent unchanged, else -1 with e. */
int jobreq_check_folder(const char *cwd, struct err *e);

/* Adds "cwd", "umask" and "env" of this process to an open object. env NULL: the whole
 * environment. */
void jobreq_add_context(struct jsonw *w, const char *cwd, const struct env_choice *env);

/* Adds a line of a file with key, line and cancel to an open object. */
void jobreq_add_line(struct jsonw *w, const struct jobsfile_line *line);

#endif
