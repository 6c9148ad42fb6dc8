/* Access control: see gate.h. Called by web_request.c for every request, and by
 * web_login.c. */
#include "web/http/gate.h"

#include <arpa/inet.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#define BLOCK_BYTES 64 /* of SHA-256 */

/* --- token --- */

static void
digest(const void *a, size_t n, const void *b, size_t m, uint8_t out[SHA256_DIGEST_LENGTH])
{
    SHA2_CTX sha;

    SHA256Init(&sha);
    SHA256Update(&sha, a, n);
    SHA256Update(&sha, b, m);
    SHA256Final(out, &sha);
}

/* HMAC-SHA-256 (RFC 2104): a cookie reveals nothing about the token. */
static void
hmac(const char *key, const char *text, uint8_t out[SHA256_DIGEST_LENGTH])
{
    uint8_t block[BLOCK_BYTES] = {0}, inner[SHA256_DIGEST_LENGTH];

    if (strlen(key) > sizeof block)
        digest(key, strlen(key), "", 0, block);
    else
        for (size_t i = 0; key[i]; i++)
            block[i] = (uint8_t)key[i];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36;
    digest(block, sizeof block, text, strlen(text), inner);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    digest(block, sizeof block, inner, sizeof inner, out);
}

/* Compares digests, so that the time does not depend on how much of the text is right. */
static bool
is_same_secret(const char *a, const char *b)
{
    uint8_t x[SHA256_DIGEST_LENGTH], y[SHA256_DIGEST_LENGTH];
    volatile uint8_t differs = 0;

    digest(a, strlen(a), "", 0, x);
    digest(b, strlen(b), "", 0, y);
    for (size_t i = 0; i < sizeof x; i++)
        differs |= x[i] ^ y[i];
    return differs == 0;
}

void
gate_set_token(struct gate *g, const char *token)
{
    uint8_t mac[SHA256_DIGEST_LENGTH];

    free(g->token);
    g->token = xstrdup(token);
    hmac(token, "berth-web session 1", mac);
    for (size_t i = 0; i < sizeof mac; i++)
        snprintf(g->session + 2 * i, 3, "%02x", mac[i]);
}

static int
check_mode(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_set(e, ERR_USAGE, "--token-file %s: no such file", path);
    if (st.st_mode & S_IRWXO)
        return err_set(
            e, ERR_USAGE,
            "--token-file %s: every user can read it; 'chmod o= %s' makes it private", path,
            path);
    return 0;
}

int
gate_read_token(struct gate *g, const char *path, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    size_t n;

    if (check_mode(path, e) < 0 || file_read(path, GATE_TOKEN_MAX, &text, e) < 0)
        return -1;
    n = strcspn(buf_str(&text), "\r\n");
    if (n < GATE_TOKEN_MIN)
        return err_set(e, ERR_USAGE,
                       "--token-file %s: its first line has %zu bytes; a token needs at least "
                       "%d ('openssl rand -hex 24' makes one)",
                       path, n, GATE_TOKEN_MIN);
    text.data[n] = '\0';
    gate_set_token(g, text.data);
    return 0;
}

void
gate_free(struct gate *g)
{
    free(g->token);
    g->token = NULL;
}

/* --- host --- */

/* The host without its port and the brackets of an IPv6 address; false: malformed. */
static bool
split_host(const char *host, char *name, size_t size)
{
    const char *from = host, *end;

    if (*host == '[') {
        from = host + 1;
        end = strchr(from, ']');
        if (!end || (end[1] && end[1] != ':'))
            return false;
    } else {
        end = from + strcspn(from, ":");
    }
    if (end == from || (size_t)(end - from) >= size)
        return false;
    memcpy(name, from, (size_t)(end - from));
    name[end - from] = '\0';
    return true;
}

static bool
is_address(const char *name)
{
    struct in6_addr six;
    struct in_addr four;

    return inet_pton(AF_INET, name, &four) == 1 || inet_pton(AF_INET6, name, &six) == 1;
}

/* Only names are checked against the list: an address cannot be rebound. */
bool
gate_host_is_ours(const struct gate *g, const char *host)
{
    char name[256];

    if (!host || !split_host(host, name, sizeof name))
        return false;
    if (is_address(name) || strcasecmp(name, "localhost") == 0)
        return true;
    if (g->own_name && strcasecmp(name, g->own_name) == 0)
        return true;
    for (const char *const *n = g->names; n && *n; n++)
        if (strcasecmp(name, *n) == 0)
            return true;
    return false;
}

bool
gate_origin_is_ours(const char *origin, const char *host)
{
    const char *at;

    if (!origin)
        return true;
    if (strncmp(origin, "http://", 7) == 0)
        at = origin + 7;
    else if (strncmp(origin, "https://", 8) == 0)
        at = origin + 8;
    else
        return false;
    return host && strcasecmp(at, host) == 0;
}

bool
gate_is_cross_site(const char *fetch_site, const char *fetch_mode)
{
    if (!fetch_site || strcmp(fetch_site, "cross-site") != 0)
        return false;
    return !fetch_mode || strcmp(fetch_mode, "navigate") != 0;
}

/* --- opening --- */

bool
gate_token_is_right(const struct gate *g, const char *given)
{
    return g->token && given && is_same_secret(g->token, given);
}

/* "a=1; berth_session=..." */
static bool
has_session(const struct gate *g, const char *cookies)
{
    const size_t n = strlen(GATE_COOKIE);

    while (*cookies) {
        cookies += strspn(cookies, "; \t");
        size_t len = strcspn(cookies, ";");
        if (len == n + 1 + GATE_SESSION_LEN && cookies[n] == '=' &&
            memcmp(cookies, GATE_COOKIE, n) == 0) {
            auto_free char *value = xstrndup(cookies + n + 1, GATE_SESSION_LEN);
            if (is_same_secret(g->session, value))
                return true;
        }
        cookies += len;
    }
    return false;
}

bool
gate_is_open(const struct gate *g, const char *authorization, const char *cookies)
{
    if (!g->token)
        return true;
    if (authorization && strncasecmp(authorization, "Bearer ", 7) == 0 &&
        gate_token_is_right(g, authorization + 7))
        return true;
    return cookies && has_session(g, cookies);
}

const char *
gate_next_path(const char *wanted)
{
    /* A browser takes "//host" and "/\host" as other sites. */
    if (!wanted || wanted[0] != '/' || wanted[1] == '/' || wanted[1] == '\\')
        return "/";
    for (const char *c = wanted; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == '\\' || (unsigned char)*c >= 0x7f)
            return "/";
    return wanted;
}
