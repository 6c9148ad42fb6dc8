/* Access control: decisions about a request that depend only on its headers. An unknown name
 * in Host means that another web page has pointed its own name at this address (DNS
 * rebinding); an Origin that differs from Host means that another site's form was sent here. A
 * token, if set, is compared in constant time, and a browser that has sent it once is
 * recognised by a cookie derived from it. */
#ifndef WEB_HTTP_GATE_H
#define WEB_HTTP_GATE_H

#include <stdbool.h>

struct err;

#define GATE_COOKIE      "berth_session"
#define GATE_SESSION_LEN 64 /* hexadecimal digits */
#define GATE_TOKEN_MIN   16 /* shorter tokens can be guessed */
#define GATE_TOKEN_MAX   1024

struct gate {
    const char *const *names; /* served besides addresses and localhost; NULL-terminated */
    const char *own_name;     /* this machine's name; NULL: unknown */
    char *token;              /* NULL: no token is required */
    char session[GATE_SESSION_LEN + 1]; /* the cookie's value */
};

/* Reads the token from the first line of a file. Refuses a file that users other than its
 * owner and group may read, and a token shorter than GATE_TOKEN_MIN bytes. */
int gate_read_token(struct gate *g, const char *path, struct err *e);
void gate_set_token(struct gate *g, const char *token);
void gate_free(struct gate *g);

/* Host header, with or without port. NULL (no header) is refused. */
bool gate_host_is_ours(const struct gate *g, const char *host);

/* Origin header of a POST; NULL (not sent by a browser) is accepted. */
bool gate_origin_is_ours(const char *origin, const char *host);

/* Fetch metadata: true for a request that another site's page makes in the background, but not
 * for a link that a user follows. Missing headers imply nothing. */
bool gate_is_cross_site(const char *fetch_site, const char *fetch_mode);

bool gate_token_is_right(const struct gate *g, const char *given);
/* "Authorization: Bearer TOKEN", or the Cookie header; either may be NULL. */
bool gate_is_open(const struct gate *g, const char *authorization, const char *cookies);

/* The page to show after a login: wanted if it is a path of this site, else "/". Borrowed. */
const char *gate_next_path(const char *wanted);

#endif
