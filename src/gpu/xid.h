/* What the numbers mean that NVIDIA's driver gives to errors (XID): whether the card is of
 * further use, and what helps. After the driver's own catalogue of them
 * (docs.nvidia.com/deploy/xid-errors), shortened to what a scheduler has to decide. Pure. */
#ifndef GPU_XID_H
#define GPU_XID_H

enum xid_action {
    XID_NOTE,    /* worth telling; the card goes on */
    XID_PROGRAM, /* one program's own error, or its end: the card goes on */
    XID_RESET,   /* nothing may start there until the card has been reset */
    XID_REBOOT,  /* nor until the machine has been restarted */
};

struct xid {
    int code;
    enum xid_action action;
    const char *meaning;
    const char *advice; /* what an administrator does; NULL: nothing */
};

/* A number that the table does not have is worth a note and no more: a card must not be lost
 * to an unknown message. Never NULL. */
const struct xid *xid_find(int code);

/* The same with the words of the message taken into account: the driver's own verdict (154),
 * and errors of links that come in a fatal and in a harmless form. */
enum xid_action xid_action_of(int code, const char *text);

#endif
