/* Shared by events and answers: see event_words.h. */
#include "daemon/common/event_words.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/text.h"
#include "core/queue/job.h"

/* Appends an argument as a shell needs it, so that people can paste it. */
static void
add_quoted(struct buf *out, const char *arg)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=./,:@%^";
    if (arg[0] && strspn(arg, plain) == strlen(arg)) {
        buf_adds(out, arg);
        return;
    }
    text_add_quoted(out, arg);
}

size_t
events_cut(const char *s, size_t n, int max)
{
    if (max <= 0 || n <= (size_t)max)
        return n;
    n = (size_t)max;
    while (n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80)
        n--;
    return n;
}

void
events_write_command(struct jsonw *w, const struct job *job, int max)
{
    if (job->req.command) {
        jsonw_strn(w, job->req.command,
                   events_cut(job->req.command, strlen(job->req.command), max));
        return;
    }
    auto_buf struct buf text = BUF_INIT;
    for (char **a = job->req.argv; a && *a; a++) {
        if (a != job->req.argv)
            buf_addc(&text, ' ');
        add_quoted(&text, *a);
        if (max > 0 && text.len > (size_t)max)
            break;
    }
    jsonw_strn(w, buf_str(&text), events_cut(buf_str(&text), text.len, max));
}

void
events_write_peaks(struct jsonw *w, const struct attempt *run)
{
    jsonw_kobject(w, "peak_mib");
    for (int i = 0; run && i < run->n_gpus; i++) {
        char key[12];
        snprintf(key, sizeof key, "%d", run->gpus[i]);
        if (run->peak_mib[i] >= 0)
            jsonw_kint(w, key, run->peak_mib[i]);
        else
            jsonw_knull(w, key);
    }
    if (run && run->sent.key[0] && run->sent.peak_mib >= 0)
        jsonw_kint(w, "max", run->sent.peak_mib); /* of GPUs without a number here */
    jsonw_end_object(w);
}

void
events_write_gpus(struct jsonw *w, const struct attempt *run)
{
    jsonw_karray(w, "gpus");
    for (int i = 0; run && i < run->n_gpus; i++)
        jsonw_int(w, run->gpus[i]);
    jsonw_end_array(w);
}
