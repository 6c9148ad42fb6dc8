/* Third-party programs in their usual places, never searched in a user's PATH. Called by the
 * daemon, which reports missing ones early, and by deliveries. */
#include "sys/helpers.h"

#include <stddef.h>
#include <unistd.h>

static const char *
first_of(const char *const *places)
{
    for (; *places; places++)
        if (access(*places, X_OK) == 0)
            return *places;
    return NULL;
}

const char *
helper_sendmail(const char *named)
{
    static const char *const places[] = {"/usr/sbin/sendmail", "/usr/lib/sendmail",
                                         "/usr/bin/sendmail", "/usr/local/sbin/sendmail", NULL};

    if (named && named[0])
        return access(named, X_OK) == 0 ? named : NULL;
    return first_of(places);
}

const char *
helper_curl(void)
{
    static const char *const places[] = {"/usr/bin/curl", "/bin/curl", "/usr/local/bin/curl",
                                         NULL};

    return first_of(places);
}

const char *
helper_systemd_run(void)
{
    static const char *const places[] = {"/usr/bin/systemd-run", "/bin/systemd-run", NULL};

    return first_of(places);
}

const char *
helper_systemctl(void)
{
    static const char *const places[] = {"/usr/bin/systemctl", "/bin/systemctl", NULL};

    return first_of(places);
}
