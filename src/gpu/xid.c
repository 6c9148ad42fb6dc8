/* The table of XIDs: see xid.h. Called by the daemon for every message that berth-probe finds
 * in the kernel's log. */
#include "gpu/xid.h"

#include <stddef.h>
#include <string.h>

#include "base/search.h"

/* While berthd runs, its probe uses every GPU, so a reset would be refused. */
#define RESET_ADVICE                                                                           \
    "reset it (stop berthd, whose jobs go on; nvidia-smi --gpu-reset; start berthd) or "       \
    "reboot, then: berth resume"
#define REBOOT_ADVICE "reboot the machine; if it happens again, the GPU or its slot is faulty"
#define WATCH_ADVICE                                                                           \
    "reset it when no job runs there (stop berthd; nvidia-smi --gpu-reset; start berthd), so " \
    "that the driver can repair it"
#define BUG_ADVICE "check the program first; compute-sanitizer finds most of these errors"

/* Sorted by code. */
static const struct xid table[] = {
    {8, XID_PROGRAM, "a program's channel timed out", NULL},
    {11, XID_PROGRAM, "invalid or corrupted commands of a program", BUG_ADVICE},
    {13, XID_PROGRAM, "graphics engine exception", BUG_ADVICE},
    {31, XID_PROGRAM, "GPU memory page fault", BUG_ADVICE},
    {32, XID_PROGRAM, "invalid or corrupted push buffer", BUG_ADVICE},
    {43, XID_PROGRAM, "the GPU stopped processing for a program", BUG_ADVICE},
    {45, XID_PROGRAM, "a program's channels were cleaned up", NULL},
    {46, XID_RESET, "the GPU stopped processing", RESET_ADVICE},
    {48, XID_RESET, "double-bit memory error", RESET_ADVICE},
    {54, XID_REBOOT, "its auxiliary power is not connected", "check the GPU's power cables"},
    {61, XID_RESET, "its micro-controller stopped at a breakpoint", RESET_ADVICE},
    {62, XID_RESET, "its micro-controller halted", RESET_ADVICE},
    {63, XID_NOTE, "bad memory was retired", WATCH_ADVICE},
    {64, XID_RESET, "bad memory could not be retired", RESET_ADVICE},
    {68, XID_PROGRAM, "video engine exception", NULL},
    {69, XID_PROGRAM, "graphics engine class error", BUG_ADVICE},
    {74, XID_RESET, "NVLink error", RESET_ADVICE},
    {79, XID_RESET, "the GPU has fallen off the bus", REBOOT_ADVICE},
    {92, XID_NOTE, "many single-bit memory errors", WATCH_ADVICE},
    {94, XID_PROGRAM, "contained memory error", WATCH_ADVICE},
    {95, XID_RESET, "uncontained memory error", RESET_ADVICE},
    {109, XID_RESET, "context switch timeout", RESET_ADVICE},
    {110, XID_RESET, "security fault", RESET_ADVICE},
    {119, XID_RESET, "its firmware (GSP) does not answer", RESET_ADVICE},
    {120, XID_RESET, "its firmware (GSP) failed", RESET_ADVICE},
    {121, XID_NOTE, "a corrected error of the link to the processor", NULL},
    {136, XID_RESET, "a link could not be trained", RESET_ADVICE},
    {137, XID_PROGRAM, "a program's access over NVLink was refused", BUG_ADVICE},
    {140, XID_RESET, "memory error that could not be repaired", RESET_ADVICE},
    {143, XID_RESET, "the GPU could not be initialised", RESET_ADVICE},
    {144, XID_RESET, "NVLink error", RESET_ADVICE},
    {145, XID_RESET, "NVLink error", RESET_ADVICE},
    {146, XID_RESET, "NVLink error", RESET_ADVICE},
    {147, XID_RESET, "NVLink error", RESET_ADVICE},
    {148, XID_RESET, "NVLink error", RESET_ADVICE},
    {149, XID_RESET, "NVLink error", RESET_ADVICE},
    {150, XID_RESET, "NVLink error", RESET_ADVICE},
    {154, XID_NOTE, "the driver reports another recovery action for the GPU", RESET_ADVICE},
    {156, XID_NOTE, "a part of the GPU was retired", WATCH_ADVICE},
    {158, XID_RESET, "fatal timeout", RESET_ADVICE},
};

const struct xid *
xid_find(int code)
{
    static const struct xid unknown = {0, XID_NOTE, "an error of the driver", NULL};
    size_t n = sizeof table / sizeof table[0];
    size_t place = search_first(at, n, table[at].code < code);

    return place < n && table[place].code == code ? &table[place] : &unknown;
}

/* "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)": only the new
 * action counts. */
static enum xid_action
verdict(const char *text)
{
    const char *to = strstr(text, " to ");

    if (!to)
        return XID_NOTE;
    if (strcasestr(to, "reboot"))
        return XID_REBOOT;
    return strcasestr(to, "reset") ? XID_RESET : XID_NOTE;
}

enum xid_action
xid_action_of(int code, const char *text)
{
    enum xid_action action = xid_find(code)->action;

    if (code == 154)
        return verdict(text);
    if (code >= 144 && code <= 150 && strcasestr(text, "nonfatal"))
        return XID_NOTE;
    return action;
}
