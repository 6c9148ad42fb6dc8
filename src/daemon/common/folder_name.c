/* See folder_name.h: the only thing that both engines share about an attempt's folder. */
#include "daemon/common/folder_name.h"

#include <stdio.h>

char *
folder_name(uint32_t job, int32_t attempt, char *out)
{
    snprintf(out, 32, "%u.%d", job, attempt);
    return out;
}
