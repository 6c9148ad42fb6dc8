/* Detects changes of a jobs file. Watches the folder, because editors write a new file and
 * rename it over the old one; for a symbolic link, also the folder of its target. A writer
 * that still has the file open gets time to finish. Changes without notifications (network
 * file systems) are found by the main loop's check once a second. */
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/run/run_verb.h"

#define SETTLED_US 50000  /* after a save: editors rename, then change modes and times */
#define OPEN_US    700000 /* a writer still has the file open: read it anyway */

#define MASK                                                                                   \
    (IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE |        \
     IN_ATTRIB)

struct place {
    int wd;
    int index; /* of the file */
    char *name;
};

struct watch {
    int fd;
    struct place *places;
    size_t n, cap;
};

struct watch *
watch_new(void)
{
    struct watch *w = xcalloc(1, sizeof *w);

    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    return w;
}

void
watch_free(struct watch *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    for (size_t i = 0; i < w->n; i++)
        free(w->places[i].name);
    free(w->places);
    free(w);
}

int
watch_fd(const struct watch *w)
{
    return w->fd;
}

static void
forget_file(struct watch *w, int index)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->n; i++) {
        if (w->places[i].index == index)
            free(w->places[i].name);
        else
            w->places[kept++] = w->places[i];
    }
    w->n = kept;
}

static void
watch_path(struct watch *w, int index, const char *path)
{
    auto_free char *for_dir = xstrdup(path);
    auto_free char *for_name = xstrdup(path);
    int wd = inotify_add_watch(w->fd, dirname(for_dir), MASK);

    if (wd < 0)
        return; /* the check once a second remains */
    w->places = xgrow(w->places, w->n, &w->cap, sizeof *w->places);
    w->places[w->n++] = (struct place){wd, index, xstrdup(basename(for_name))};
}

void
watch_file(struct watch *w, int index, const char *path)
{
    auto_free char *real = realpath(path, NULL);

    if (w->fd < 0)
        return;
    forget_file(w, index);
    watch_path(w, index, path);
    if (real && strcmp(real, path) != 0)
        watch_path(w, index, real);
}

static void
take_event(const struct watch *w, const struct inotify_event *ev, struct run_file *files,
           int64_t now_us)
{
    int64_t due = now_us + (ev->mask & IN_MODIFY ? OPEN_US : SETTLED_US);

    for (size_t i = 0; i < w->n; i++) {
        struct run_file *f = &files[w->places[i].index];

        if (w->places[i].wd != ev->wd || (ev->len && strcmp(w->places[i].name, ev->name) != 0))
            continue;
        /* Further modifications postpone neither a complete save nor this limit. */
        if (!(ev->mask & IN_MODIFY) || f->due_us == 0)
            f->due_us = due;
    }
}

void
watch_read(struct watch *w, struct run_file *files, int64_t now_us)
{
    char events[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n;

    while ((n = read(w->fd, events, sizeof events)) > 0) {
        const char *at = events;

        while (at < events + n) {
            const struct inotify_event *ev = (const void *)at;

            take_event(w, ev, files, now_us);
            at += sizeof *ev + ev->len;
        }
    }
}
