/* Who may look: the decisions about a request that need nothing but its headers. A name in
 * Host that is not ours means that another web page has pointed its own name at this address
 * (DNS rebinding); an Origin that is not the Host means that another site's form was sent
 * here. If a token is set, it is compared in constant time, and a browser that has sent it
 * once is recognised by a cookie that is derived from it. */
#ifndef WEB_HTTP_GATE_H
#define WEB_HTTP_GATE_H

#include <stdbool.h>

struct err;

#define GATE_COOKIE      "berth_session"
#define GATE_SESSION_LEN 64 /* hexadecimal digits */
#define GATE_TOKEN_MIN   16 /* fewer can be guessed */
#define GATE_TOKEN_MAX   1024

struct gate {
    const char *const *names; /* hosts served beside addresses and localhost; NULL at the end */
    const char *own_name;     /* this machine's name; NULL: unknown */
    char *token;              /* NULL: none is asked for */
    char session[GATE_SESSION_LEN + 1]; /* the cookie's value */
};

/* Reads the token: the file's first line. A file that others than its owner and group may
 * read, or a token of fewer than GATE_TOKEN_MIN bytes, is refused. */
int gate_read_token(struct gate *g, const char *path, struct err *e);
void gate_set_token(struct gate *g, const char *token);
void gate_free(struct gate *g);

/* Host header, with or without port. NULL (none was sent) is refused. */
bool gate_host_is_ours(const struct gate *g, const char *host);

/* Origin header of a POST; NULL (no browser sent it) is fine. */
bool gate_origin_is_ours(const char *origin, const char *host);

/* Fetch metadata: a request that another site's page makes in the background. A link that a
 * user follows is none. Headers that are not there say nothing. */
bool gate_is_cross_site(const char *fetch_site, const char *fetch_mode);

bool gate_token_is_right(const struct gate *g, const char *given);
/* "Authorization: Bearer TOKEN", or the Cookie header; either may be NULL. */
bool gate_is_open(const struct gate *g, const char *authorization, const char *cookies);

/* Where to go after a login: a path of this page, or "/" when it is none. Borrowed. */
const char *gate_next_path(const char *wanted);

#endif
