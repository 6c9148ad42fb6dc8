/* Waiting clients: see waits.h. A wait holds the ids that are still to come, sorted; a
 * job's end is looked up in each. */
#include "daemon/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "core/account.h"
#include "core/job.h"
#include "daemon/daemon.h"
#include "daemon/server.h"

struct wait {
    struct wait *next;
    struct ticket *ticket;
    uint32_t *ids; /* sorted */
    int n, left;
    struct buf done; /* objects, comma-separated */
};

struct waits {
    struct wait *first;
};

struct waits *
waits_new(void)
{
    return xcalloc(1, sizeof(struct waits));
}

static void
wait_free(struct wait *x)
{
    ticket_free(x->ticket);
    free(x->ids);
    buf_free(&x->done);
    free(x);
}

void
waits_free(struct waits *w)
{
    while (w && w->first) {
        struct wait *x = w->first;
        w->first = x->next;
        wait_free(x);
    }
    free(w);
}

void
waits_write(struct buf *out, const struct job *job)
{
    if (out->len > 0)
        buf_addc(out, ',');
    buf_addf(out, "{\"id\":%u,\"state\":\"%s\",\"exit_status\":%d", job->id,
             job_state_name(job->state), job_exit_status(job));
    if (job->array)
        buf_addf(out, ",\"array_job\":%u,\"array_task\":%d", job->array, job->task);
    buf_addc(out, '}');
}

static void
answer(struct wait *x)
{
    auto_free char *text = xasprintf("{\"jobs\":[%s]}", buf_str(&x->done));
    server_answer(TAKE(x->ticket), text);
    wait_free(x);
}

static int
compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void
waits_add(struct daemon *d, struct ticket *t, uint32_t *ids, int n, const char *done)
{
    struct wait *x = xcalloc(1, sizeof *x);
    x->ticket = t;
    x->ids = ids;
    x->n = x->left = n;
    buf_adds(&x->done, done);
    if (n == 0) {
        answer(x);
        return;
    }
    qsort(ids, (size_t)n, sizeof *ids, compare_ids);
    x->next = d->waits->first;
    d->waits->first = x;
}

void
waits_job_ended(struct daemon *d, const struct job *job)
{
    struct wait **at = &d->waits->first;
    while (*at) {
        struct wait *x = *at;
        if (bsearch(&job->id, x->ids, (size_t)x->n, sizeof job->id, compare_ids)) {
            waits_write(&x->done, job);
            x->left--;
        }
        if (x->left > 0) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        answer(x);
    }
}

void
waits_drop_client(struct waits *w, const struct client *client)
{
    struct wait **at = &w->first;
    while (*at) {
        struct wait *x = *at;
        if (!ticket_is_of(x->ticket, client)) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        wait_free(x);
    }
}
