/* The meaning of the error numbers of NVIDIA's driver (XID): whether the GPU is still usable,
 * and what helps. Based on the driver's own catalogue (docs.nvidia.com/deploy/xid-errors),
 * reduced to what a scheduler has to decide. Pure. */
#ifndef GPU_XID_H
#define GPU_XID_H

enum xid_action {
    XID_NOTE,    /* informative; the GPU continues */
    XID_PROGRAM, /* an error of one program, or its end: the GPU continues */
    XID_RESET,   /* nothing may start there until the GPU is reset */
    XID_REBOOT,  /* nothing may start there until the machine is rebooted */
};

struct xid {
    int code;
    enum xid_action action;
    const char *meaning;
    const char *advice; /* for an administrator; NULL: none */
};

/* A number that is not in the table is treated as a note: an unknown message must not take a
 * GPU out of use. Never NULL. */
const struct xid *xid_find(int code);

/* The action, taking the message text into account: the driver's own verdict (154), and link
 * errors that come in a fatal and a harmless form. */
enum xid_action xid_action_of(int code, const char *text);

#endif
