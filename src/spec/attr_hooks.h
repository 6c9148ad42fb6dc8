/* Syntax of the attributes for notifications about a job. Pure. */
#ifndef SPEC_ATTR_HOOKS_H
#define SPEC_ATTR_HOOKS_H

#include <stdint.h>

struct buf;
struct err;

#define HOOK_MAX_BYTES    4096 /* a command */
#define WEBHOOK_MAX_BYTES 2000
#define MAIL_MAX_BYTES    1000 /* all addresses together */

/* "BEGIN,END", in any case, as in Slurm: BEGIN END FAIL REQUEUE TIME_LIMIT ALL ARRAY_TASKS
 * NONE. ERR_USAGE. */
int hooks_parse_types(const char *text, uint32_t *out, struct err *e);
void hooks_add_types(uint32_t bits, struct buf *out);

/* An http or https URL of at most WEBHOOK_MAX_BYTES, or empty. ERR_USAGE. */
int hooks_check_url(const char *url, struct err *e);

/* Shell text, or empty. ERR_USAGE. */
int hooks_check_command(const char *text, struct err *e);
/* "alice,bob@example.org". ERR_USAGE. */
int hooks_check_addresses(const char *list, struct err *e);

#endif
