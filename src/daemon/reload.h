/* HUP: the settings are read again, and the log is opened anew. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

struct daemon;

void reload_settings(struct daemon *d);

#endif
