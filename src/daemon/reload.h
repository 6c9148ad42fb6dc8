/* HUP: the settings are read again, and the log is opened anew. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

struct options;
struct rules;

/* options: as the daemon was started. */
void reload_settings(struct rules *r, const struct options *options);

#endif
