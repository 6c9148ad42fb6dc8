/* Parses simulated faults; see sim_faults.h. */
#include "gpu/sim_faults.h"

#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"

/* Parses "lost 3": 1 if the line is of this kind and was added to the set, 0 if it is of
 * another kind, -1 with e. */
static int
parse_card_fault(const char *line, const char *word, uint64_t *set, struct err *e)
{
    size_t n = strlen(word);
    int64_t card;

    if (strncmp(line, word, n) != 0 || line[n] != ' ')
        return 0;
    if (parse_int(line + n + 1, 0, GPU_MAX - 1, &card, e) < 0)
        return err_prefix(e, "fault '%s N'", word);
    *set |= UINT64_C(1) << card;
    return 1;
}

static int
parse_fault(const char *line, struct sim_faults *out, struct err *e)
{
    const struct {
        const char *word;
        uint64_t *set;
    } of_cards[] = {{"lost", &out->lost},
                    {"unreadable", &out->unread},
                    {"bad-memory", &out->pending},
                    {"worn-out", &out->worn}};
    const struct {
        const char *word;
        bool *is_so;
    } of_all[] = {{"hang", &out->hang},
                  {"die", &out->die},
                  {"error", &out->error},
                  {"silent-procs", &out->silent_procs},
                  {"no-caps", &out->no_caps}};

    for (size_t i = 0; i < sizeof of_all / sizeof of_all[0]; i++) {
        if (strcmp(line, of_all[i].word) == 0) {
            *of_all[i].is_so = true;
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof of_cards / sizeof of_cards[0]; i++) {
        int found = parse_card_fault(line, of_cards[i].word, of_cards[i].set, e);
        if (found)
            return found < 0 ? -1 : 0;
    }
    if (!line[0])
        return 0;
    return err_set(e, ERR_USAGE,
                   "unknown simulated fault '%.40s'; use hang, die, error, silent-procs, "
                   "no-caps, lost N, unreadable N, bad-memory N, worn-out N",
                   line);
}

int
sim_faults_parse(char *text, struct sim_faults *out, struct err *e)
{
    while (text) {
        if (parse_fault(strsep(&text, "\n"), out, e) < 0)
            return -1;
    }
    return 0;
}
