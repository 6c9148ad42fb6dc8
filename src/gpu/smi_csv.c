/* Parses nvidia-smi's two tables. Called by the nvidia-smi backend and by the fuzzer. A field
 * in brackets ("[N/A]", "[Not Supported]", "[Unknown Error]") is not reported. */
#include "gpu/smi_csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "gpu/backend.h"
#include "gpu/sysfs.h"

#define COLUMNS_MAX 32

/* Strips the blanks around s, in place. */
static char *
trim(char *s)
{
    s += strspn(s, " \t\r");
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\r", s[n - 1]))
        n--;
    s[n] = '\0';
    return s;
}

/* Splits at commas; the last column keeps the rest. Returns the count. */
static int
split(char *line, char **columns)
{
    int n = 0;

    while (n < COLUMNS_MAX - 1) {
        char *comma = strchr(line, ',');
        if (!comma)
            break;
        *comma = '\0';
        columns[n++] = trim(line);
        line = comma + 1;
    }
    columns[n++] = trim(line);
    return n;
}

/* Reads a number, even if followed by the unit that "nounits" should have omitted ("512 MiB",
 * "93 %"). */
static bool
read_number(char *column, int64_t *out)
{
    column[strcspn(column, " ")] = '\0';
    return parse_int(column, 0, INT32_MAX, out, NULL) == 0;
}

static bool
read_text(const char *column, char *out, size_t size)
{
    if (!column[0] || column[0] == '[')
        return false;
    return (size_t)snprintf(out, size, "%s", column) < size;
}

/* Names may contain commas, which are not quoted: everything between the first six columns and
 * the last two is the name. */
static void
join_name(char **columns, int n, char *out, size_t size)
{
    size_t at = 0;

    for (int i = 6; i < n - 2 && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i > 6 ? ", " : "", columns[i]);
}

static void
read_compute_mode(const char *column, struct backend_card *card)
{
    if (strcasecmp(column, "Default") == 0)
        card->compute_mode = CARD_COMPUTE_DEFAULT;
    else if (strncasecmp(column, "Exclusive", 9) == 0)
        card->compute_mode = CARD_COMPUTE_EXCLUSIVE;
    else if (strcasecmp(column, "Prohibited") == 0)
        card->compute_mode = CARD_COMPUTE_PROHIBITED;
    else
        return;
    card->valid |= CARD_HAS_COMPUTE_MODE;
}

/* A GPU that uses the machine's memory (GB10) reports no size: 0. */
static bool
read_size(char *column, int64_t *mib)
{
    *mib = 0;
    return strcasecmp(column, "[N/A]") == 0 || strcasecmp(column, "N/A") == 0 ||
           strcasecmp(column, "[Not Supported]") == 0 || read_number(column, mib);
}

/* False: the GPU is listed but cannot be read. */
static bool
read_card(char **columns, int n, struct backend_card *card)
{
    int64_t index;

    memset(card, 0, sizeof *card);
    if (!read_number(columns[0], &index) ||
        !read_text(columns[1], card->uuid, sizeof card->uuid) ||
        !read_size(columns[2], &card->total_mib))
        return false;
    card->index = (int32_t)index;
    card->vendor = CARD_NVIDIA;
    snprintf(card->cap_why, sizeof card->cap_why,
             "nvidia-smi reads the GPUs, and NVML alone is asked for limits");
    join_name(columns, n, card->name, sizeof card->name);
    if (sysfs_bus_id(columns[n - 2], card->bus_id, sizeof card->bus_id) == 0)
        card->valid |= CARD_HAS_BUS_ID;
    read_compute_mode(columns[n - 1], card);
    return true;
}

static void
read_usage(char **columns, struct backend_usage *u)
{
    int64_t value;

    u->present = true;
    if (read_number(columns[3], &u->used_mib))
        u->valid |= CARD_HAS_USED;
    if (read_number(columns[4], &value)) {
        u->util = (int32_t)value;
        u->valid |= CARD_HAS_UTIL;
    }
    if (read_number(columns[5], &value)) {
        u->temperature_c = (int32_t)value;
        u->valid |= CARD_HAS_TEMPERATURE;
    }
}

static bool
begins_with(const char *line, const char *words)
{
    return strncasecmp(line, words, strlen(words)) == 0;
}

/* A line that is not a table row is a message of nvidia-smi. A message about a lost GPU is
 * ignored, because the GPU's absence shows it and the others continue. */
static int
not_a_row(const char *line, struct err *e)
{
    if (begins_with(line, "No devices were found") ||
        begins_with(line, "Unable to determine the device handle"))
        return 0;
    return err_set(e, ERR_FAILED, "nvidia-smi says: %.300s", line);
}

int
smi_csv_gpus(const char *text, size_t n, struct backend_machine *m, struct backend_sample *s,
             struct err *e)
{
    auto_free char *copy = xstrndup(text, n);
    char *next = copy, *columns[COLUMNS_MAX];

    m->n = 0;
    backend_sample_reset(s);
    while (next) {
        char *line = trim(strsep(&next, "\n"));
        if (!line[0])
            continue;
        auto_free char *whole = xstrdup(line);
        int count = split(line, columns);
        if (count < 9) {
            if (not_a_row(whole, e) < 0)
                return -1;
            continue;
        }
        if (m->n == GPU_MAX)
            return err_set(e, ERR_FAILED, "nvidia-smi lists more than %d GPUs", GPU_MAX);
        if (read_card(columns, count, &m->cards[m->n])) {
            read_usage(columns, &s->use[m->n]);
            m->n++;
        }
    }
    return 0;
}

static void
read_cc(char **columns, struct backend_machine *m)
{
    double cc;

    if (parse_double(columns[1], 1, 100, &cc, NULL) < 0)
        return;
    for (int i = 0; i < m->n; i++) {
        if (strcmp(m->cards[i].uuid, columns[0]) != 0)
            continue;
        m->cards[i].cc = (int32_t)(cc * 10 + 0.5);
        m->cards[i].valid |= CARD_HAS_CC;
    }
}

void
smi_csv_cc(const char *text, size_t n, struct backend_machine *m)
{
    auto_free char *copy = xstrndup(text, n);
    char *next = copy, *line, *columns[COLUMNS_MAX];

    while ((line = strsep(&next, "\n")))
        if (split(line, columns) == 2)
            read_cc(columns, m);
}

static struct backend_usage *
find_usage(const struct backend_machine *m, struct backend_sample *s, const char *uuid)
{
    for (int i = 0; i < m->n; i++) {
        if (strcmp(m->cards[i].uuid, uuid) == 0)
            return &s->use[i];
    }
    return NULL;
}

static void
read_proc(char **columns, const struct backend_machine *m, struct backend_sample *s)
{
    struct backend_usage *u = find_usage(m, s, columns[0]);
    int64_t pid, mib;

    if (!u || !read_number(columns[1], &pid) || pid == 0)
        return;
    if (!read_number(columns[2], &mib))
        mib = -1;
    backend_usage_add(u, (int32_t)pid, mib);
}

int
smi_csv_procs(const char *text, size_t n, const struct backend_machine *m,
              struct backend_sample *s, struct err *e)
{
    auto_free char *copy = xstrndup(text, n);
    char *next = copy, *columns[COLUMNS_MAX];
    bool known = true;

    while (next) {
        char *line = trim(strsep(&next, "\n"));
        if (!line[0])
            continue;
        if (line[0] == '[') {
            known = false;
            continue;
        }
        auto_free char *whole = xstrdup(line);
        if (split(line, columns) == 3)
            read_proc(columns, m, s);
        else if (not_a_row(whole, e) < 0)
            return -1;
    }
    for (int i = 0; known && i < m->n; i++)
        s->use[i].valid |= CARD_HAS_PROCS;
    return 0;
}

/* The card whose UUID the line contains; -1: none. */
static int
card_in_line(const struct backend_machine *m, const char *line, size_t n)
{
    for (int i = 0; i < m->n; i++)
        if (memmem(line, n, m->cards[i].uuid, strlen(m->cards[i].uuid)))
            return i;
    return -1;
}

static void
leave_out(struct backend_machine *m, int card)
{
    backend_machine_leave_out(m,
                              "%s is in MIG mode: nvidia-smi does not report its instances, "
                              "and NVML could not be loaded",
                              m->cards[card].uuid);
    memmove(&m->cards[card], &m->cards[card + 1],
            (size_t)(m->n - card - 1) * sizeof m->cards[0]);
    m->n--;
}

/* Lines of instances are indented and follow that of their GPU. */
void
smi_csv_leave_out_divided(const char *text, struct backend_machine *m)
{
    int card = -1;

    for (size_t n; text[0]; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        size_t blanks = strspn(text, " \t");
        if (blanks == 0) {
            card = card_in_line(m, text, n);
        } else if (card >= 0 && strncmp(text + blanks, "MIG ", 4) == 0) {
            leave_out(m, card);
            card = -1;
        }
    }
}
