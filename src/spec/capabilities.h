/* Names of Linux capabilities in the settings (capabilities(7)). Pure. */
#ifndef SPEC_CAPABILITIES_H
#define SPEC_CAPABILITIES_H

#include <stdint.h>

struct err;

/* "sys_module,sys_rawio" in any case, with or without cap_, or "all"; "" is none. Bit N of the
 * mask is capability number N. ERR_USAGE names an unknown capability. */
int capabilities_parse(const char *text, uint64_t *mask, struct err *e);

#endif
