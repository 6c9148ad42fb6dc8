/* Reads the Standard Workload Format: 18 numbers per line, -1 for unknown, comments after a
 * semicolon. Only arrival, run time, width and memory are used. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "sim/workload/read.h"

#define SWF_FIELDS 18

/* Field numbers of the format's definition, from 0. */
enum {
    SWF_ID = 0,
    SWF_SUBMIT = 1,
    SWF_RUN = 3,
    SWF_PROCS = 4,
    SWF_MEMORY_USED = 6,
    SWF_PROCS_ASKED = 7,
    SWF_TIME_ASKED = 8,
    SWF_MEMORY_ASKED = 9,
};

struct swf {
    const char *file;
    uint32_t line;
    const struct machine *machine;
    struct read_notes *notes;
    int32_t largest_mib; /* VRAM that a job can have on the largest GPU */
};

static const char *
skip_blanks(const char *p)
{
    return p + strspn(p, " \t\r");
}

/* The word at p as a rounded number; below 0 becomes -1, unknown. */
static int
read_number(const struct swf *s, const char *line, const char *p, size_t n, int64_t *out,
            struct err *e)
{
    char word[32];
    double v;
    struct err why;
    if (n >= sizeof word)
        return err_set(e, ERR_USAGE, "%s:%u:%d: '%.20s...' is too long for a number", s->file,
                       s->line, (int)(p - line) + 1, p);
    memcpy(word, p, n);
    word[n] = '\0';
    if (parse_double(word, -(double)WORKLOAD_TIME_MAX, (double)WORKLOAD_TIME_MAX, &v, &why) < 0)
        return err_set(e, ERR_USAGE, "%s:%u:%d: %s", s->file, s->line, (int)(p - line) + 1,
                       why.text);
    *out = v < 0 ? -1 : (int64_t)rint(v);
    return 0;
}

/* Fields 1 to 10; the others are not parsed but must be there. */
static int
read_record(const struct swf *s, const char *line, int64_t *values, struct err *e)
{
    const char *p = skip_blanks(line);
    int n = 0;
    for (; *p && *p != ';'; n++) {
        size_t len = strcspn(p, " \t\r;");
        if (n <= SWF_MEMORY_ASKED && read_number(s, line, p, len, &values[n], e) < 0)
            return -1;
        p = skip_blanks(p + len);
    }
    if (n == SWF_FIELDS)
        return 0;
    return err_set(e, ERR_USAGE, "%s:%u:1: %d fields; the Standard Workload Format has %d",
                   s->file, s->line, n, SWF_FIELDS);
}

/* KiB per processor; unknown (0 or below): whole GPUs. */
static void
set_memory(const struct swf *s, int64_t kib, struct shape *shape, bool *is_capped)
{
    int64_t mib = (kib + 1023) / 1024;
    if (kib <= 0) {
        shape->alone = true;
        return;
    }
    if (mib > s->largest_mib) {
        *is_capped = true;
        mib = s->largest_mib;
    }
    shape->vram_mib = (int32_t)mib;
}

static void
add_record(const struct swf *s, const int64_t *v, struct workload *w)
{
    int64_t procs = v[SWF_PROCS_ASKED] > 0 ? v[SWF_PROCS_ASKED] : v[SWF_PROCS];
    int64_t kib = v[SWF_MEMORY_ASKED] > 0 ? v[SWF_MEMORY_ASKED] : v[SWF_MEMORY_USED];
    struct sim_job job = {
        .id = v[SWF_ID],
        .arrival = v[SWF_SUBMIT],
        .duration = v[SWF_RUN],
        .estimate = v[SWF_TIME_ASKED] > 0 ? v[SWF_TIME_ASKED] : v[SWF_RUN],
        .line = s->line,
    };
    struct shape shape = {.allowed = UINT64_MAX};
    bool is_capped = procs > s->machine->n;
    if (job.id < 0 || job.arrival < 0 || job.duration < 0 || procs <= 0) {
        s->notes->skipped++;
        return;
    }
    shape.n = (uint8_t)(is_capped ? s->machine->n : procs);
    set_memory(s, kib, &shape, &is_capped);
    s->notes->capped += is_capped;
    workload_add(w, &job, &shape);
}

int
read_swf(const char *file, char *text, size_t len, const struct machine *m, struct workload *w,
         struct read_notes *notes, struct err *e)
{
    struct swf s = {.file = file, .machine = m, .notes = notes};
    int64_t values[SWF_FIELDS] = {0};
    for (int i = 0; i < m->n; i++) {
        if (m->total_mib[i] - m->margin_mib > s.largest_mib)
            s.largest_mib = m->total_mib[i] - m->margin_mib;
    }
    for (char *at = text, *stop = text + len; at < stop;) {
        char *line = at, *end = memchr(at, '\n', (size_t)(stop - at));
        if (!end)
            end = stop;
        *end = '\0';
        at = end + 1;
        s.line++;
        const char *first = skip_blanks(line);
        if (!*first || *first == ';')
            continue;
        if (read_record(&s, line, values, e) < 0)
            return -1;
        if (w->n == WORKLOAD_JOBS_MAX)
            return err_set(e, ERR_USAGE, "%s:%u:1: more than 100 million jobs", file, s.line);
        add_record(&s, values, w);
    }
    return 0;
}
