/* Requests as they go over the socket: docs/protocol.md section 2, "A job in a request".
 * Written straight into a buffer: a file of 10,000 lines is one such text. */
#ifndef CLI_ASK_REQUEST_WRITE_H
#define CLI_ASK_REQUEST_WRITE_H

struct env_choice;
struct jobsfile_line;
struct jsonw;
struct request;

/* The fields of one job, into an open object. */
void jobreq_add_fields(struct jsonw *w, const struct request *r);

struct err;

/* The current folder, for the caller to free. NULL with e when it has gone, or when its name
 * cannot be sent: a job that ran elsewhere would be worse than none. */
char *jobreq_current_folder(struct err *e);
/* 0 when the folder's name can be sent as it is, else -1 with e. */
int jobreq_check_folder(const char *cwd, struct err *e);

/* "cwd", "umask" and "env" of this process, into an open object. env NULL: all of it. */
void jobreq_add_context(struct jsonw *w, const char *cwd, const struct env_choice *env);

/* A line of a file with key, line and cancel, into an open object. */
void jobreq_add_line(struct jsonw *w, const struct jobsfile_line *line);

#endif
