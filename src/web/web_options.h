/* berth-web's options: berth-web(8). */
#ifndef WEB_WEB_OPTIONS_H
#define WEB_WEB_OPTIONS_H

#include <stdbool.h>
#include <sys/socket.h>

struct err;

#define OPTIONS_PORT      7461
#define OPTIONS_NAMES_MAX 16

struct options {
    const char *dir;
    const char *socket;
    const char *token_file;
    const char *unix_path; /* to listen there instead of at an address */
    struct sockaddr_storage address;
    socklen_t address_len;
    bool is_loopback;
    bool allow_local;                         /* every user of this machine may look */
    const char *names[OPTIONS_NAMES_MAX + 1]; /* hosts by which it is known */
    int ready_fd;                             /* -1: none */
};

/* 0: go on; 1: help or version was printed; -1: unusable. */
int web_options_parse(int argc, char **argv, struct options *out, struct err *e);

/* "127.0.0.1:80", "[::1]:80", "localhost:80", ":80" is refused. Fills address. */
int web_options_parse_listen(const char *text, struct options *out, struct err *e);

#endif
