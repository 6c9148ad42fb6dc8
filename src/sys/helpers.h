/* Programs of other people that Berth calls: where they are. */
#ifndef SYS_HELPERS_H
#define SYS_HELPERS_H

/* The one that the settings name ("": none), else one of the usual places; NULL: there is none.
 * Static, or the argument. */
const char *helper_sendmail(const char *named);
const char *helper_curl(void);
const char *helper_systemd_run(void);
const char *helper_systemctl(void);

#endif
