/* nvidia-smi's two tables, separated by a NUL byte: any bytes must give GPUs and processes
 * that keep backend.h's promises and can be written as JSON, or an error. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "gpu/backend.h"
#include "gpu/probe_message.h"
#include "gpu/smi_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t
nobody(int32_t pid)
{
    (void)pid;
    return -1;
}

static void
require(bool good, const char *what)
{
    if (!good)
        err_abort("%s", what);
}

static void
check_promises(const struct backend_machine *m, const struct backend_sample *s)
{
    require(m->n >= 0 && m->n <= GPU_MAX, "the number of cards");
    for (int i = 0; i < m->n; i++) {
        const struct backend_usage *u = &s->use[i];
        require(m->cards[i].uuid[0] != '\0', "a card without UUID");
        require(m->cards[i].index >= 0 && m->cards[i].total_mib >= 0, "a negative card");
        require(u->present, "a listed card is absent");
        require(!(u->valid & CARD_HAS_USED) || u->used_mib >= 0, "negative use");
        for (int p = 0; p < u->n_procs; p++)
            require(u->procs[p].pid > 0 && u->procs[p].mib >= -1, "no such process");
    }
}

static void
check_line(struct buf *line)
{
    json_t *v = json_loadb(buf_str(line), line->len, 0, NULL);

    require(v != NULL, "the line is not JSON");
    json_decref(v);
    buf_free(line);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct backend_machine m;
    static struct backend_sample s;
    const char *text = (const char *)data;
    size_t first = size ? strnlen(text, size) : 0;
    size_t second = first < size ? first + 1 : size;
    struct buf line = BUF_INIT;
    struct err e = {.code = ERR_NONE};

    if (smi_csv_gpus(text, first, &m, &s, &e) < 0) {
        require(e.code != ERR_NONE && e.text[0] != '\0', "an error without words");
        return 0;
    }
    (void)smi_csv_procs(text + second, size - second, &m, &s, &e);
    smi_csv_cc(text + second, size - second, &m);
    check_promises(&m, &s);
    message_hello(&line, "nvidia-smi", &m, -1);
    check_line(&line);
    message_sample(&line, 1, &m, &s, NULL, 0, nobody);
    check_line(&line);
    return 0;
}
