/* Capabilities by name: see capabilities.h. The numbers are the kernel's and never change; a
 * kernel without one of the newer ones has nothing to drop. Called when a setting is read, and
 * by the daemon when it launches an attempt. */
#include "spec/capabilities.h"

#include <linux/capability.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"

#define N(name, number) [number] = #name

static const char *const names[] = {
    N(chown, CAP_CHOWN),
    N(dac_override, CAP_DAC_OVERRIDE),
    N(dac_read_search, CAP_DAC_READ_SEARCH),
    N(fowner, CAP_FOWNER),
    N(fsetid, CAP_FSETID),
    N(kill, CAP_KILL),
    N(setgid, CAP_SETGID),
    N(setuid, CAP_SETUID),
    N(setpcap, CAP_SETPCAP),
    N(linux_immutable, CAP_LINUX_IMMUTABLE),
    N(net_bind_service, CAP_NET_BIND_SERVICE),
    N(net_broadcast, CAP_NET_BROADCAST),
    N(net_admin, CAP_NET_ADMIN),
    N(net_raw, CAP_NET_RAW),
    N(ipc_lock, CAP_IPC_LOCK),
    N(ipc_owner, CAP_IPC_OWNER),
    N(sys_module, CAP_SYS_MODULE),
    N(sys_rawio, CAP_SYS_RAWIO),
    N(sys_chroot, CAP_SYS_CHROOT),
    N(sys_ptrace, CAP_SYS_PTRACE),
    N(sys_pacct, CAP_SYS_PACCT),
    N(sys_admin, CAP_SYS_ADMIN),
    N(sys_boot, CAP_SYS_BOOT),
    N(sys_nice, CAP_SYS_NICE),
    N(sys_resource, CAP_SYS_RESOURCE),
    N(sys_time, CAP_SYS_TIME),
    N(sys_tty_config, CAP_SYS_TTY_CONFIG),
    N(mknod, CAP_MKNOD),
    N(lease, CAP_LEASE),
    N(audit_write, CAP_AUDIT_WRITE),
    N(audit_control, CAP_AUDIT_CONTROL),
    N(setfcap, CAP_SETFCAP),
    N(mac_override, CAP_MAC_OVERRIDE),
    N(mac_admin, CAP_MAC_ADMIN),
    N(syslog, CAP_SYSLOG),
    N(wake_alarm, CAP_WAKE_ALARM),
    N(block_suspend, CAP_BLOCK_SUSPEND),
    N(audit_read, CAP_AUDIT_READ),
    N(perfmon, CAP_PERFMON),
    N(bpf, CAP_BPF),
    N(checkpoint_restore, CAP_CHECKPOINT_RESTORE),
};
#define N_NAMES (sizeof names / sizeof names[0])

/* Every capability a kernel may have, including those missing in this table. 63 bits, as the
 * mask passes through JSON as a signed number. */
#define ALL ((UINT64_C(1) << 63) - 1)

static int
find(const char *name, size_t n)
{
    if (n > 4 && strncasecmp(name, "cap_", 4) == 0) {
        name += 4;
        n -= 4;
    }
    for (size_t i = 0; i < N_NAMES; i++)
        if (strlen(names[i]) == n && strncasecmp(names[i], name, n) == 0)
            return (int)i;
    return -1;
}

int
capabilities_parse(const char *text, uint64_t *mask, struct err *e)
{
    *mask = 0;
    if (strcasecmp(text, "all") == 0) {
        *mask = ALL;
        return 0;
    }
    for (const char *at = text; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        int i = find(at, n);
        if (i < 0)
            return err_set(e, ERR_USAGE,
                           "'%.*s' is not a capability; write names as in capabilities(7), "
                           "such as sys_module,net_raw, or all",
                           (int)(n < 40 ? n : 40), at);
        *mask |= UINT64_C(1) << i;
        at += n;
    }
    return 0;
}
