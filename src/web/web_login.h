/* The form that takes the token, and the form that ends a session. */
#ifndef WEB_WEB_LOGIN_H
#define WEB_WEB_LOGIN_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct gate;
struct login;
struct page_context;
struct reply;

struct login *login_new(struct MHD_Connection *connection, bool leaves);
void login_free(struct login *l); /* NULL is fine */
/* Takes another part of the form's body. */
void login_take(struct login *l, const char *bytes, size_t n);

/* Call after the whole form. *out: the form again, with an error; or the path to continue at,
 * and then there is a cookie. The caller owns it. */
void login_finish(struct login *l, const struct gate *g, const struct page_context *page,
                  struct reply **out);
/* The Set-Cookie header; NULL: none. Borrowed. */
const char *login_cookie(const struct login *l);

#endif
