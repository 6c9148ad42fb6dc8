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
    const char *unix_path; /* listen there instead of at an address */
    struct sockaddr_storage address;
    socklen_t address_len;
    bool is_loopback;
    bool allow_local;                         /* let every user of this machine connect */
    const char *names[OPTIONS_NAMES_MAX + 1]; /* names by which it is reached */
    int ready_fd;                             /* -1: none */
};

/* 0: continue; 1: help or version was printed; -1: invalid. */
int web_options_parse(int argc, char **argv, struct options *out, struct err *e);

/* Parses "127.0.0.1:80", "[::1]:80", "localhost:80" or "unix:/path" into out; refuses
 * ":80". */
int web_options_parse_listen(const char *text, struct options *out, struct err *e);

#endif
