/* SIGHUP: reads the settings again, looks up the names in them, and reopens the log. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

struct options;
struct rules;
struct settings_names;

/* options: from the command line. */
void reload_settings(struct rules *r, struct settings_names *names,
                     const struct options *options);

#endif
