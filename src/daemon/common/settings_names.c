/* The users and the group named in the settings: see settings_names.h. Their directory may come
 * later than the daemon, at boot for example, and without an answer nobody can tell a late user
 * from a mistyped one. So unknown names are looked up again, after a second, two, and so on up
 * to a minute. user_names.c does the lookups; rules.c and roles.c use their results. Used by
 * berthd.c and reload.c. */
#include "daemon/common/settings_names.h"

#include "base/log.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"

#define PAUSE_FIRST_MS 1000
#define PAUSE_MAX_MS   60000

/* NULL: there is none, or no use for it. */
static const char *
admin_group(const struct instance *inst)
{
    const char *name = inst->config.admin_group;
    return inst->places.system && name && name[0] ? name : NULL;
}

/* Asks for the names that are unknown. False: there are none. */
static bool
ask_unknown(const struct instance *inst)
{
    const struct config *c = &inst->config;
    const char *group = admin_group(inst);
    bool any = false;
    uid_t uid;
    gid_t gid;
    if (group && !users_gid(group, &gid)) {
        users_ask_gid(group);
        any = true;
    }
    for (size_t i = 0; i < c->n_users; i++) {
        if (users_uid(c->users[i].name, &uid) > 0)
            continue;
        users_ask_uid(c->users[i].name);
        any = true;
    }
    return any;
}

static void
on_again(uv_timer_t *timer)
{
    struct settings_names *n = timer->data;
    if (!ask_unknown(n->inst))
        return;
    n->pause_ms = n->pause_ms * 2 < PAUSE_MAX_MS ? n->pause_ms * 2 : PAUSE_MAX_MS;
    uv_timer_start(timer, on_again, n->pause_ms, 0);
}

static void
wait_first(struct settings_names *n)
{
    n->pause_ms = PAUSE_FIRST_MS;
    uv_timer_start(&n->again, on_again, n->pause_ms, 0);
}

/* Without it the daemon serves users and root, which is better than nobody. */
static void
find_admin_group(const char *name)
{
    gid_t gid;
    users_find_gid(name);
    if (!users_gid(name, &gid))
        log_warn("setting=admin_group group=%s unknown group; only root is an admin until it "
                 "is found ('groupadd %s' creates it)",
                 name, name);
}

void
settings_names_start(struct settings_names *n, const struct instance *inst)
{
    n->inst = inst;
    if (admin_group(inst))
        find_admin_group(admin_group(inst));
    for (size_t i = 0; i < inst->config.n_users; i++)
        users_find_uid(inst->config.users[i].name);
    uv_timer_init(inst->loop, &n->again);
    uv_unref((uv_handle_t *)&n->again);
    n->again.data = n;
    wait_first(n);
}

void
settings_names_ask(struct settings_names *n)
{
    if (admin_group(n->inst))
        users_ask_gid(admin_group(n->inst));
    for (size_t i = 0; i < n->inst->config.n_users; i++)
        users_ask_uid(n->inst->config.users[i].name);
    wait_first(n);
}

void
settings_names_close(struct settings_names *n)
{
    uv_close((uv_handle_t *)&n->again, NULL);
}
