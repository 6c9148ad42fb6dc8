/* GPU names for podman's --device: see cdi_names.h. `nvidia-ctk cdi generate` writes the
 * specifications in YAML or JSON; names are written there literally, so a text search finds
 * them. Newer files name a GPU by UUID, older ones only by index. Called by the shepherd when
 * it starts a container, and by `berth doctor`. */
#include "sys/cdi_names.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#define KIND           "nvidia.com/gpu"
#define MIG            "MIG-" /* MIG instances have no index of their own */
#define SPEC_MAX_BYTES (4 << 20)

static const char *const folders[] = {"/etc/cdi", "/var/run/cdi"};
static const char *const hooks[] = {
    "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",
    "/etc/containers/oci/hooks.d/oci-nvidia-hook.json",
};

void
cdi_free(struct cdi_names *names)
{
    for (char **at = names->list; at && *at; at++)
        free(*at);
    free(names->list);
    free(names->hook_cards);
}

static bool
ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static void
add_file(const char *folder, const char *name, struct buf *all)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *path = xasprintf("%s/%s", folder, name);
    if ((ends_in(name, ".yaml") || ends_in(name, ".json")) &&
        file_read(path, SPEC_MAX_BYTES, &text, NULL) == 0 && text.len > 0 &&
        strstr(text.data, KIND))
        buf_add(all, text.data, text.len);
}

/* Concatenates all specifications of NVIDIA's GPUs. */
static void
read_all(struct buf *all)
{
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        auto_dir DIR *dir = opendir(folders[i]);
        const struct dirent *entry;
        while (dir && (entry = readdir(dir)))
            add_file(folders[i], entry->d_name, all);
    }
}

static bool
has_hook(void)
{
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        if (access(hooks[i], R_OK) == 0)
            return true;
    return false;
}

static void
join(char *const *list, struct buf *out)
{
    for (char *const *at = list; *at; at++)
        buf_addf(out, "%s%s", at == list ? "" : ",", *at);
}

int
cdi_find(char *const *uuids, char *const *indices, struct cdi_names *out, struct err *e)
{
    auto_buf struct buf all = BUF_INIT, cards = BUF_INIT;
    size_t n = 0;
    while (uuids[n] && indices[n])
        n++;
    if (n == 0)
        return 0;
    read_all(&all);
    if (all.len == 0 && has_hook()) {
        join(uuids, &cards);
        out->hook_cards = buf_take(&cards);
        return 0;
    }
    if (all.len == 0)
        return err_set(e, ERR_FAILED,
                       "podman cannot be given NVIDIA's GPUs: /etc/cdi has no specification of "
                       "them; run 'nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml'");
    out->list = xcalloc(n + 1, sizeof *out->list);
    for (size_t i = 0; i < n; i++) {
        bool by_uuid = strstr(all.data, uuids[i]);
        if (!by_uuid && strncmp(uuids[i], MIG, sizeof MIG - 1) == 0)
            return err_set(
                e, ERR_FAILED,
                "/etc/cdi has no MIG instance by its UUID; run 'nvidia-ctk cdi generate "
                "--device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml'");
        out->list[i] = xasprintf(KIND "=%s", by_uuid ? uuids[i] : indices[i]);
    }
    return 0;
}

bool
cdi_is_ready(void)
{
    auto_buf struct buf all = BUF_INIT;
    read_all(&all);
    return all.len > 0 || has_hook();
}
