/* Locations of third-party programs that Berth calls. */
#ifndef SYS_HELPERS_H
#define SYS_HELPERS_H

/* The path named in the settings ("": none), else the first of the usual places that exists;
 * NULL: not found. Static, or the argument. */
const char *helper_sendmail(const char *named);
const char *helper_curl(void);
const char *helper_systemd_run(void);
const char *helper_systemctl(void);

#endif
