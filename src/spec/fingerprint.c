/* The fingerprint of a command: see fingerprint.h. Called by the daemon, once per job. */
#include "spec/fingerprint.h"

#include <string.h>

#include "base/buf.h"
#include "base/request.h"
#include "base/text.h"

/* Appends each part with its NUL, so that {"a b"} and {"a", "b"} differ. */
static void
add_part(struct buf *out, char tag, const char *text)
{
    buf_addc(out, tag);
    buf_addz(out, text);
}

void
fingerprint_make(const struct request *r, const char *cwd, char out[FINGERPRINT_HEX + 1])
{
    auto_buf struct buf all = BUF_INIT;
    char hex[41];
    for (char **arg = r->argv; arg && *arg; arg++)
        add_part(&all, 'a', *arg);
    if (r->command && !r->argv)
        add_part(&all, 'c', r->command);
    if (cwd)
        add_part(&all, 'd', cwd);
    if (r->env_setup && r->env_setup[0])
        add_part(&all, 's', r->env_setup);
    if (r->conda && r->conda[0])
        add_part(&all, 'e', r->conda);
    if (r->container)
        add_part(&all, 'i', r->container);
    text_sha1(all.data ? all.data : "", all.len, hex);
    memcpy(out, hex, FINGERPRINT_HEX);
    out[FINGERPRINT_HEX] = '\0';
}
