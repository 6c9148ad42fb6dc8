/* SIGHUP: reads the settings again and reopens the log. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

struct options;
struct rules;

/* options: from the command line. */
void reload_settings(struct rules *r, const struct options *options);

#endif
